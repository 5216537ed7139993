package gitops

import "strings"

// chars is the length of s inside a JSON string, in characters.
func chars(s string) int {
	n := 0
	for _, r := range s {
		n += charLen(r)
	}
	return n
}

func charLen(r rune) int {
	switch {
	case r == '\n', r == '\t', r == '\r', r == '"', r == '\\', r == '\b', r == '\f':
		return 2
	case r < 0x20, r == 0x2028, r == 0x2029:
		return 6
	}
	return 1
}

// clip keeps the first most characters of untrusted text as valid UTF-8.
func clip(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range s {
		if most == 0 {
			return s[:i] + "…"
		}
		most--
	}
	return s
}

// clamp gives limit a default and a ceiling (ruling 8).
func clamp(limit, absent, most int) int {
	if limit <= 0 {
		return absent
	}
	return min(limit, most)
}
