package main

import (
	"unicode"
	"unicode/utf8"

	"webcodex/internal/redact"
)

// clean makes untrusted text harmless on one line of a terminal. All output for people goes
// through it or through cleanLines (faults.md 4, Untrusted text).
func clean(s string) string { return redact.ForTerminal(s) }

// cleanLines is clean for text of several lines.
func cleanLines(s string) string { return redact.ForTerminalBlock(s) }

// hostile characters move the cursor, hide or reorder text: controls and format characters.
func hostile(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// shorten cuts to n characters, with a mark where something is missing.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	kept, _ := redact.Cut(s, n-1)
	return kept + "…"
}
