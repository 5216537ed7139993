package session

import "webcodex/internal/redact"

// cut gives the first n characters of s, valid UTF-8 always, and whether some are missing.
func cut(s string, n int) (string, bool) { return redact.Cut(s, n) }

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
