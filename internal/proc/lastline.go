package proc

import (
	"regexp"
	"strings"
	"unicode"
)

// LastLine is what stands on the last line of a text that went to a terminal, or on the line before
// where that one is empty: without what moves and colours, after the last return to the line's
// begin, its last maxLine characters.
func LastLine(text string) string {
	text = sequences.ReplaceAllString(text, "")
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimRight(lines[i], "\r")
		line = line[strings.LastIndexByte(line, '\r')+1:]
		if line = plainLine(line); strings.TrimSpace(line) != "" {
			runes := []rune(line)
			return string(runes[max(0, len(runes)-maxLine):])
		}
	}
	return ""
}

// sequences are what a program tells the terminal and not the reader.
var sequences = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*(?:[@-~]|$)|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// plainLine takes out what cannot be seen, and what a backspace takes back.
func plainLine(line string) string {
	out := make([]rune, 0, len(line))
	for _, r := range line {
		switch {
		case r == '\b':
			out = out[:max(0, len(out)-1)]
		case r == '\t':
			out = append(out, ' ')
		case !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point):
			out = append(out, r)
		}
	}
	return string(out)
}
