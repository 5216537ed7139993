package evidence

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	targetForm = regexp.MustCompile(`^target:[0-9a-f]{24}$`)
	scopeForm  = regexp.MustCompile(`^validation_scope:v1:[0-9a-f]{64}$`)
)

// The same scope has one target and one identity in whatever order it is told, each dimension
// makes another, and neither lets a word of it through. Purpose belongs to the comparison, not to
// the target.
//
// Covers: VAL-03, VAL-22, VAL-23
func TestScopeIdentities(t *testing.T) {
	base := Scope{Project: "agent:a:p", Tool: "cargo_test", Cwd: "sub", Packages: []string{"x", "y"}, Features: []string{"f", "g"},
		Flags: []string{"--all-targets"}, Filter: "FILTERMARK"}
	is := base.Of("test", ParserCargo)
	if !targetForm.MatchString(is.TargetID) || !scopeForm.MatchString(is.Scope) || is.Kind != "cargo_test" || is.Parser != ParserCargo {
		t.Fatalf("%+v", is)
	}
	turned := base
	turned.Packages, turned.Features = []string{"y", "x", "y"}, []string{"g", "f"}
	if got := turned.Of("test", ParserCargo); *got != *is {
		t.Errorf("another order: %+v", got)
	}
	if got := base.Of("", ParserCargo); got.TargetID != is.TargetID || got.Scope == is.Scope {
		t.Errorf("another purpose: %+v", got)
	}
	for name, change := range map[string]func(*Scope){
		"project":  func(s *Scope) { s.Project = "agent:a:P" },
		"tool":     func(s *Scope) { s.Tool = "go_test" },
		"cwd":      func(s *Scope) { s.Cwd = "" },
		"packages": func(s *Scope) { s.Packages = []string{"x"} },
		"features": func(s *Scope) { s.Features = nil },
		"flags":    func(s *Scope) { s.Flags = nil },
		"filter":   func(s *Scope) { s.Filter = "other" },
		"command":  func(s *Scope) { s.Command = "digest" },
	} {
		s := base
		change(&s)
		if got := s.Of("test", ParserCargo); got.TargetID == is.TargetID || got.Scope == is.Scope {
			t.Errorf("another %s: %+v", name, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[G-Zg-z]{8,20}`).Draw(t, "word") // no hex, so that it can't be a part by chance
		got := Scope{Project: word, Tool: "t", Cwd: word, Packages: []string{word}, Features: []string{word}, Filter: word, Command: word}.Of(word, ParserNone)
		if strings.Contains(got.TargetID+got.Scope, word) {
			t.Fatalf("%q is in %+v", word, got)
		}
	})
}

func TestCwdHasOneName(t *testing.T) {
	for in, want := range map[string]string{"": "", ".": "", "./": "", "a/": "a", "./a/../b": "b"} {
		if got := Cwd(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
