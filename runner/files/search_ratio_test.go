package files

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"webcodex/internal/bench"
	"webcodex/runner/wire"
)

// TestRatioSearch compares a search over a repository of 4,000 files with ripgrep's own, asked
// for the same matches in the same form.
func TestRatioSearch(t *testing.T) {
	bench.Skip(t)
	program := findRipgrep()
	if program == "" {
		t.Skip("ripgrep is not installed")
	}
	g := largeGround(t, 4000, true)
	g.git("add", ".")
	bench.Run(t, bench.Comparison{Name: "search_project_texts over 4,000 files vs rg itself", Bar: 1.5, AtMost: true,
		Ours: func() time.Duration {
			begun := time.Now()
			if r := g.search(wire.SearchQuery{Pattern: "needle"}); r.Count != 4 || !r.CountComplete {
				t.Fatalf("%+v", r)
			}
			return time.Since(begun)
		},
		Yardstick: func() time.Duration {
			begun := time.Now()
			cmd := exec.Command(program, "--json", "--hidden", "--glob=!.git", "needle")
			cmd.Dir = g.dir
			out, err := cmd.Output()
			if err != nil || strings.Count(string(out), `"type":"match"`) != 4 {
				t.Fatalf("%v %s", err, out)
			}
			return time.Since(begun)
		}})
}
