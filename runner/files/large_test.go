package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"webcodex/runner/wire"
)

// largeGround has n small files in n/250 directories, git-added when in a repository.
func largeGround(t testing.TB, n int, repo bool) *ground {
	g := newGround(t)
	for i := range n {
		dir := filepath.Join(g.dir, fmt.Sprintf("p%d/q%d", i/5000, i/250))
		if i%250 == 0 {
			g.must(os.MkdirAll(dir, 0o755))
		}
		text := fmt.Sprintf("file %d\nsome text to look at\n", i)
		if i%1000 == 999 {
			text += "needle\n"
		}
		g.must(os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(text), 0o644))
	}
	if repo {
		g.git("init", "-q")
	}
	return g
}

// A repository with 50,000 files is searched whole by either engine, listed and looked at,
// within the same bounds.
func TestFiftyThousandFiles(t *testing.T) {
	g := largeGround(t, 50_000, true)
	for _, program := range []func() string{noRipgrep, findRipgrep} {
		g.s.ripgrep = program
		r := g.search(wire.SearchQuery{Pattern: "needle", Limit: 100, TimeoutSecs: wire.MaxSearchTimeoutSecs})
		if r.Count != 50 || !r.CountComplete || r.Truncated {
			t.Errorf("%+v", r)
		}
	}
	if r := g.search(wire.SearchQuery{Pattern: "text", Limit: 10}); r.Count != 10 || r.TruncationReason != wire.TruncatedLimit {
		t.Errorf("%d %s", r.Count, r.TruncationReason)
	}
	o, f := ask(g, g.s.overview, wire.OverviewIn{MaxDepth: 4, Limit: 500})
	if f != nil || o.Scan.Entries > 500 || o.Scan.Entries < 200 || !o.Scan.Truncated {
		t.Errorf("%+v %s", o.Scan, told(f))
	}
	for i := range 3000 {
		g.file(fmt.Sprintf("flat/%05d", i), "")
	}
	l, f := ask(g, g.s.list, wire.ListFilesIn{Path: "flat", Limit: 5000})
	if f != nil || l.Returned > wire.MaxListFiles || l.Returned < 500 || l.Total != 3000 || !l.Truncated || l.Entries[0].Path != "flat/00000" {
		t.Errorf("%d of %d %s", l.Returned, l.Total, told(f))
	}
}

func BenchmarkSearch(b *testing.B) {
	g := largeGround(b, 20_000, true)
	for name, program := range map[string]func() string{"native": noRipgrep, "ripgrep": findRipgrep} {
		b.Run(name, func(b *testing.B) {
			g.s.ripgrep = program
			for b.Loop() {
				if r := g.search(wire.SearchQuery{Pattern: "needle"}); r.Count != 20 {
					b.Fatal(r)
				}
			}
		})
	}
}

func BenchmarkEditOneFile(b *testing.B) {
	g := newGround(b)
	g.file("a", "x\n")
	for i := 0; b.Loop(); i++ {
		from, to := "x", "y"
		if i%2 == 1 {
			from, to = to, from
		}
		if _, f := g.edit(editOf("a", replaceEdit(from, to))); f != nil {
			b.Fatal(told(f))
		}
	}
}
