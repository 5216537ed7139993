package redact_test

import (
	"testing"

	"webcodex/internal/redact"
)

// Letters that are drawn as nothing are shown as escapes too; writing that is drawn, and what an
// emoji is made of, stays as it is.
func TestForTerminalShowsBlankLetters(t *testing.T) {
	for in, want := range map[string]string{
		"a\u3164b": `a\u3164b`, "a\u115fb": `a\u115fb`, "a\u1160b": `a\u1160b`, "a\uffa0b": `a\uffa0b`, "a\u034fb": `a\u034fb`,
		"한글 ㅎ": "한글 ㅎ", "❤️": "❤️", "नमस्ते": "नमस्ते",
	} {
		if got := redact.ForTerminal(in); got != want {
			t.Errorf("ForTerminal(%+q) = %q, want %q", in, got, want)
		}
	}
}
