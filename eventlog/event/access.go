package event

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// RefKind tells the two domains of refs apart; one never doubles as the other (SES-19).
type RefKind string

// Kinds of refs.
const (
	RefSession RefKind = "session" // ~sN
	RefProject RefKind = "project" // ~pN
)

// MaxRefNumber is the greatest number of a ref (SES-05): a principal that has used them all
// gets no further ones.
const MaxRefNumber = 999_999_999

// Ref is the form in which a number is shown: ~s7, ~p7.
func (k RefKind) Ref(number uint64) string {
	return "~" + string(k[:min(1, len(k))]) + strconv.FormatUint(number, 10)
}

// ParseRef reads a ref of this kind: its mark and a decimal number of one to nine digits that
// does not begin with 0 (SES-05, SES-19).
func (k RefKind) ParseRef(s string) (number uint64, ok bool) {
	if len(s) < 3 || len(s) > 11 || s[:2] != k.Ref(0)[:2] || s[2] == '0' {
		return 0, false
	}
	for _, c := range []byte(s[2:]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		number = 10*number + uint64(c-'0')
	}
	return number, true
}

// incarnationDomain separates this hash from every other one.
const incarnationDomain = "webcodex.workflow-session-incarnation.v1"

// Incarnation is the fingerprint of one incarnation of a Session: a domain-separated SHA-256
// over id and nonce, 64 lowercase hex. A ref pins it (SES-08).
func Incarnation(id SessionID, nonce string) string {
	h := sha256.New()
	for _, part := range []string{incarnationDomain, string(id), nonce} {
		fmt.Fprintf(h, "%d:%s", len(part), part) // no two lists of parts give the same input
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ValidFingerprint reports whether s has the form of a stored fingerprint, 64 lowercase hex
// digits (AUTH-01). Anything else matches nobody (AUTH-06).
func ValidFingerprint(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// RefReserved takes a number out of a principal's counter before the Session that will bind
// it exists; a number never bound is a harmless gap, and none is given twice (SES-11).
type RefReserved struct {
	Principal string  `json:"principal"`
	Kind      RefKind `json:"kind"`
	Number    uint64  `json:"number"`
}

// RefBound reserves a number and pins it at once: for refs that reads hand out (ruling 13).
type RefBound struct {
	Principal string     `json:"principal"`
	Kind      RefKind    `json:"kind"`
	Number    uint64     `json:"number"`
	Session   SessionID  `json:"session,omitempty"`
	Project   ProjectRef `json:"project,omitzero"`
	// Pin is the incarnation fingerprint of the Session, or the Project's root fingerprint.
	Pin string `json:"pin"`
}

// SessionRefBound pins a reserved number to the Session whose commit it stands in.
type SessionRefBound struct {
	Principal string `json:"principal"`
	Number    uint64 `json:"number"`
}

func (RefReserved) isEvent()       {}
func (RefBound) isEvent()          {}
func (SessionRefBound) isEvent()   {}
func (SessionRefBound) isSession() {}
