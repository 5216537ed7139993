package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/internal/patch"
	"webcodex/runner"
	"webcodex/runner/wire"
)

func (g *ground) patch(text string, expected ...wire.FileFence) (wire.PatchOut, *fault.Error) {
	g.t.Helper()
	return ask(g, g.s.applyPatch, wire.PatchIn{Patch: text, Expected: expected})
}

func (g *ground) mode(name string) fs.FileMode {
	g.t.Helper()
	info, err := os.Lstat(filepath.Join(g.dir, name))
	g.must(err)
	return info.Mode()
}

const everyKind = "diff --git a/edit.txt b/edit.txt\nold mode 100644\nnew mode 100755\nindex 1..2\n--- a/edit.txt\n+++ b/edit.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n" +
	"diff --git a/d/new b/d/new\nnew file mode 100755\nindex 0..2\n--- /dev/null\n+++ b/d/new\n@@ -0,0 +1,2 @@\n+#!/bin/sh\n+true\n\\ No newline at end of file\n" +
	"diff --git a/gone b/gone\ndeleted file mode 100644\nindex 1..0\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n" +
	"diff --git a/old b/moved\nsimilarity index 100%\nrename from old\nrename to moved\n" +
	"diff --git a/old2 b/x/moved2\nsimilarity index 50%\nrename from old2\nrename to x/moved2\nindex 1..2\n--- a/old2\n+++ b/x/moved2\n@@ -1 +1 @@\n-x\n+y\n" +
	"diff --git a/from b/copy\nsimilarity index 100%\ncopy from from\ncopy to copy\n" +
	"diff --git a/mode b/mode\nold mode 100755\nnew mode 100644\n"

func everyKindGround(t *testing.T) *ground {
	g := newGround(t)
	for name, text := range map[string]string{"edit.txt": "one\ntwo\n", "gone": "gone\n", "old": "o\n", "old2": "x\n", "from": "f\n", "mode": "m\n"} {
		g.file(name, text)
	}
	g.must(os.Chmod(filepath.Join(g.dir, "mode"), 0o755))
	g.must(os.Chmod(filepath.Join(g.dir, "old2"), 0o640))
	return g
}

func TestPatchKindsTogether(t *testing.T) {
	g := everyKindGround(t)
	check, f := ask(g, g.s.checkPatch, wire.PatchIn{Patch: everyKind})
	if f != nil || check.Changed {
		t.Fatalf("%s %+v", told(f), check)
	}
	before := g.snapshot()
	g.same(before)
	shaEdit := g.sha("edit.txt")
	out, f := g.patch(everyKind, wire.FileFence{Path: "./edit.txt", SHA256: strings.ToUpper(shaEdit)})
	if f != nil {
		t.Fatal(told(f))
	}
	for name, want := range map[string]string{"edit.txt": "one\nTWO\n", "d/new": "#!/bin/sh\ntrue", "moved": "o\n", "x/moved2": "y\n", "copy": "f\n", "from": "f\n", "mode": "m\n"} {
		if got := g.text(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"gone", "old", "old2"} {
		if g.exists(name) {
			t.Errorf("%s is still there", name)
		}
	}
	for name, want := range map[string]fs.FileMode{"edit.txt": 0o755, "d/new": 0o755, "x/moved2": 0o640, "mode": 0o644} {
		if got := g.mode(name); got != want {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
	paths := []string{"edit.txt", "d/new", "gone", "old", "moved", "old2", "x/moved2", "copy", "mode"}
	if !out.Changed || !slices.Equal(out.ChangedPaths, paths) || !slices.Equal(check.ChangedPaths, paths) || out.Stat != (wire.DiffStat{Files: 7, Additions: 4, Deletions: 3}) {
		t.Errorf("%+v", out)
	}
	if first := out.Files[0]; first.SHA256Before != shaEdit || first.SHA256After != g.sha("edit.txt") || first.Mode != patch.ModeExecutable {
		t.Errorf("%+v", first)
	}
	if !reflect.DeepEqual(out.Files, check.Files) {
		t.Errorf("checked %+v, applied %+v", check.Files, out.Files)
	}
	noLeftovers(g)
}

// What git itself makes of a working tree is what the patch of it makes here.
func TestPatchOfGitMakesTheSameTree(t *testing.T) {
	g := newGround(t)
	g.git("init", "-q")
	for i := range 6 {
		g.file(fmt.Sprintf("dir/f%d.txt", i), strings.Repeat(fmt.Sprintf("line of %d\nanother\n", i), 10))
	}
	g.file("dos.txt", "a\r\nb\r\n")
	g.file("name with blank.txt", "x\n")
	g.file("ümläut", "x\n")
	g.git("add", "-A")
	g.git("commit", "-qm", "base")
	g.git("mv", "dir/f0.txt", "dir/g0.txt")
	g.file("dir/g0.txt", strings.Repeat("line of 0\nanother\n", 10)+"more\n")
	g.file("dir/f1.txt", strings.Replace(g.text("dir/f1.txt"), "line of 1\n", "first\n", 1))
	g.must(os.Remove(filepath.Join(g.dir, "dir/f2.txt")))
	g.must(os.Chmod(filepath.Join(g.dir, "dir/f3.txt"), 0o755))
	g.file("dos.txt", "a\r\nB\r\n")
	g.file("name with blank.txt", "y\n")
	g.file("ümläut", "y")
	g.file("new/one", "")
	g.git("add", "-A")
	want := g.snapshot()
	out := g.output("git", "diff", "--cached", "-M", "HEAD")
	g.git("reset", "-q", "--hard")
	if _, f := g.patch(out); f != nil {
		t.Fatalf("%s\n%s", told(f), out)
	}
	got := g.snapshot()
	for name, was := range want {
		if !strings.Contains(name, ".git/") && got[name] != was {
			t.Errorf("%s: %.60q, want %.60q", name, got[name], was)
		}
	}
	noLeftovers(g)
}

// Every hunk that does not fit is told with its place, in one answer, and nothing is changed.
func TestPatchConflictsAreToldTogether(t *testing.T) {
	g := newGround(t)
	g.file("a", "one\ntwo\nthree\n")
	g.file("b", "x\ny\nx\ny\n")
	g.file("c", "c\n")
	g.file("d", "d\nmore\n")
	before := g.snapshot()
	text := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-uno\n+1\n@@ -3 +3 @@\n-three\n+3\n" +
		"--- a/b\n+++ b/b\n@@ -9,2 +9,2 @@\n x\n-y\n+z\n" +
		"--- a/c\n+++ b/c\n@@ -1 +1 @@\n-c\n+C\n" +
		"--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-d\n" +
		"--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n"
	_, f := g.patch(text, wire.FileFence{Path: "c", SHA256: strings.Repeat("0", 64)})
	wants(g, f, fault.EditConflict, "")
	want := []wire.PatchConflict{
		{File: 1, Hunk: 1, Path: "a", Kind: wire.MatchNotFound, PatchLine: 3, Line: 1, DiffersAt: 1, ActualSHA256: g.sha("a")},
		{File: 2, Hunk: 1, Path: "b", Kind: wire.MultipleMatches, PatchLine: 11, Line: 9, Matches: 2, ActualSHA256: g.sha("b")},
		{File: 3, Path: "c", Kind: wire.SHA256Mismatch, PatchLine: 15, ActualSHA256: g.sha("c")},
		{File: 4, Path: "d", Kind: wire.ContentLeft, PatchLine: 20, ActualSHA256: g.sha("d")},
	}
	if got := f.Details["conflicts"]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if f.StateChanged || f.Recovery != fault.ReRead {
		t.Errorf("%+v", f)
	}
	_, again := ask(g, g.s.checkPatch, wire.PatchIn{Patch: text, Expected: []wire.FileFence{{Path: "c", SHA256: strings.Repeat("0", 64)}}})
	if told(again) != told(f) {
		t.Errorf("checked %s, applied %s", told(again), told(f))
	}
	g.same(before)
}

// A hunk further down than stated is applied where all its lines stand, and that is told.
func TestMovedHunksAreTold(t *testing.T) {
	g := newGround(t)
	g.file("a", "new\nnew\none\ntwo\n")
	out, f := g.patch("--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n")
	if f != nil || g.text("a") != "new\nnew\none\nTWO\n" || !slices.Equal(out.Files[0].Moved, []wire.MovedHunk{{Hunk: 1, Lines: 2}}) {
		t.Errorf("%s %+v %q", told(f), out, g.text("a"))
	}
}

// No spelling of a path, no link, no odd file lets a patch reach what the file tools leave alone.
func TestPatchStaysInItsPlace(t *testing.T) {
	g := newGround(t)
	g.git("init", "-q")
	g.link("out", "../outside")
	g.link("out-file", "../outside/secret")
	g.link("in", "real.txt")
	g.file("real.txt", "r\n")
	g.file("ro", "r\n")
	g.must(os.Chmod(filepath.Join(g.dir, "ro"), 0o444))
	g.file("bin", "a\x00b\n")
	g.file("hard", "h\n")
	g.must(os.Link(filepath.Join(g.dir, "hard"), filepath.Join(g.base, "outside", "hard")))
	g.file("big", strings.Repeat("x\n", maxEditBytes/2+1))
	before := g.snapshot()
	create := func(p string) string { return "--- /dev/null\n+++ b/" + p + "\n@@ -0,0 +1 @@\n+x\n" }
	edit := func(p, old string) string {
		return "--- a/" + p + "\n+++ b/" + p + "\n@@ -1 +1 @@\n-" + old + "\n+x\n"
	}
	moved := func(from, to string) string {
		return "diff --git a/" + from + " b/" + to + "\nrename from " + from + "\nrename to " + to + "\n"
	}
	for text, reason := range map[string]string{
		create(".git/hooks/post-checkout"):                     reasonGitInternal,
		create("sub/.GIT/config"):                              reasonGitInternal,
		create(".git./x"):                                      reasonGitInternal,
		create("git~1/config"):                                 reasonGitInternal,
		edit(".git/config", "[core]"):                          reasonGitInternal,
		moved("real.txt", ".git/hooks/pre-commit"):             reasonGitInternal,
		moved(".git/config", "config"):                         reasonGitInternal,
		create("../evil"):                                      reasonOutside,
		create("x/../../evil"):                                 reasonOutside,
		create("/tmp/evil"):                                    reasonAbsolute,
		create("out/evil"):                                     reasonSymlinkOutside,
		edit("out/secret", "outside"):                          reasonSymlinkOutside,
		edit("out-file", "outside"):                            reasonSymlink,
		edit("in", "r"):                                        reasonSymlink,
		create("in"):                                           reasonExists,
		create("out-file"):                                     reasonSymlinkOutside,
		create("real.txt"):                                     reasonExists,
		moved("real.txt", "ro"):                                reasonExists,
		edit("nothing", "x"):                                   reasonNotFound,
		edit("ro", "r"):                                        reasonReadOnly,
		edit("bin", "a"):                                       reasonBinary,
		edit("hard", "h"):                                      reasonHardLink,
		edit("big", "x"):                                       reasonTooLarge,
		create("real.txt/below"):                               reasonNotDirectory,
		create(strings.Repeat("n", 256)):                       reasonTooLong,
		moved("real.txt", "../outside/real"):                   reasonOutside,
		moved("out/secret", "mine"):                            reasonSymlinkOutside,
		strings.Replace(create("\"x"), "b/\"x", `"b/\377"`, 1): relpathNotUTF8,
	} {
		_, f := g.patch(text)
		wants(g, f, fault.InvalidPath, reason)
		if f != nil && (f.Field != "patch" || f.StateChanged) {
			t.Errorf("%q: %s", text, told(f))
		}
	}
	g.same(before)
}

const relpathNotUTF8 = "not_utf8"

// At each bound a patch is taken, one past it nothing is changed. A request that is wrong says so
// before a file is looked at.
func TestPatchRequests(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	creates := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "--- /dev/null\n+++ b/n%d\n@@ -0,0 +1 @@\n+x\n", i)
		}
		return b.String()
	}
	head := "--- /dev/null\n+++ b/full\n@@ -0,0 +1 @@\n+"
	full := head + strings.Repeat("x", wire.MaxPatchBytes-len(head))
	sha := g.sha("a")
	edit := "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
	fence := func(path, sum string) []wire.FileFence { return []wire.FileFence{{Path: path, SHA256: sum}} }
	before := g.snapshot()
	for name, tc := range map[string]struct {
		in            wire.PatchIn
		field, reason string
	}{
		"empty":           {wire.PatchIn{}, "patch", patch.Empty},
		"too long":        {wire.PatchIn{Patch: full + "x"}, "patch", "too_large"},
		"too many":        {wire.PatchIn{Patch: creates(wire.MaxPatchFiles + 1)}, "patch", patch.TooMany},
		"too many names":  {wire.PatchIn{Patch: creates(wire.MaxPatchPaths-1) + "diff --git a/x b/y\nrename from x\nrename to y\n"}, "patch", patch.TooMany},
		"binary":          {wire.PatchIn{Patch: "diff --git a/a b/a\nBinary files a/a and b/a differ\n"}, "patch", patch.Binary},
		"link":            {wire.PatchIn{Patch: "diff --git a/l b/l\nnew file mode 120000\n"}, "patch", patch.Mode},
		"twice":           {wire.PatchIn{Patch: edit + edit}, "patch", "duplicate_path"},
		"below":           {wire.PatchIn{Patch: "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n--- /dev/null\n+++ b/x/y\n@@ -0,0 +1 @@\n+x\n"}, "patch", "duplicate_path"},
		"bad fence":       {wire.PatchIn{Patch: edit, Expected: fence("a", "abc")}, "expected_files[0].sha256", ""},
		"fence elsewhere": {wire.PatchIn{Patch: edit, Expected: fence("b", sha)}, "expected_files[0].path", "not_in_patch"},
		"fence of a new":  {wire.PatchIn{Patch: creates(1), Expected: fence("n0", sha)}, "expected_files[0].path", "not_in_patch"},
		"fence twice":     {wire.PatchIn{Patch: edit, Expected: append(fence("a", sha), fence("./a", sha)...)}, "expected_files[1].path", "duplicate_path"},
	} {
		_, f := ask(g, g.s.applyPatch, tc.in)
		if f == nil || f.Kind != fault.InvalidArguments || f.Field != tc.field || f.Reason != tc.reason {
			t.Errorf("%s: %s", name, told(f))
		}
	}
	if _, f := ask(g, g.s.applyPatch, wire.PatchIn{Patch: "--- /dev/null\n+++ b/conf/.env\n@@ -0,0 +1 @@\n+x\n", DenySensitive: true}); f == nil || f.Reason != "sensitive_path" {
		t.Errorf("%s", told(f))
	}
	g.same(before)
	for _, text := range []string{creates(wire.MaxPatchFiles), full} {
		if _, f := g.patch(text); f != nil {
			t.Errorf("%s", told(f))
		}
	}
}

// A patch of several files broken before each of its steps leaves everything as it was.
func TestPatchIsAllOrNothing(t *testing.T) {
	for broken := range 8 {
		g := everyKindGround(t)
		touched := []string{"edit.txt", "d/new", "gone", "old", "old2", "x/moved2", "copy", "mode"}[broken]
		g.s.between = func(i int) {
			if i == broken {
				g.file(touched, "somebody else's\n")
			}
		}
		before := g.snapshot()
		_, f := g.patch(everyKind)
		if f == nil || f.StateChanged || g.text(touched) != "somebody else's\n" {
			t.Errorf("step %d: %s", broken, told(f))
		}
		g.same(before, "proj/"+touched, "proj/"+filepath.Dir(touched))
		noLeftovers(g)
	}
}

// A patch is one of the changes in the middle of which a process dies (TestKilledAtEveryStep).
func init() {
	crashOps["patch"] = func(t *testing.T, s *service, p *runner.Project) error {
		_, err := s.applyPatch(t.Context(), p, wire.PatchIn{Patch: "diff --git a/a b/a\nold mode 100755\nnew mode 100644\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+ONE\n" +
			"diff --git a/d/r b/m/r\nrename from d/r\nrename to m/r\n--- a/d/r\n+++ b/m/r\n@@ -1 +1,2 @@\n moved\n+more\n" +
			"diff --git a/n/x b/n/x\nnew file mode 100755\n--- /dev/null\n+++ b/n/x\n@@ -0,0 +1 @@\n+new\n" +
			"--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"})
		return err
	}
}
