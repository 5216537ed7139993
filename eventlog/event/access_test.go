package event

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var refForm = regexp.MustCompile(`^~[sp][1-9][0-9]{0,8}$`)

// A ref is a mark and a decimal number of at most nine digits, and each kind reads its own.
//
// Covers: SES-05, SES-19
func TestRefForm(t *testing.T) {
	for _, s := range []string{"", "~", "~s", "~s0", "~s01", "~S1", "~p", "s1", "~s1 ", " ~s1", "~s1\n", "~s-1", "~s+1", "~s1.0",
		"~s1e3", "~s٣", "~s1234567890", "~~s1", "~s1~", "~s0x1", "~s１", "~session1", "wc_sess_" + strings.Repeat("0", 32)} {
		if n, ok := RefSession.ParseRef(s); ok {
			t.Errorf("%q was read as number %d", s, n)
		}
	}
	if n, ok := RefSession.ParseRef("~s999999999"); !ok || n != MaxRefNumber {
		t.Errorf("the greatest ref was read as %d, %v", n, ok)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, MaxRefNumber).Draw(t, "number")
		kind := rapid.SampledFrom([]RefKind{RefSession, RefProject}).Draw(t, "kind")
		ref := kind.Ref(n)
		if got, ok := kind.ParseRef(ref); !ok || got != n || !refForm.MatchString(ref) {
			t.Fatalf("%s was read as %d, %v", ref, got, ok)
		}
		other := map[RefKind]RefKind{RefSession: RefProject, RefProject: RefSession}[kind]
		if _, ok := other.ParseRef(ref); ok {
			t.Fatalf("%s was read as a ref of the other kind", ref)
		}
	})
}

func FuzzParseRef(f *testing.F) {
	f.Add("~s1")
	f.Add("~p999999999")
	f.Add("~s01")
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := RefSession.ParseRef(s)
		_, project := RefProject.ParseRef(s)
		if (ok || project) != refForm.MatchString(s) || ok && project || ok && RefSession.Ref(n) != s {
			t.Errorf("%q was read as %d, %v, %v", s, n, ok, project)
		}
	})
}

// The fingerprint of an incarnation follows id and nonce alone, and moves with both.
//
// Covers: SES-08
func TestIncarnation(t *testing.T) {
	id, nonce := SessionID(SessionPrefix+strings.Repeat("1", 32)), strings.Repeat("2", 32)
	const want = "65ba7c562b42b4f17bc41a69306f6c008f0de5b2bc1a81126df9d969eb6dab7e"
	if got := Incarnation(id, nonce); got != want {
		t.Errorf("the fingerprint of a known incarnation is %s", got)
	}
	seen := map[string]bool{}
	for _, f := range []string{Incarnation(id, nonce), Incarnation(id, nonce+"3"), Incarnation(id+"2", nonce[1:]), Incarnation("", string(id)+nonce)} {
		if seen[f] || !ValidFingerprint(f) {
			t.Errorf("%q is not the fingerprint of one incarnation alone", f)
		}
		seen[f] = true
	}
}

func TestValidFingerprint(t *testing.T) {
	good := strings.Repeat("0af9", 16)
	if !ValidFingerprint(good) {
		t.Error("a fingerprint was refused")
	}
	for _, s := range []string{"", good[1:], good + "0", strings.ToUpper(good), good[1:] + "g", good[1:] + " "} {
		if ValidFingerprint(s) {
			t.Errorf("%q passed as a fingerprint", s)
		}
	}
}
