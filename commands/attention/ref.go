package attention

import (
	"encoding/base64"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/token"
	"webcodex/projections/session"
)

// refPrefix begins every ack_ref; the rest is one bit for each member of the set that it was
// made for, and a fingerprint that binds the bits.
const (
	refPrefix = "wsr1_"
	refUse    = "webcodex.session-ack-ref.v1"
	// fingerprintChars of the fingerprint are kept: 132 bits.
	fingerprintChars = 22
)

var spelling = base64.RawURLEncoding.Strict()

// makeRef gives the text that stands for exactly this set among exactly these members, for one
// principal and one Session: the same set gives the same text (ACK-03, ACK-07, ACK-08).
func makeRef(keys *token.Keys, principal string, s session.Core, members []*session.Message, set map[event.MessageID]bool) string {
	bits := make([]byte, (len(members)+7)/8)
	for i, m := range members {
		if set[m.ID] {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	body := spelling.EncodeToString(bits)
	return refPrefix + fingerprint(keys, principal, s, members, body) + body
}

func fingerprint(keys *token.Keys, principal string, s session.Core, members []*session.Message, body string) string {
	parts := []string{principal, string(s.ID), event.Incarnation(s.ID, s.Nonce), body}
	for _, m := range members {
		parts = append(parts, string(m.ID))
	}
	return keys.Fingerprint(refUse, parts...)[:fingerprintChars]
}

// readRef gives the set that a ref stands for, nothing where it is not of this principal, of
// this Session, or of exactly these members: never a part of it.
func readRef(keys *token.Keys, principal string, s session.Core, members []*session.Message, ref string) map[event.MessageID]bool {
	rest, ok := strings.CutPrefix(ref, refPrefix)
	if !ok || len(ref) > token.MaxBytes || len(rest) < fingerprintChars {
		return nil
	}
	mark, body := rest[:fingerprintChars], rest[fingerprintChars:]
	if !token.Equal(mark, fingerprint(keys, principal, s, members, body)) {
		return nil
	}
	bits, err := spelling.DecodeString(body)
	if err != nil || len(bits) != (len(members)+7)/8 {
		return nil
	}
	set := map[event.MessageID]bool{}
	for i, m := range members {
		if bits[i/8]&(1<<(i%8)) != 0 {
			set[m.ID] = true
		}
	}
	return set
}
