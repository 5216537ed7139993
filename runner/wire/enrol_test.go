package wire

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// A code is read as it was written, and no other text is one: not a part of it, not one with a
// character changed.
func TestCode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Code{Client: event.ClientID(rapid.StringMatching("[a-z0-9_-]{1,64}").Draw(t, "client")),
			Server: rapid.SliceOfN(rapid.Byte(), ed25519.PublicKeySize, ed25519.PublicKeySize).Draw(t, "server"),
			URL:    rapid.StringMatching("(tls://[a-z.]{1,150}:7422)?").Draw(t, "url")}
		copy(c.Seed[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "seed"))
		if rapid.Bool().Draw(t, "pinned") {
			c.Pin = rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "pin")
		}
		text := c.String()
		got, err := ParseCode(" " + text + "\n")
		if err != nil || got.Client != c.Client || got.Seed != c.Seed || !got.Server.Equal(c.Server) || !bytes.Equal(got.Pin, c.Pin) || got.URL != c.URL {
			t.Fatalf("%s: %+v %v", text, got, err)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		for _, bad := range []string{text[:at], text[:at] + "!" + text[at+1:], text[:at] + text[at+1:], text + "A", strings.TrimPrefix(text, CodePrefix)} {
			if _, err := ParseCode(bad); fault.KindOf(err) != fault.EnrolmentInvalid {
				t.Fatalf("%q was read: %v", bad, err)
			}
		}
	})
	for _, s := range []string{"", CodePrefix, CodePrefix + "AAAA", strings.Repeat("A", 1<<20)} {
		if _, err := ParseCode(s); fault.KindOf(err) != fault.EnrolmentInvalid {
			t.Errorf("%v", err)
		}
	}
}

// No two messages have one signature: it is over the client, the verb, whether it answers, the
// request and the body.
func TestSignaturesAreOfOneMessage(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sig := SignReply(private, "a", VerbClaim, []byte("q"), []byte("r"))
	if !VerifyReply(public, "a", VerbClaim, []byte("q"), []byte("r"), sig) {
		t.Fatal("a signature that was made is not taken")
	}
	for name, ok := range map[string]bool{
		"client":  VerifyReply(public, "b", VerbClaim, []byte("q"), []byte("r"), sig),
		"verb":    VerifyReply(public, "a", VerbHello, []byte("q"), []byte("r"), sig),
		"request": VerifyReply(public, "a", VerbClaim, []byte("x"), []byte("r"), sig),
		"body":    VerifyReply(public, "a", VerbClaim, []byte("q"), []byte("x"), sig),
		"kind":    VerifyRequest(public, "a", VerbClaim, []byte("r"), sig),
		"empty":   VerifyReply(public, "a", VerbClaim, []byte{}, []byte("r"), SignRequest(private, "a", VerbClaim, []byte("r"))),
		"short":   VerifyReply(public, "a", VerbClaim, []byte("q"), []byte("r"), sig[:63]),
		"none":    VerifyReply(public, "a", VerbClaim, []byte("q"), []byte("r"), nil),
	} {
		if ok {
			t.Errorf("a signature of another %s is taken", name)
		}
	}
}
