package files

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// pattern finds the lines that a regular expression matches.
type pattern struct {
	re *regexp.Regexp
	// needed are texts of which every matching line has one; empty: nothing is known.
	needed []string
	fold   bool // in any case
}

// newPattern reads a pattern in Go's syntax (RE2: linear time whatever the text).
func newPattern(text string) (*pattern, error) {
	bad := func(err error) (*pattern, error) {
		return nil, fault.Wrap(err, fault.InvalidArguments, "the pattern is not a valid regular expression").
			WithReason("invalid_pattern").WithNext("use RE2 syntax; quote special characters with a backslash")
	}
	if text == "" || utf8.RuneCountInString(text) > wire.MaxPatternChars || !utf8.ValidString(text) {
		return nil, fault.New(fault.InvalidArguments, "a pattern must have 1 to %d characters", wire.MaxPatternChars).
			WithReason("invalid_pattern")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return bad(err)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return bad(err)
	}
	p := &pattern{re: re}
	p.needed, p.fold = needs(tree.Simplify())
	return p, nil
}

// maxNeeded is how many alternatives are worth a look.
const maxNeeded = 16

// needs gives texts of which any match holds at least one, and whether in any case; none
// where nothing can be said.
func needs(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		// An invalid byte matches U+FFFD, so that character proves nothing.
		if strings.ContainsAny(text, "\n\r\x00\uFFFD") {
			return nil, false
		}
		return []string{text}, re.Flags&syntax.FoldCase != 0
	case syntax.OpCapture, syntax.OpPlus:
		return needs(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needs(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		var fold bool
		for _, sub := range re.Sub {
			if got, f := needs(sub); shortest(got) > shortest(best) {
				best, fold = got, f
			}
		}
		return best, fold
	case syntax.OpAlternate:
		var all []string
		fold := false
		for _, sub := range re.Sub {
			got, f := needs(sub)
			if len(got) == 0 {
				return nil, false
			}
			all, fold = append(all, got...), fold || f
		}
		if len(all) > maxNeeded {
			return nil, false
		}
		return all, fold
	}
	return nil, false
}

func shortest(list []string) int {
	n := 0
	for i, s := range list {
		if i == 0 || len(s) < n {
			n = len(s)
		}
	}
	return n
}

// hit is one matching line: its number from 1, its bounds without the line end, and where in
// it the match begins.
type hit struct{ line, start, end, at int }

// each calls f for every matching line of text until f says no.
func (p *pattern) each(text []byte, f func(hit) bool) {
	line, counted := 1, 0 // line is the number of the line that holds counted
	for from := 0; from < len(text); {
		if len(p.needed) == 1 && !p.fold {
			i := bytes.Index(text[from:], []byte(p.needed[0]))
			if i < 0 {
				return
			}
			from = 1 + bytes.LastIndexByte(text[:from+i], '\n')
		}
		end, next := len(text), len(text)
		if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
			end, next = from+i, from+i+1
		}
		if end > from && text[end-1] == '\r' {
			end--
		}
		if m := p.re.FindIndex(text[from:end]); m != nil {
			line += bytes.Count(text[counted:from], []byte("\n"))
			counted = from
			if !f(hit{line, from, end, m[0]}) {
				return
			}
		}
		from = next
	}
}
