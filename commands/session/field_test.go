package session_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

const family = "👩‍👩‍👧‍👦"

// fieldTexts are texts as they come from people and hosts.
var fieldTexts = map[string]string{
	"han":              strings.Repeat("修复失败的测试。", 60),
	"right to left":    "תקן את הבדיקה \u202eevil\u202c \u200fوأصلح\u200e",
	"families":         strings.Repeat(family, 100),
	"flags":            strings.Repeat("🇩🇪", 200),
	"accents in parts": strings.Repeat("e\u0301", 300),
	"terminal escapes": "\x1b]0;owned\x07\x1b[2J\x1b[31mred\u009b31m\u0007",
	"line ends":        "first\u2028second\u2029third\u0085fourth",
	"a null":           "a\x00b",
	"replacement":      "half of a pair: \ufffd",
	"blank inside":     "\u200b\u2060 x \ufeff",
}

// Whatever script or control a text is in, it is stored, bounded without splitting what a
// person sees as one character, survives a restart as it is, and every view of it is JSON.
//
// Covers: SES-57, LST-06, STA-11
func TestTextsFromTheField(t *testing.T) {
	e := calltest.New(t, nil)
	ids := map[string]event.SessionID{}
	views := func(id event.SessionID) (out []view.Head) {
		sum := calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": id})
		in := sum.Events[0].Instruction
		return []view.Head{sum.Head, {Title: in.Text}, calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": id, "limit": 1}).Head}
	}
	before := map[string][]view.Head{}
	for name, text := range fieldTexts {
		s := start(e, args{"project": alpha, "instruction": text})
		ids[name] = s.SessionID
		title := s.Session.Title
		if !utf8.ValidString(title) || utf8.RuneCountInString(title) > session.MaxTitle || title == "" ||
			!strings.HasPrefix(strings.TrimSpace(text), title) {
			t.Errorf("%s: the title is %+q", name, title)
		}
		for _, whole := range []string{family, "🇩🇪", "e\u0301"} {
			if strings.HasPrefix(text, whole) && strings.Trim(title, whole) != "" || strings.HasPrefix(text, whole) && len(title)%len(whole) != 0 {
				t.Errorf("%s: the title splits a character: %+q", name, title[max(0, len(title)-40):])
			}
		}
		before[name] = views(s.SessionID)
		if got := before[name][1].Title; got != text && utf8.RuneCountInString(text) <= session.MaxInstruction {
			t.Errorf("%s: the instruction is %+q", name, got)
		}
		again := start(e, args{"session_id": string(s.SessionID), "instruction": "another"})
		if again.Session.Title != title {
			t.Errorf("%s: a later instruction renamed it to %q", name, again.Session.Title)
		}
		before[name] = views(s.SessionID)
	}
	e.Reopen()
	for name, id := range ids {
		if d := cmp.Diff(before[name], views(id)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		for _, spec := range []struct {
			out json.RawMessage
		}{{mustOutput(e, &session.ReadHandoff, args{"session_id": id})}, {mustOutput(e, &session.ReadSummary, args{"session_id": id})}} {
			if !json.Valid(spec.out) || !utf8.Valid(spec.out) {
				t.Errorf("%s: %q", name, spec.out)
			}
		}
	}
	page := calltest.Must[view.Page](e, &session.ListSessions, args{"project": alpha, "limit": 20})
	if page.Returned != len(fieldTexts) {
		t.Errorf("%d of %d rows", page.Returned, len(fieldTexts))
	}
}

// The title is the first accepted instruction's first line, redacted and bounded; a secret in
// it is stored nowhere.
//
// Covers: SES-57, LST-06
func TestTitleIsTheFirstInstruction(t *testing.T) {
	e := calltest.New(t, nil)
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	s := start(e, args{"project": alpha, "instruction": "\n  push with " + secret + " to main\nand then more"})
	if want := "push with [redacted] to main"; s.Session.Title != want {
		t.Errorf("%q", s.Session.Title)
	}
	for _, c := range e.Commits(s.SessionID) {
		if body, err := c.Encode(); err != nil || strings.Contains(string(body), secret[4:]) {
			t.Errorf("%s", body)
		}
	}
	if long := start(e, args{"project": alpha, "instruction": strings.Repeat("x ", 500)}); utf8.RuneCountInString(long.Session.Title) > session.MaxTitle {
		t.Errorf("%d characters", len(long.Session.Title))
	}
}
