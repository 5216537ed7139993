package proc_test

import (
	"strings"
	"testing"

	"webcodex/internal/proc"
)

func TestTheLastLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "\n\n": "", "a\nb": "b", "a\nb\n": "b", "a\nPassword: ": "Password: ", "\x1b[1mname\x1b[0m? ": "name? ",
		"10%\r50%\rready? ": "ready? ", "50%\r": "50%", "x\x1b]0;title\x07y": "xy", "x\x1b[2Ky\x1b[3": "xy", "ab\bc": "ac", "\bx": "x",
		"a\u202eb\u200bc\u009b": "abc", "one\ttwo": "one two", strings.Repeat("é", 500): strings.Repeat("é", 200),
		"\x1b(B\x1b[?25h> ": "> ",
	} {
		if got := proc.LastLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
