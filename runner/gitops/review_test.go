package gitops

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// A review tells classes, directories and signals of a change, the same for two commits and for
// the working tree before the second one.
func TestReview(t *testing.T) {
	r := newRepo(t)
	r.write("core/a.go", "package core\n\nfunc Alpha() {\n\t_ = 1\n\t_ = 2\n\t_ = 3\n\t_ = 4\n\t_ = 5\n}\n")
	r.write("core/a_test.go", "package core\n")
	r.write("old.txt", strings.Repeat("same line\n", 20))
	r.write("docs/x.md", "x\n")
	base := r.commit("base")
	r.write("core/a.go", strings.Replace(r.read("core/a.go"), "_ = 4", "_ = 44", 1))
	r.git("rm", "-q", "core/a_test.go")
	r.git("mv", "old.txt", "new.txt")
	r.write("go.mod", "module x\n")
	r.write(".env", "TOKEN=x\n")
	r.write("img.png", "\x00\x01")
	r.write("big.go", strings.Repeat("// line\n", reviewLargeLines))
	r.git("add", "-A")
	r.write("loose.go", "package x\n")
	got := must(t, r.p, gitReview, wire.GitReviewIn{})
	want := wire.ReviewStats{Files: 8, Additions: 1 + 1 + 1 + reviewLargeLines, Deletions: 2, Added: 4, Modified: 1, Deleted: 1, Renamed: 1, Binary: 1, Untracked: 1}
	if got.Stats != want || got.Scope != "uncommitted" || got.Head != base || got.Truncated || !got.Deterministic || got.LLMSummary || !got.Coverage.DiffComplete {
		t.Errorf("%+v", got)
	}
	kinds := map[string]int{}
	for _, s := range got.Signals {
		kinds[s.Kind] = s.Count
	}
	if w := map[string]int{"sensitive_file": 1, "tests_deleted": 1, "source_without_tests": 3, "dependencies_changed": 1, "large_change": 1, "binary_changed": 1}; !reflect.DeepEqual(kinds, w) {
		t.Errorf("%v, want %v", kinds, w)
	}
	for _, f := range got.Files {
		if f.Path == "core/a.go" && (!reflect.DeepEqual(f.Symbols, []string{"func Alpha() {"}) || f.Class != classSource || f.Additions != 1) {
			t.Errorf("%+v", f)
		}
		if f.Path == "new.txt" && (f.OrigPath != "old.txt" || f.Change != "renamed") {
			t.Errorf("%+v", f)
		}
	}
	if s := got.Subsystems; len(s) != 2 || s[0].Name != "." || s[1] != (wire.ReviewGroup{Name: "core", Files: 2, Additions: 1, Deletions: 2}) {
		t.Errorf("%+v", s)
	}
	os.Remove(filepath.Join(r.dir, "loose.go"))
	head := r.commit("second")
	committed := must(t, r.p, gitReview, wire.GitReviewIn{Base: base, Head: head})
	if committed.Commits == nil || *committed.Commits != 1 || committed.Scope != "committed" || committed.Stats.Files != 7 || committed.Stats.Untracked != 0 {
		t.Errorf("%+v", committed)
	}
	for _, bad := range []wire.GitReviewIn{{Base: base}, {Head: head}, {Base: base, Head: "main"}, {Base: "--output=x", Head: head},
		{Base: base, Head: strings.Repeat("0", 40)}} {
		if _, err := gitReview(t.Context(), r.p, bad); fault.KindOf(err) != fault.InvalidArguments {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// A conflict is a signal, and a change of any size stays one bounded answer that says what it left out.
func TestReviewIsBounded(t *testing.T) {
	r := newRepo(t)
	r.write("f", "base\n")
	base := r.commit("base")
	r.git("checkout", "-q", "-b", "side")
	r.write("f", "side\n")
	r.commit("side")
	r.git("checkout", "-q", "main")
	r.write("f", "main\n")
	r.commit("main")
	r.tryGit("merge", "-q", "side")
	if got := must(t, r.p, gitReview, wire.GitReviewIn{}); got.Stats.Conflicted != 1 || len(got.Signals) == 0 || got.Signals[0].Kind != "merge_conflict" {
		t.Errorf("%+v", got)
	}
	r.git("merge", "--abort")
	long := strings.Repeat("d", 200)
	for i := range maxReviewFiles + 30 {
		r.write(fmt.Sprintf("s%d/%s/%s/f%d.go", i%20, long, long, i), strings.Repeat("line\n", 200))
	}
	head := r.commit("many")
	got := must(t, r.p, gitReview, wire.GitReviewIn{Base: base, Head: head})
	if got.Stats.Files != maxReviewFiles+31 || !got.Truncated || len(got.Files) > maxReviewFiles || len(got.Subsystems) != maxReviewSubsystems || got.Coverage.DiffComplete ||
		got.Coverage.DiffBytes != maxReviewDiff {
		t.Errorf("%d files, %v, %d systems, %+v", len(got.Files), got.Reasons, len(got.Subsystems), got.Coverage)
	}
	if b, _ := json.Marshal(got); len(b) > 40_000 {
		t.Errorf("%d characters", len(b))
	}
}

func TestClasses(t *testing.T) {
	for p, want := range map[string]string{"a/b.go": classSource, "a/b_test.go": classTest, "tests/x.py": classTest, "src/test_x.py": classTest,
		"web/a.spec.ts": classTest, "README.md": classDocs, "docs/a.png": classDocs, "Makefile": classBuild, ".github/workflows/ci.yml": classBuild,
		"go.sum": classDependency, "requirements-dev.txt": classDependency, "db/migrations/001.sql": classMigration, "a.pb.go": classGenerated,
		"conf/x.yaml": classConfig, ".gitignore": classConfig, "logo.png": classAsset, "LICENSE": classOther, "testing.go": classSource} {
		if got := classOf(p); got != want {
			t.Errorf("%s is %s, want %s", p, got, want)
		}
	}
}
