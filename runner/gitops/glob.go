package gitops

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
)

const maxGlobChars = 256

// glob is one compiled pattern: * and ? stay within a component, ** goes across, [abc] is a
// class, {a,b} alternatives. A pattern without a slash is matched against the last component.
type glob struct {
	re   *regexp.Regexp
	base bool
}

func (g glob) match(path string) bool {
	if g.base {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return g.re.MatchString(path)
}

func compile(pattern string) (glob, error) {
	bad := fault.New(fault.InvalidArguments, "a glob could not be read").WithField("globs").
		WithNext("use *, **, ?, [abc] and {a,b}, at most %d characters", maxGlobChars)
	if pattern == "" || utf8.RuneCountInString(pattern) > maxGlobChars {
		return glob{}, bad
	}
	g := glob{base: !strings.Contains(pattern, "/")}
	var b strings.Builder
	b.WriteString(`(?s)^`)
	open := 0
	for in := strings.TrimPrefix(pattern, "/"); in != ""; {
		taken, ok := translate(&b, in, &open)
		if !ok {
			return glob{}, bad
		}
		in = in[taken:]
	}
	b.WriteString(`$`)
	re, err := regexp.Compile(b.String())
	if err != nil || open != 0 {
		return glob{}, bad
	}
	g.re = re
	return g, nil
}

// translate turns the beginning of in into regular expression text and says how much it took.
func translate(b *strings.Builder, in string, open *int) (taken int, ok bool) {
	switch {
	case strings.HasPrefix(in, "**/"):
		b.WriteString(`(?:.*/)?`)
		return 3, true
	case strings.HasPrefix(in, "**"):
		b.WriteString(`.*`)
		return 2, true
	}
	switch in[0] {
	case '*':
		b.WriteString(`[^/]*`)
	case '?':
		b.WriteString(`[^/]`)
	case '{':
		*open++
		b.WriteString(`(?:`)
	case '}':
		if *open--; *open < 0 {
			return 0, false
		}
		b.WriteString(`)`)
	case ',':
		if *open > 0 {
			b.WriteString(`|`)
		} else {
			b.WriteString(`,`)
		}
	case '[':
		return class(b, in)
	case '\\':
		if len(in) < 2 {
			return 0, false
		}
		_, size := utf8.DecodeRuneInString(in[1:])
		b.WriteString(regexp.QuoteMeta(in[1 : 1+size]))
		return 1 + size, true
	default:
		_, size := utf8.DecodeRuneInString(in)
		b.WriteString(regexp.QuoteMeta(in[:size]))
		return size, true
	}
	return 1, true
}

func class(b *strings.Builder, in string) (taken int, ok bool) {
	from := 1
	if len(in) > 1 && (in[1] == '!' || in[1] == '^') {
		from = 2
	}
	if from >= len(in) {
		return 0, false
	}
	end := strings.IndexByte(in[from+1:], ']')
	if end < 0 {
		return 0, false
	}
	end += from + 1
	b.WriteString(`[`)
	if from == 2 {
		b.WriteString(`^/`)
	}
	b.WriteString(strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(in[from:end]))
	b.WriteString(`]`)
	return end + 1, true
}
