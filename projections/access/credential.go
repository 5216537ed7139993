package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"webcodex/eventlog/event"
)

// Domains that keep hashes of different things apart (AUTH-01, AUTH-02).
const (
	authorityDomain = "webcodex.workflow-session-authority.v1"
	principalDomain = "webcodex.workflow-session-principal.v1"
	tokenDomain     = "webcodex.access-token.v1"
)

// Authority groups (AUTH-04).
const (
	GroupLocal     = "local-dev"
	GroupUser      = "managed-user"
	GroupProject   = "project-grant"
	GroupSharedKey = "shared-key-group"
)

// GroupOf is the authority group that a kind of token belongs to; false: no such kind.
func GroupOf(k event.TokenKind) (string, bool) {
	switch k {
	case event.TokenUser:
		return GroupUser, true
	case event.TokenProject:
		return GroupProject, true
	case event.TokenSharedKey:
		return GroupSharedKey, true
	}
	return "", false
}

// AuthorityFingerprint names an authority group without saying who is in it. The identity is a
// random text that is not stored.
func AuthorityFingerprint(group, identity string) string {
	return fingerprint(authorityDomain, group, identity)
}

// PrincipalFingerprint names one principal of a group.
func PrincipalFingerprint(group, identity string) string {
	return fingerprint(principalDomain, group, identity)
}

// fingerprint is a domain-separated SHA-256 over length-prefixed parts: no two lists of
// parts give the same input.
func fingerprint(domain string, parts ...string) string {
	h := sha256.New()
	for _, p := range append([]string{domain}, parts...) {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// A token is TokenPrefix and 43 characters of unpadded base64url, 256 random bits.
const (
	TokenPrefix = "wcx_"
	TokenLength = len(TokenPrefix) + 43
)

// NewToken mints a token. Only edges mint.
func NewToken() string {
	var b [32]byte
	rand.Read(b[:])
	return TokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// IsToken reports whether s has the form of a token, whoever minted it.
func IsToken(s string) bool {
	if len(s) != TokenLength || s[:len(TokenPrefix)] != TokenPrefix {
		return false
	}
	_, ok := tokenAt(s, 0)
	return ok
}

// HoldsToken reports whether something of a token's form stands anywhere in s, also within a
// longer word.
func HoldsToken(s string) bool {
	for i := 0; i+TokenLength <= len(s); i++ {
		if _, ok := tokenAt(s, i); ok {
			return true
		}
	}
	return false
}

func tokenAt(s string, at int) (string, bool) {
	t := s[at : at+TokenLength]
	if t[:len(TokenPrefix)] != TokenPrefix {
		return "", false
	}
	for _, c := range []byte(t[len(TokenPrefix):]) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return "", false
		}
	}
	return t, true
}

// HashToken is what is kept of a token: a domain-separated SHA-256, 64 lowercase hex. With 256
// random bits behind it nothing slower is needed.
func HashToken(token string) string { return fingerprint(tokenDomain, token) }

// sameHash compares in constant time.
func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
