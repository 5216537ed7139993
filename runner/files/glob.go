package files

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// globs selects paths: any of include (all where there is none), none of exclude.
type globs struct{ include, exclude []*regexp.Regexp }

func newGlobs(include, exclude []string) (globs, error) {
	var g globs
	for _, l := range []struct {
		from []string
		to   *[]*regexp.Regexp
	}{{include, &g.include}, {exclude, &g.exclude}} {
		if len(l.from) > wire.MaxGlobs {
			return g, badGlob("there are more than %d globs", wire.MaxGlobs)
		}
		for _, text := range l.from {
			re, err := compileGlob(text)
			if err != nil {
				return g, err
			}
			*l.to = append(*l.to, re)
		}
	}
	return g, nil
}

func (g globs) match(path string) bool {
	hit := len(g.include) == 0
	for _, re := range g.include {
		hit = hit || re.MatchString(path)
	}
	for _, re := range g.exclude {
		hit = hit && !re.MatchString(path)
	}
	return hit
}

func badGlob(format string, args ...any) error {
	return fault.New(fault.InvalidArguments, format, args...).WithReason("invalid_glob").
		WithNext("use * ? [..] {a,b} within a name and ** for any directories")
}

// compileGlob reads a glob as gitignore does: without a slash it matches a name anywhere, with
// one the path from the root; what lies below a matched directory is matched too.
func compileGlob(text string) (*regexp.Regexp, error) {
	if text == "" || utf8.RuneCountInString(text) > wire.MaxGlobChars || !utf8.ValidString(text) {
		return nil, badGlob("a glob must have 1 to %d characters", wire.MaxGlobChars)
	}
	glob := strings.TrimSuffix(strings.TrimPrefix(text, "./"), "/")
	anchored := strings.Contains(glob, "/")
	glob = strings.TrimPrefix(glob, "/")
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	if !anchored {
		b.WriteString(`(?:.*/)?`)
	}
	if err := translateGlob(&b, glob); err != nil {
		return nil, err
	}
	b.WriteString(`(?:/.*)?\z`)
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, badGlob("a glob could not be read")
	}
	return re, nil
}

func translateGlob(b *strings.Builder, glob string) error {
	depth := 0
	for i := 0; i < len(glob); {
		rest := glob[i:]
		switch c := glob[i]; {
		case strings.HasPrefix(rest, "**/") && (i == 0 || glob[i-1] == '/'):
			b.WriteString(`(?:.*/)?`)
			i += 3
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`.*`)
			i += 2
		case c == '*':
			b.WriteString(`[^/]*`)
			i++
		case c == '?':
			b.WriteString(`[^/]`)
			i++
		case c == '[':
			n, err := translateSet(b, rest)
			if err != nil {
				return err
			}
			i += n
		case c == '{':
			depth++
			b.WriteString(`(?:`)
			i++
		case c == '}' && depth > 0:
			depth--
			b.WriteString(`)`)
			i++
		case c == ',' && depth > 0:
			b.WriteString(`|`)
			i++
		case c == '\\' && len(rest) > 1:
			i++
			fallthrough
		default:
			_, size := utf8.DecodeRuneInString(glob[i:])
			b.WriteString(regexp.QuoteMeta(glob[i : i+size]))
			i += size
		}
	}
	if depth > 0 {
		return badGlob("a glob has an open brace")
	}
	return nil
}

// translateSet writes one bracket expression and gives its length.
func translateSet(b *strings.Builder, rest string) (int, error) {
	from := 1
	if strings.HasPrefix(rest[1:], "!") || strings.HasPrefix(rest[1:], "^") {
		from = 2
	}
	if from >= len(rest) {
		return 0, badGlob("a glob has an open bracket")
	}
	// A bracket right at the start stands for itself.
	end := strings.IndexByte(rest[from+1:], ']')
	if end < 0 {
		return 0, badGlob("a glob has an open bracket")
	}
	end += from + 1
	b.WriteByte('[')
	if from == 2 {
		b.WriteString(`^/`)
	}
	for _, r := range rest[from:end] {
		if r != '-' && r < utf8.RuneSelf {
			b.WriteString(regexp.QuoteMeta(string(r)))
			continue
		}
		b.WriteRune(r)
	}
	b.WriteByte(']')
	return end + 1, nil
}
