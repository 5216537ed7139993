package session

import (
	"strings"
	"unicode/utf8"
)

// cut gives the first n characters of s, valid UTF-8 always, and whether some are missing.
func cut(s string, n int) (string, bool) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s, false
	}
	i := 0
	for k := 0; k < n && i < len(s); k++ {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return s[:i], i < len(s)
}

func excerpt(s string, n int) Excerpt {
	t, cutOff := cut(s, n)
	return Excerpt{Text: t, Truncated: cutOff}
}

func atom(s string) string {
	t, _ := cut(s, MaxAtomChars)
	return t
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func toolName(s string) string {
	t, _ := cut(s, MaxToolChars)
	return t
}
