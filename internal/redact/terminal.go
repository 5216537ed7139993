package redact

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ForTerminal is s for one line of a person's terminal: control characters (C0, C1, line ends
// and tabs too), bidirectional and zero-width controls and blank letters (Hangul fillers) are
// shown as escapes, so that a text can neither move the cursor nor pretend to be another. JSON output escapes them by itself.
func ForTerminal(s string) string { return visible(s, "") }

// ForTerminalBlock is ForTerminal for a text of several lines: line ends and tabs stay.
func ForTerminalBlock(s string) string { return visible(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

func visible(s, keep string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if strings.IndexFunc(s, hiddenRune) < 0 {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		switch {
		case !hiddenRune(r) || strings.ContainsRune(keep, r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&out, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

func hiddenRune(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
}
