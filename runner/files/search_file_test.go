package files

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func TestSearchFileContext(t *testing.T) {
	g := newGround(t)
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "line %d\r\n", i+1)
	}
	g.file("f", b.String())
	ctx := func(pattern string, before, after, limit int) wire.SearchFileOut {
		out, f := ask(g, g.s.searchFile, wire.SearchFileIn{Path: "f", Pattern: pattern, Before: before, After: after, Limit: limit})
		if f != nil {
			t.Fatal(told(f))
		}
		return out
	}
	out := ctx("line (5|8|20)$", 2, 2, 0)
	if out.SHA256 != g.sha("f") || out.TotalLines != 30 || out.EOL != wire.EOLCRLF || out.Count != 3 || !out.CountComplete || out.Truncated {
		t.Errorf("%+v", out)
	}
	// Each line is shown once although the surroundings overlap.
	want := []wire.FileMatch{
		{Line: 5, Preview: "line 5", Before: []string{"line 3", "line 4"}, After: []string{"line 6", "line 7"}},
		{Line: 8, Preview: "line 8", Before: []string{}, After: []string{"line 9", "line 10"}},
		{Line: 20, Preview: "line 20", Before: []string{"line 18", "line 19"}, After: []string{"line 21", "line 22"}},
	}
	if !reflect.DeepEqual(out.Matches, want) {
		t.Errorf("%+v", out.Matches)
	}
	if out = ctx("line", 0, 0, 4); len(out.Matches) != 4 || out.Count != 30 || !out.Truncated || out.TruncationReason != wire.TruncatedLimit {
		t.Errorf("%+v", out)
	}
	if out = ctx("line 1$", 20, 1, 1); len(out.Matches[0].Before) != 0 || out.Matches[0].After[0] != "line 2" {
		t.Errorf("%+v", out)
	}
	_, f := ask(g, g.s.searchFile, wire.SearchFileIn{Path: "f", Pattern: "("})
	wants(g, f, fault.InvalidArguments, "invalid_pattern")
	g.file("bin", "\x00")
	_, f = ask(g, g.s.searchFile, wire.SearchFileIn{Path: "bin", Pattern: "x"})
	wants(g, f, fault.InvalidPath, reasonBinary)
}
