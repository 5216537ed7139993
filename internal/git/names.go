package git

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Show is a file name as it may be shown: itself where it is UTF-8, else with every byte that
// is not, and every percent sign, escaped as %XX, and lossy true (shapes.md 2).
func Show(name string) (shown string, lossy bool) {
	if utf8.ValidString(name) {
		return name, false
	}
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 || r == '%' {
			b.WriteByte('%')
			b.WriteByte(hex[name[i]>>4])
			b.WriteByte(hex[name[i]&15])
			i++
			continue
		}
		b.WriteString(name[i : i+size])
		i += size
	}
	return b.String(), true
}

// Internal reports whether a slash-separated path has a component that git, or a file system
// that folds names, could take for .git: any case, composed or not, with trailing dots and
// spaces, ignorable code points, the short name of old Windows file systems, or a stream name
// (faults.md 4, Files).
func Internal(path string) bool {
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if internalName(part) {
			return true
		}
	}
	return false
}

func internalName(name string) bool {
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
