package redact

import (
	"strings"
	"testing"
)

// What was once left as it is does not answer for another bound, another rule or another text.
func TestMemo(t *testing.T) {
	for range 3 {
		if got := Text("internal/server", 64); got != "internal/server" {
			t.Errorf("clean text became %q", got)
		}
		if got := Text("internal/server", 8); got != "internal" {
			t.Errorf("cut to 8: %q", got)
		}
		if _, ok := Path("../server"); ok {
			t.Error("a path out of the Project passes")
		}
		if got := Text("../server", 64); got != "../server" {
			t.Errorf("text became %q", got)
		}
		if got := Text("ghp_0123456789abcdefABCDEF0123456789abcd", 64); got != Mark {
			t.Errorf("a token became %q", got)
		}
		if got := Text("Go  on \xff", 64); got != "Go  on \ufffd" {
			t.Errorf("invalid bytes became %q", got)
		}
	}
	var m memo
	slot, _ := m.has("a")
	keep(slot, "b")
	if _, ok := m.has("a"); ok {
		t.Error("another text in the slot answers")
	}
	if slot, ok := m.has(strings.Repeat("a", maxMemoBytes+1)); slot != nil || ok {
		t.Error("a long text is remembered")
	}
}
