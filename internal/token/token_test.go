package token

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func keys(t testing.TB, secret string) *Keys {
	t.Helper()
	k, err := New([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

const use = "webcodex.test.v1"

// Covers: MSG-11
func TestTokenRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, maxBody).Draw(rt, "body")
		binding := rapid.SliceOfN(rapid.String(), 0, 3).Draw(rt, "binding")
		tok := keys(t, "s").Seal(use, binding, body)
		if len(tok) > MaxBytes || strings.Trim(tok, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			rt.Fatalf("%d bytes: %q", len(tok), tok)
		}
		got, err := keys(t, "s").Open(use, binding, tok) // the Keys of another life
		if err != nil || !bytes.Equal(got, body) {
			rt.Fatalf("%x, %v", got, err)
		}
	})
}

// Covers: MSG-13
func TestTokenOfAnotherMakingIsNone(t *testing.T) {
	k := keys(t, "s")
	tok := k.Seal(use, []string{"a", "b"}, []byte("body"))
	for name, open := range map[string]func() ([]byte, error){
		"another secret":         func() ([]byte, error) { return keys(t, "t").Open(use, []string{"a", "b"}, tok) },
		"another use":            func() ([]byte, error) { return k.Open(use+"x", []string{"a", "b"}, tok) },
		"another binding":        func() ([]byte, error) { return k.Open(use, []string{"a", "c"}, tok) },
		"borders moved":          func() ([]byte, error) { return k.Open(use, []string{"ab", ""}, tok) },
		"binding shorter":        func() ([]byte, error) { return k.Open(use, []string{"a"}, tok) },
		"use and binding joined": func() ([]byte, error) { return k.Open(use+"a", []string{"b"}, tok) },
	} {
		if body, err := open(); err != ErrInvalid || body != nil {
			t.Errorf("%s: %q, %v", name, body, err)
		}
	}
}

// Covers: MSG-13
func TestTokenHasOneSpelling(t *testing.T) {
	k := keys(t, "s")
	for n := range maxBody { // every number of unused bits at the end
		tok := k.Seal(use, nil, make([]byte, n))
		others := []string{"", tok[:len(tok)-1], tok[1:], tok + "A", tok + "=", tok + "==", tok + "\n", "\n" + tok, " " + tok,
			tok[:5] + "\r\n" + tok[5:], tok[:5] + "\n" + tok[5:], strings.ToUpper(tok), strings.ToLower(tok), tok + tok,
			strings.Repeat("A", MaxBytes), strings.Repeat("A", MaxBytes+1), "é" + tok}
		const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		for i := range alphabet {
			others = append(others, tok[:len(tok)-1]+alphabet[i:i+1])
		}
		for _, o := range others {
			if o == tok {
				continue
			}
			if _, err := k.Open(use, nil, o); err != ErrInvalid {
				t.Errorf("%d bytes: %q is taken for %q", n, o, tok)
			}
		}
	}
}

// A body that every token could hide in plain sight must not be seen in one.
//
// Covers: MSG-11
func TestTokenHidesItsBody(t *testing.T) {
	k := keys(t, "s")
	body := []byte("0000000000000012345")
	a, b := k.Seal(use, nil, body), k.Seal(use, nil, body)
	if a == b {
		t.Error("equal bodies make equal tokens: who holds two learns that nothing came between")
	}
	raw, err := base64.RawURLEncoding.DecodeString(a)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, body[10:]) || strings.Contains(a, "12345") {
		t.Errorf("%q shows its body", a)
	}
}

func TestFingerprint(t *testing.T) {
	k := keys(t, "s")
	f := k.Fingerprint(use, "a", "b")
	if len(f) != 43 || f != keys(t, "s").Fingerprint(use, "a", "b") || !Equal(f, f) {
		t.Errorf("%q", f)
	}
	for _, o := range []string{k.Fingerprint(use, "ab"), k.Fingerprint(use, "a"), k.Fingerprint(use, "a", "b", ""),
		k.Fingerprint(use+"a", "b"), keys(t, "t").Fingerprint(use, "a", "b")} {
		if Equal(f, o) {
			t.Errorf("%q stands for two things", f)
		}
	}
	if Digest(use, "a", "b") == Digest(use, "ab") || Digest(use, "a") == Digest(use+"x", "a") {
		t.Error("a digest stands for two things")
	}
}

// made was sealed by these Keys in another life: it also holds the form of tokens still.
const made = "rfiZNiMMMBSNA1km47hCRRyVavHWTFWtzQgxM9F7wKc"

func FuzzOpen(f *testing.F) {
	k, tok := keys(f, "s"), made
	for _, s := range []string{"", tok, tok[:10], tok + "A", strings.Repeat("A", 192), "\n", "wsa1_" + tok} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		body, err := k.Open(use, []string{"a"}, s)
		if s == tok {
			if err != nil || string(body) != "body" {
				t.Errorf("%q, %v", body, err)
			}
			return
		}
		if err != ErrInvalid || body != nil {
			t.Errorf("%q is taken for a token: %q", s, body)
		}
	})
}
