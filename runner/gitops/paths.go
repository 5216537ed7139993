package gitops

import (
	"path"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/git"
)

// relative checks paths that a caller named: project-relative with forward slashes, in their
// shortest spelling. They go to git as literal names, so none is a pattern.
func relative(field string, paths []string, most int) ([]string, error) {
	if len(paths) > most {
		return nil, fault.New(fault.InvalidArguments, "%s has more than %d entries", field, most).WithField(field)
	}
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		reason := ""
		switch {
		case p == "" || len(p) > git.MaxPathBytes || strings.ContainsRune(p, 0) || !utf8.ValidString(p):
			reason = "malformed"
		case strings.HasPrefix(p, "/"):
			reason = "absolute"
		default:
			if p = path.Clean(p); p == ".." || strings.HasPrefix(p, "../") {
				reason = "outside_project"
			}
		}
		if reason != "" {
			return nil, fault.New(fault.InvalidPath, "a path must be project-relative, at most %d bytes of UTF-8, and not lead out of the Project",
				git.MaxPathBytes).WithField(field).WithReason(reason)
		}
		out = append(out, p)
	}
	return out, nil
}

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
