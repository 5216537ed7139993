package lsp

import (
	"strings"
	"unicode/utf8"

	"webcodex/runner/wire"
)

// Encodings of the protocol's columns.
const (
	utf8Units  = "utf-8"
	utf16Units = "utf-16"
	utf32Units = "utf-32"
)

// lines is a text by its lines, without their ends.
type lines []string

func linesOf(text string) lines {
	all := strings.Split(text, "\n")
	for i, l := range all {
		all[i] = strings.TrimSuffix(l, "\r")
	}
	return all
}

// units is what a code point counts in an encoding.
func units(r rune, encoding string) int {
	switch encoding {
	case utf32Units:
		return 1
	case utf8Units:
		return utf8.RuneLen(r)
	}
	if r > 0xffff {
		return 2
	}
	return 1
}

// encode turns a line and a column of ours, both from 1, into a position. The column after the last
// character is one too.
func (l lines) encode(line, column int, encoding string) (position, bool) {
	if line < 1 || line > len(l) || column < 1 {
		return position{}, false
	}
	at, n := 0, 1
	for _, r := range l[line-1] {
		if n == column {
			return position{line - 1, at}, true
		}
		at, n = at+units(r, encoding), n+1
	}
	return position{line - 1, at}, n == column
}

// decode is the way back. A position inside a character is the character's.
func (l lines) decode(p position, encoding string) (line, column int, ok bool) {
	if p.Line == len(l) && p.Character == 0 {
		return len(l) + 1, 1, true // after the last line end
	}
	if p.Line < 0 || p.Line >= len(l) || p.Character < 0 {
		return 0, 0, false
	}
	at, n := 0, 1
	for _, r := range l[p.Line] {
		w := units(r, encoding)
		if at+w > p.Character {
			return p.Line + 1, n, true
		}
		at, n = at+w, n+1
	}
	// Past the end of a line counts as its end, as the specification says.
	return p.Line + 1, n, true
}

func (l lines) span(r textRange, encoding string) (wire.Span, bool) {
	var s wire.Span
	var ok, okEnd bool
	s.Line, s.Column, ok = l.decode(r.Start, encoding)
	s.EndLine, s.EndColumn, okEnd = l.decode(r.End, encoding)
	return s, ok && okEnd
}

// preview is a line's beginning, for a reader.
func (l lines) preview(line int) string {
	if line < 1 || line > len(l) {
		return ""
	}
	return clip(strings.TrimSpace(l[line-1]), previewChars)
}

// clip bounds a text that a server gives, and takes control characters out of it but for line ends
// and tabs.
func clip(s string, chars int) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if n++; n > chars {
			b.WriteRune('…')
			break
		}
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}
