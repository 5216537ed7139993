package gitops

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"webcodex/runner/wire"
)

func TestHygieneFinds(t *testing.T) {
	r := newRepo(t)
	r.write("kept.go", "package x // old trailing \n<<<<<<< old marker\n")
	r.write(".gitignore", "ignored\n")
	r.write("notes.md", "a\n")
	r.write("tracked.bak", "x\n")
	r.commit("base")
	if got := must(t, r.p, hygiene, wire.HygieneIn{}); !got.Clean || got.Verdict != wire.HygieneClean || !got.Complete || len(got.Findings) != 0 {
		t.Errorf("what was there before counts: %+v", got)
	}
	r.write("kept.go", "package x // old trailing \n<<<<<<< old marker\n\nfunc f() {\n\tx := 1 \n\tdbg!(x)\n}\n>>>>>>> branch\n")
	r.write("notes.md", "a\nbreak  \n")
	r.write("fine.txt", "fine\r\n=======\n")
	r.write("conf/.env", "A=b\n")
	r.write("x.orig", "x\n")
	r.write("bin.dat", "a\x00b")
	r.write("ignored", "<<<<<<< HEAD\n")
	r.write("web/node_modules/a/index.js", "debugger;\n")
	r.write("web/node_modules/b/index.js", "debugger;\n")
	inner := newRepoIn(t, filepath.Join(r.dir, "inner"))
	inner.write("f", "<<<<<<< HEAD\n")
	large := filepath.Join(r.dir, "large.txt")
	if err := os.WriteFile(large, nil, 0o644); err != nil || os.Truncate(large, hygieneLarge) != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	got := must(t, r.p, hygiene, wire.HygieneIn{})
	want := map[string]int{foundMarker: 1, foundLeftover: 1, foundWhitespace: 1, foundSensitive: 1, foundTemporary: 1, foundBinary: 2, foundBuild: 1, foundNested: 1, foundLarge: 1}
	if !reflect.DeepEqual(got.Counts, want) || got.Verdict != wire.HygieneProblems || got.Clean || got.Problems != 2 || got.Warned != 8 || got.Truncated {
		t.Errorf("%+v, want %v", got, want)
	}
	if f := got.Findings[0]; f.Severity != "problem" || f.Path != "kept.go" || f.Line != 8 {
		t.Errorf("%+v", f)
	}
	for _, f := range got.Findings {
		if f.Kind == foundBuild && (f.Path != "web/node_modules" || f.Files != 2) || f.Kind == foundWhitespace && f.Line != 5 {
			t.Errorf("%+v", f)
		}
	}
	all := must(t, r.p, hygiene, wire.HygieneIn{IncludeTracked: true})
	if all.Counts[foundTemporary] != 2 {
		t.Errorf("%v", all.Counts)
	}
}

func TestHygieneOfAMerge(t *testing.T) {
	r := newRepo(t)
	r.write("f", "base\n")
	r.commit("base")
	r.git("checkout", "-q", "-b", "side")
	r.write("f", "side\n")
	r.commit("side")
	r.git("checkout", "-q", "main")
	r.write("f", "main\n")
	r.commit("main")
	r.tryGit("merge", "-q", "side")
	got := must(t, r.p, hygiene, wire.HygieneIn{})
	if got.Counts[foundUnmerged] != 1 || got.Counts[foundMarker] < 2 || got.Counts[foundOperation] != 1 || got.Verdict != wire.HygieneProblems {
		t.Errorf("%+v", got)
	}
}

// However much there is, the list is bounded, problems come first, and the counts are exact.
func TestHygieneIsBounded(t *testing.T) {
	r := newRepo(t)
	r.write("f", "x\n")
	r.commit("base")
	for i := range maxHygieneFiles + 5 {
		r.write(fmt.Sprintf("u/%s%d.txt", strings.Repeat("n", 150), i), "blank \n")
	}
	r.write("z.pem", "x\n")
	for asked, most := range map[int]int{0: defaultFindings, 7: 7, maxFindings: maxFindings, maxFindings + 1: maxFindings} {
		got := must(t, r.p, hygiene, wire.HygieneIn{MaxFindings: asked})
		if len(got.Findings) > most || got.Findings[0].Kind != foundSensitive || !got.Truncated || got.Complete || len(got.Warnings) != 1 ||
			got.Counts[foundWhitespace] != maxHygieneFiles {
			t.Errorf("%d: %d findings, %v %v", asked, len(got.Findings), got.Counts, got.Warnings)
		}
		if b, _ := json.Marshal(got); len(b) > 40_000 {
			t.Errorf("%d characters", len(b))
		}
	}
}
