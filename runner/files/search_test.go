package files

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func noRipgrep() string { return "" }

func TestSearchMatches(t *testing.T) {
	g := newGround(t)
	g.file("a.go", "one\ntwo needle\nthree\nfour needle needle\nfive\n")
	g.file("b/c.txt", "needle\r\nlast")
	g.file("z.bin", "needle\x00")
	r := g.search(wire.SearchQuery{Pattern: "needle", Before: 1, After: 1})
	want := []wire.SearchMatch{
		{Path: "a.go", Line: 2, Preview: "two needle", Before: []string{"one"}, After: []string{"three"}},
		{Path: "a.go", Line: 4, Preview: "four needle needle", Before: []string{"three"}, After: []string{"five"}},
		{Path: "b/c.txt", Line: 1, Preview: "needle", Before: []string{}, After: []string{"last"}},
	}
	if !r.Success || !reflect.DeepEqual(r.Matches, want) || r.Count != 3 || !r.CountComplete || r.Truncated || r.Backend != wire.BackendNative {
		t.Errorf("%+v", r)
	}
	for _, tc := range []struct {
		pattern string
		lines   int
	}{
		{"^needle$", 1}, {"NEEDLE", 0}, {"(?i)NEEDLE", 3}, {"^last$", 1}, {`\bfour\b.*\bneedle\b`, 1}, {"x*", 7}, {"one\ntwo", 0}, {`one\stwo`, 0}, {"(one|last)", 2},
	} {
		if r := g.search(wire.SearchQuery{Pattern: tc.pattern}); r.Count != tc.lines || !r.Success {
			t.Errorf("%q: %d %+v", tc.pattern, r.Count, r)
		}
	}
}

func TestSearchModes(t *testing.T) {
	g := newGround(t)
	for i := range 5 {
		g.file(fmt.Sprintf("f%d", i), strings.Repeat("needle\n", i))
	}
	r := g.search(wire.SearchQuery{Pattern: "needle", Mode: wire.ModeFiles})
	if r.Count != 4 || len(r.Files) != 4 || r.Files[0] != (wire.SearchFile{Path: "f1"}) || !r.CountComplete {
		t.Errorf("%+v", r)
	}
	r = g.search(wire.SearchQuery{Pattern: "needle", Mode: wire.ModeFiles, Limit: 2})
	if r.Count != 2 || !r.Truncated || r.CountComplete || r.TruncationReason != wire.TruncatedLimit {
		t.Errorf("%+v", r)
	}
	r = g.search(wire.SearchQuery{Pattern: "needle", Mode: wire.ModeCount, Limit: 2})
	if r.Count != 10 || !r.CountComplete || len(r.Files) != 2 || r.Files[1] != (wire.SearchFile{Path: "f2", Count: 2}) || !r.Truncated {
		t.Errorf("%+v", r)
	}
	r = g.search(wire.SearchQuery{Pattern: "needle", Limit: 3})
	if r.Count != 3 || r.CountComplete || r.TruncationReason != wire.TruncatedLimit {
		t.Errorf("%+v", r)
	}
	if r = g.search(wire.SearchQuery{Pattern: "needle", Limit: 10}); r.Count != 10 || !r.CountComplete || r.Truncated {
		t.Errorf("%+v", r)
	}
}

func TestSearchRefusals(t *testing.T) {
	g := newGround(t)
	g.file("a", "needle\n")
	globs := make([]string, wire.MaxGlobs+1)
	for i := range globs {
		globs[i] = "*"
	}
	queries := []wire.SearchQuery{
		{Pattern: ""}, {Pattern: "("}, {Pattern: "a{1,5000}"}, {Pattern: strings.Repeat("x", wire.MaxPatternChars+1)},
		{Pattern: "x", Include: []string{"["}}, {Pattern: "x", Exclude: []string{"{a"}}, {Pattern: "x", Include: globs}, {Pattern: "x", Mode: "lines"},
	}
	reasons := []string{"invalid_pattern", "invalid_pattern", "invalid_pattern", "invalid_pattern", "invalid_glob", "invalid_glob", "invalid_glob", "invalid_mode"}
	out, f := ask(g, g.s.searchTexts, wire.SearchTextsIn{Queries: queries})
	if f != nil {
		t.Fatal(told(f))
	}
	for i, r := range out.Items {
		if r.Success || r.ErrorKind != string(fault.InvalidArguments) || r.Reason != reasons[i] || r.Index != i || r.Matches == nil {
			t.Errorf("%d: %+v", i, r)
		}
	}
	_, f = ask(g, g.s.searchTexts, wire.SearchTextsIn{})
	wants(g, f, fault.InvalidArguments, "")
	out, f = ask(g, g.s.searchTexts, wire.SearchTextsIn{Queries: []wire.SearchQuery{{Pattern: "("}, {Pattern: "needle"}}})
	if f != nil || out.Items[0].Success || out.Items[1].Count != 1 {
		t.Errorf("one bad query spoiled the other: %+v", out)
	}
}

func TestGlobs(t *testing.T) {
	for _, tc := range []struct {
		glob string
		yes  []string
		no   []string
	}{
		{"*.go", []string{"a.go", "x/y/a.go"}, []string{"a.gox", "go", "a.go.txt"}},
		{"src", []string{"src", "src/a", "x/src/b"}, []string{"srca", "asrc/b"}},
		{"src/*.go", []string{"src/a.go"}, []string{"x/src/a.go", "src/x/a.go"}},
		{"/a.go", []string{"a.go"}, []string{"x/a.go"}},
		{"src/**/*.ts", []string{"src/a.ts", "src/x/y/a.ts"}, []string{"a.ts", "src/a.js"}},
		{"**/test", []string{"test", "a/test/x"}, []string{"tests"}},
		{"vendor/", []string{"vendor/a", "x/vendor/b"}, []string{"vendored"}},
		{"*.{js,ts}", []string{"a.js", "b/a.ts"}, []string{"a.jsx"}},
		{"[a-c]?.txt", []string{"ab.txt", "cx.txt"}, []string{"d1.txt", "a.txt"}},
		{"[!a].txt", []string{"b.txt"}, []string{"a.txt"}},
		{`\*.txt`, []string{"*.txt"}, []string{"a.txt"}},
		{"a+b(c).txt", []string{"a+b(c).txt"}, []string{"aab(c).txt"}},
		{"💥*", []string{"💥x"}, []string{"x💥"}},
		{"[]x].txt", []string{"].txt", "x.txt"}, []string{"a.txt"}},
	} {
		g, err := newGlobs([]string{tc.glob}, nil)
		if err != nil {
			t.Errorf("%s: %v", tc.glob, err)
			continue
		}
		for _, p := range tc.yes {
			if !g.match(p) {
				t.Errorf("%s does not match %s", tc.glob, p)
			}
		}
		for _, p := range tc.no {
			if g.match(p) {
				t.Errorf("%s matches %s", tc.glob, p)
			}
		}
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*", "**/a", "[a-", "[!", "{a,{b}}", "\\", "[z-a]", "[[:x:]]", "[\\]]"} {
		f.Add(s, "a/b")
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		if re, err := compileGlob(glob); err == nil {
			re.MatchString(path)
		} else if fault.KindOf(err) != fault.InvalidArguments {
			t.Fatal(err)
		}
	})
}

// What git ignores is left out unless it is tracked or its directory is named; git's own
// files and nested git directories are left out always.
func TestSearchFollowsGitIgnore(t *testing.T) {
	g := newGround(t)
	g.git("init", "-q")
	for _, f := range []string{"tracked.log", "plain.txt", "untracked.txt", "build/out.txt", "ignored.log", ".git/needle", ".hidden/x", "sub/keep.log"} {
		g.file(f, "needle\n")
	}
	g.file(".gitignore", "*.log\nbuild/\n")
	g.file("sub/.gitignore", "!keep.log\n")
	g.git("add", "-f", "tracked.log", "plain.txt", ".gitignore", "sub/.gitignore")
	g.link("link.txt", "plain.txt")
	g.link("linkdir", ".hidden")
	found := func(q wire.SearchQuery) string {
		q.Pattern, q.Mode = "needle", wire.ModeFiles
		r := g.search(q)
		var names []string
		for _, f := range r.Files {
			names = append(names, f.Path)
		}
		return strings.Join(names, " ")
	}
	if got := found(wire.SearchQuery{}); got != ".hidden/x plain.txt sub/keep.log tracked.log untracked.txt" {
		t.Error(got)
	}
	if got := found(wire.SearchQuery{Path: "build"}); got != "build/out.txt" {
		t.Error(got)
	}
	if got := found(wire.SearchQuery{Path: "ignored.log"}); got != "ignored.log" {
		t.Error(got)
	}
	if got := found(wire.SearchQuery{Path: "linkdir"}); got != ".hidden/x" {
		t.Error(got)
	}
	if got := found(wire.SearchQuery{Include: []string{"*.txt"}, Exclude: []string{"plain*"}}); got != "untracked.txt" {
		t.Error(got)
	}
}

// A repository whose configuration names programs runs none of them when it is searched.
func TestSearchRunsNothingOfTheRepository(t *testing.T) {
	g := newGround(t)
	g.git("init", "-q")
	marker := filepath.Join(g.base, "ran")
	run := "touch '" + marker + "'; true"
	g.file("a.txt", "needle\n")
	g.file(".gitattributes", "* filter=evil\n")
	g.git("add", "-A")
	for _, kv := range [][2]string{{"core.fsmonitor", run}, {"filter.evil.clean", run}, {"filter.evil.process", run}, {"core.sshCommand", run}, {"core.pager", run}} {
		g.git("config", kv[0], kv[1])
	}
	g.file(".rgignore", "*\n")
	g.file(".ripgreprc", "--pre=touch\n")
	t.Setenv("RIPGREP_CONFIG_PATH", filepath.Join(g.dir, ".ripgreprc"))
	if r := g.search(wire.SearchQuery{Pattern: "needle"}); r.Count != 1 {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("something of the repository ran")
	}
}

// ripgrepGround is a repository large enough for ripgrep, with what the two engines could
// see differently.
func ripgrepGround(t *testing.T) *ground {
	g := newGround(t)
	if g.s.ripgrep() == "" {
		t.Skip("ripgrep is not installed")
	}
	g.git("init", "-q")
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"needle", "Needle", "NEEDLE", "straße", "STRASSE", "K", "K", "foo", "éfoo", "foo_bar", "a\xffb", "x\ty", "tail"}
	for i := range 400 {
		var b strings.Builder
		for range rng.IntN(6) {
			for range rng.IntN(4) {
				b.WriteString(words[rng.IntN(len(words))] + " ")
			}
			b.WriteString([]string{"\n", "\r\n"}[rng.IntN(2)])
		}
		g.file(fmt.Sprintf("d%d/f%d.%s", i%7, i, []string{"txt", "log", "go"}[i%3]), b.String())
	}
	for name, text := range map[string]string{"utf16": "\xff\xfen\x00e\x00e\x00d\x00l\x00e\x00", "bom": "\ufeffneedle\n", "nul": "needle\n\x00",
		"odd\nname": "needle\n", "-f": "needle\n", "bad\xffname": "needle\n", ".hidden": "needle\n", "sub/.ignore": "*\n", "sub/x": "needle\n",
		"rgignored": "needle\n", ".rgignore": "rgignored\n"} {
		g.file(name, text)
	}
	g.file(".gitignore", "*.log\n")
	g.link("link", "bom")
	g.git("add", "-f", "d1/f1.log", "d2/f16.log", "d0/f0.txt")
	return g
}

// ripgrep only chooses files: with it and without it the answers are the same.
func TestBothEnginesAgree(t *testing.T) {
	g := ripgrepGround(t)
	used := 0
	for _, pattern := range []string{"needle", "(?i)needle", "foo", `\bfoo`, `\Wfoo`, `foo\b`, "K", "(?i)k", "straße", "(?i)strasse", "a.b", "foo|needle",
		"(?i)tail$", "^needle", `\w+_bar`, "[nN]eedle", "a\\x{FFFD}b", "x\\ty", "needle *$", "(needle ){2}", "n+eedle", ".", "(?:foo)?bar"} {
		for _, mode := range []string{wire.ModeMatches, wire.ModeCount, wire.ModeFiles} {
			for _, path := range []string{"", "d3"} {
				q := wire.SearchQuery{Pattern: pattern, Mode: mode, Limit: wire.MaxSearchLimit, Path: path}
				g.s.ripgrep = findRipgrep
				with := g.search(q)
				g.s.ripgrep = noRipgrep
				without := g.search(q)
				if with.Backend == wire.BackendRipgrep {
					used++
				}
				with.Backend = without.Backend
				if !reflect.DeepEqual(with, without) {
					a, _ := json.Marshal(with)
					b, _ := json.Marshal(without)
					t.Errorf("%q %s %q differ:\n%.600s\n%.600s", pattern, mode, path, a, b)
				}
			}
		}
	}
	if used < 30 {
		t.Errorf("ripgrep was used %d times", used)
	}
}

// What a pattern is said to need is in every line that it matches.
func TestNeededTextsAreNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`(\(\?i\))?((ab|b\+|\(a\|bc\)|c\?|\[ab\]|a\{2\}|\(\?:cab\)\+|k|\\b){1,4})`).Draw(t, "pattern")
		p, err := newPattern(pattern)
		if err != nil {
			t.Skip()
		}
		text := rapid.StringMatching(`[abckABCK\x{212A} ]{0,12}`).Draw(t, "text")
		if !p.re.MatchString(text) || len(p.needed) == 0 {
			return
		}
		for _, n := range p.needed {
			quoted := regexp.QuoteMeta(n)
			if p.fold {
				quoted = "(?i)" + quoted
			}
			if regexp.MustCompile(quoted).MatchString(text) {
				return
			}
		}
		t.Fatalf("%q matches %q without any of %q", pattern, text, p.needed)
	})
}

// The fast path over needed texts gives the lines that a plain loop gives.
func TestLinesAreLikeTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([ab]{0,3}(\n|\r\n|\r)){0,8}[ab]{0,3}`).Draw(t, "text")
		p, err := newPattern(rapid.SampledFrom([]string{"a", "ab", "^a", "b$", "a|b", "^$", "a+b", "(?i)A", "[^b]"}).Draw(t, "pattern"))
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		lines := strings.Split(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		for i, l := range lines {
			l = strings.TrimSuffix(l, "\r")
			if i == len(lines)-1 && !strings.HasSuffix(text, "\n") {
				l = lines[i]
				l = strings.TrimSuffix(l, "\r")
			}
			if p.re.MatchString(l) {
				want = append(want, fmt.Sprint(i+1, l))
			}
		}
		p.each([]byte(text), func(h hit) bool {
			got = append(got, fmt.Sprint(h.line, text[h.start:h.end]))
			return true
		})
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %q, want %q", p.re, text, got, want)
		}
	})
}

// A preview is valid UTF-8, bounded, and shows the match, wherever a cut falls.
func TestPreviewsAreCutBetweenCharacters(t *testing.T) {
	for shift := range 4 {
		for _, fill := range []string{"😀", "é", "x"} {
			line := strings.Repeat("x", shift) + strings.Repeat(fill, 2000) + "needle" + strings.Repeat(fill, 2000)
			at := strings.Index(line, "needle")
			got := preview([]byte(line), at)
			if !utf8.ValidString(got) || strings.Contains(got, "\uFFFD") || utf8.RuneCountInString(got) > previewChars+2 || !strings.Contains(got, "needle") {
				t.Errorf("%d %s: %q", shift, fill, got)
			}
		}
	}
	if got := preview([]byte("a\xffb"), 0); got != "a\uFFFDb" {
		t.Errorf("%q", got)
	}
}

// The answers of a call are bounded together, and a small query after large ones gets room.
func TestSearchAnswersAreBounded(t *testing.T) {
	g := newGround(t)
	for i := range 300 {
		g.file(fmt.Sprintf("f%d", i), strings.Repeat("x", 280)+" needle\n"+strings.Repeat("y", 280)+"\n")
	}
	g.file("last", "rare\n")
	queries := make([]wire.SearchQuery, wire.MaxSearchQueries)
	for i := range queries {
		queries[i] = wire.SearchQuery{Pattern: "needle", Limit: wire.MaxSearchLimit, After: 1}
	}
	queries[len(queries)-1].Pattern = "rare"
	out, f := ask(g, g.s.searchTexts, wire.SearchTextsIn{Queries: queries})
	if f != nil {
		t.Fatal(told(f))
	}
	enc, _ := json.Marshal(out)
	if len(enc) > maxBatchBytes+8*1024 {
		t.Errorf("%d bytes", len(enc))
	}
	for i, r := range out.Items[:len(out.Items)-1] {
		if !r.Truncated || r.TruncationReason != wire.TruncatedBytes || r.CountComplete || r.Count == 0 || r.Count != len(r.Matches) {
			t.Errorf("%d: %d %s", i, r.Count, r.TruncationReason)
		}
	}
	if r := out.Items[len(out.Items)-1]; r.Count != 1 || r.Truncated {
		t.Errorf("%+v", r)
	}
}

func TestSearchTellsWhatItLeftOut(t *testing.T) {
	g := newGround(t)
	f, err := g.p.Root.Create("huge")
	g.must(err)
	g.must(f.Truncate(maxSearchBytes + 1))
	f.Close()
	g.file("a", "needle\n")
	r := g.search(wire.SearchQuery{Pattern: "needle"})
	if r.Count != 1 || r.CountComplete || !r.Truncated || r.TruncationReason != wire.TruncatedSize {
		t.Errorf("%+v", r)
	}
}
