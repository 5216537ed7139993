package relpath

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// IsGit reports whether a slash-separated path has a component that git, or a file system
// that folds names, could take for .git: any case, composed or not, with trailing dots and
// spaces, ignorable code points, the short name of old Windows file systems, or a stream name
// (faults.md 4, Files).
func IsGit(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if isGitName(part) {
			return true
		}
	}
	return false
}

func isGitName(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if ignorable(r) {
			return -1
		}
		return r
	}, norm.NFKC.String(name))
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// ignorable code points vanish when some file systems compare names.
func ignorable(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
