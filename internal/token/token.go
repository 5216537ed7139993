// Package token makes and reads the opaque texts that a caller holds and gives back: cursors
// that only this data directory can read, and fingerprints that only it can make. Neither
// grants a right to anything.
package token

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// MaxBytes bounds a token as text (MSG-11).
const MaxBytes = 192

// maxBody is what fits into one.
const maxBody = 96

// ErrInvalid tells that a text is no token of this use and binding. It never says why.
var ErrInvalid = errors.New("no such token")

// spelling is the only one: no padding, no line breaks, no unused bits.
var spelling = base64.RawURLEncoding.Strict()

// Keys are the secrets behind tokens and fingerprints, one for each. They are safe for
// concurrent use.
type Keys struct {
	aead cipher.AEAD
	mac  []byte
}

// New derives the Keys from a secret of the data directory. The same secret gives the same
// Keys, so tokens outlive a restart (MSG-22).
func New(secret []byte) (*Keys, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "webcodex.token.seal.v1", 32)
	if err != nil {
		return nil, err
	}
	mac, err := hkdf.Key(sha256.New, secret, nil, "webcodex.token.mac.v1", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Keys{aead: aead, mac: mac}, nil
}

// Seal makes a token of at most MaxBytes ASCII characters that hides body, holds for one use
// alone, and for whoever names the same binding: the texts of both are told apart wherever
// they begin and end. A body that does not fit is a programmer's error and panics.
func (k *Keys) Seal(use string, binding []string, body []byte) string {
	if len(body) > maxBody {
		panic("token: the body does not fit")
	}
	return spelling.EncodeToString(k.aead.Seal(nil, nil, body, joined(use, binding)))
}

// Open gives a token's body. The error is ErrInvalid, whatever is wrong: the length, the
// spelling, the use, the binding, or who made it.
func (k *Keys) Open(use string, binding []string, token string) ([]byte, error) {
	if token == "" || len(token) > MaxBytes {
		return nil, ErrInvalid
	}
	raw, err := spelling.DecodeString(token)
	// The decoder skips line breaks, which would be a second spelling.
	if err != nil || spelling.EncodeToString(raw) != token {
		return nil, ErrInvalid
	}
	body, err := k.aead.Open(nil, nil, raw, joined(use, binding))
	if err != nil {
		return nil, ErrInvalid
	}
	return body, nil
}

// FingerprintChars of one: 256 bits in base64url.
const FingerprintChars = 43

// Fingerprint is an HMAC over the parts, told apart wherever they begin and end, as
// FingerprintChars characters of base64url. Two that are to be compared are compared with Equal.
func (k *Keys) Fingerprint(use string, parts ...string) string {
	h := hmac.New(sha256.New, k.mac)
	h.Write(joined(use, parts))
	return spelling.EncodeToString(h.Sum(nil))
}

// Equal compares two fingerprints without telling how far they are alike.
func Equal(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

// Digest is the SHA-256 of parts under a domain, in hex: what is kept in place of a caller's
// key.
func Digest(domain string, parts ...string) string {
	sum := sha256.Sum256(joined(domain, parts))
	return hex.EncodeToString(sum[:])
}

// joined writes each part behind its length, so that no two lists of parts are one text.
func joined(use string, parts []string) []byte {
	n := len(use) + 8
	for _, p := range parts {
		n += len(p) + 8
	}
	out := make([]byte, 0, n)
	for _, p := range append([]string{use}, parts...) {
		out = binary.BigEndian.AppendUint64(out, uint64(len(p)))
		out = append(out, p...)
	}
	return out
}
