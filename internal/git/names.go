package git

import (
	"strings"
	"unicode/utf8"

	"webcodex/internal/relpath"
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
// that folds names, could take for .git.
func Internal(path string) bool { return relpath.IsGit(path) }
