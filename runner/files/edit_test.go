package files

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func TestEditKindsTogether(t *testing.T) {
	g := newGround(t)
	g.file("a.go", "package a\n\nfunc A() {}\n")
	g.file("old.txt", "old\n")
	g.file("gone.txt", "gone\n")
	g.file("same.txt", "same\n")
	shaA, shaOld, shaGone := g.sha("a.go"), g.sha("old.txt"), g.sha("gone.txt")
	out, f := g.edit(
		wire.Change{Kind: wire.ChangeEdit, Path: "./a.go", ExpectedSHA256: strings.ToUpper(shaA), Edits: []wire.TextEdit{
			replaceEdit("func A() {}", "func A() { B() }"), insertEdit(wire.InsertAfter, "package a\n", "\nfunc B() {}\n")}},
		createOf("new/deep/n.txt", "n"),
		createOf("new/deep/m.txt", ""),
		wire.Change{Kind: wire.ChangeRename, Path: "old.txt", ToPath: "moved/to/new.txt", ExpectedSHA256: shaOld},
		wire.Change{Kind: wire.ChangeDelete, Path: "gone.txt", ExpectedSHA256: shaGone},
		editOf("same.txt", replaceEdit("same", "same")))
	if f != nil {
		t.Fatal(told(f))
	}
	if g.text("a.go") != "package a\n\nfunc B() {}\n\nfunc A() { B() }\n" || g.text("new/deep/n.txt") != "n" || g.text("new/deep/m.txt") != "" ||
		g.text("moved/to/new.txt") != "old\n" || g.exists("old.txt") || g.exists("gone.txt") {
		t.Error("not as asked for")
	}
	want := []wire.ChangedFile{
		{Path: "a.go", Kind: "edit", SHA256Before: shaA, SHA256After: g.sha("a.go"), Bytes: int64(len(g.text("a.go")))},
		{Path: "new/deep/n.txt", Kind: "create", SHA256After: hashOf([]byte("n")), Bytes: 1},
		{Path: "new/deep/m.txt", Kind: "create", SHA256After: hashOf(nil)},
		{Path: "old.txt", ToPath: "moved/to/new.txt", Kind: "rename", SHA256Before: shaOld, SHA256After: shaOld, Bytes: 4},
		{Path: "gone.txt", Kind: "delete", SHA256Before: shaGone},
		{Path: "same.txt", Kind: "edit", SHA256Before: g.sha("same.txt"), SHA256After: g.sha("same.txt"), Bytes: 5},
	}
	if !slices.Equal(out.Files, want) {
		t.Errorf("%+v", out.Files)
	}
	paths := []string{"a.go", "new/deep/n.txt", "new/deep/m.txt", "old.txt", "moved/to/new.txt", "gone.txt"}
	if !out.Changed || out.AppliedCount != 5 || !slices.Equal(out.ChangedPaths, paths) || out.DryRun || out.WouldChange != nil {
		t.Errorf("%+v", out)
	}
	noLeftovers(g)
}

// noLeftovers fails where a transaction left one of its own files.
func noLeftovers(g *ground) {
	g.t.Helper()
	for name := range g.snapshot() {
		if strings.HasPrefix(filepath.Base(name), sidePrefix) {
			g.t.Errorf("%s was left", name)
		}
	}
}

func TestPreviewWritesNothing(t *testing.T) {
	g := newGround(t)
	g.file("a", "one\n")
	before := g.snapshot()
	changes := []wire.Change{editOf("a", replaceEdit("one", "two")), createOf("b/c", "x")}
	out, f := ask(g, g.s.preview, wire.EditFilesIn{Changes: changes})
	if f != nil || !out.DryRun || out.Changed || out.AppliedCount != 0 || len(out.ChangedPaths) != 0 || out.WouldChange == nil || !*out.WouldChange ||
		out.Files[0].SHA256After != hashOf([]byte("two\n")) {
		t.Errorf("%+v %s", out, told(f))
	}
	out, f = ask(g, g.s.preview, wire.EditFilesIn{Changes: []wire.Change{editOf("a", replaceEdit("one", "one"))}})
	if f != nil || *out.WouldChange {
		t.Errorf("%+v %s", out, told(f))
	}
	_, f = ask(g, g.s.preview, wire.EditFilesIn{Changes: []wire.Change{editOf("a", replaceEdit("x", "y"))}})
	wants(g, f, fault.EditConflict, "")
	g.same(before)
}

// One refused change refuses all, and every conflict of the call is told.
func TestConflictsAreToldTogether(t *testing.T) {
	g := newGround(t)
	g.file("a", "x x\n")
	g.file("b", "b\n")
	g.file("c", "c\n")
	before := g.snapshot()
	stale := strings.Repeat("0", 64)
	_, f := g.edit(
		createOf("fine", "x"),
		wire.Change{Kind: wire.ChangeEdit, Path: "b", ExpectedSHA256: stale, Edits: []wire.TextEdit{replaceEdit("b", "B")}},
		editOf("a", replaceEdit("x", "y"), replaceEdit("z", "y")),
		wire.Change{Kind: wire.ChangeDelete, Path: "c", ExpectedSHA256: stale})
	wants(g, f, fault.EditConflict, "")
	if f.Recovery != fault.ReRead || f.StateChanged {
		t.Errorf("%+v", f)
	}
	got := f.Details["conflicts"].([]wire.EditConflict)
	want := []wire.EditConflict{
		{Change: 1, Path: "b", Kind: wire.SHA256Mismatch, ActualSHA256: g.sha("b")},
		{Change: 2, Edit: ptr(0), Path: "a", Kind: wire.MultipleMatches, Matches: ptr(2), ActualSHA256: g.sha("a")},
		{Change: 2, Edit: ptr(1), Path: "a", Kind: wire.MatchNotFound, Matches: ptr(0), ActualSHA256: g.sha("a")},
		{Change: 3, Path: "c", Kind: wire.SHA256Mismatch, ActualSHA256: g.sha("c")},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		c := got[i]
		if c.Change != w.Change || c.Path != w.Path || c.Kind != w.Kind || c.ActualSHA256 != w.ActualSHA256 ||
			(c.Edit == nil) != (w.Edit == nil) || c.Edit != nil && *c.Edit != *w.Edit ||
			(c.Matches == nil) != (w.Matches == nil) || c.Matches != nil && *c.Matches != *w.Matches {
			t.Errorf("conflict %d: %+v, want %+v", i, c, w)
		}
	}
	g.same(before)
}

func TestBadRequestsOfEdit(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	g.file("dir/b", "b\n")
	g.file("ro", "r\n")
	g.must(os.Chmod(filepath.Join(g.dir, "ro"), 0o444))
	g.file("bin", "a\x00b")
	g.file("big", strings.Repeat("x", maxEditBytes+1))
	sha := g.sha("a")
	before := g.snapshot()
	one := func(kind string) wire.TextEdit { return wire.TextEdit{Kind: kind, OldText: "a", NewText: ptr("b")} }
	many := make([]wire.Change, wire.MaxChanges+1)
	for i := range many {
		many[i] = createOf(strings.Repeat("n", i+1), "")
	}
	edits := make([]wire.TextEdit, wire.MaxEdits+1)
	for i := range edits {
		edits[i] = replaceEdit("a", "a")
	}
	long := strings.Repeat("x", wire.MaxEditText+1)
	for _, tc := range []struct {
		changes []wire.Change
		kind    fault.Kind
		reason  string
		field   string
	}{
		{nil, fault.InvalidArguments, "", "changes"},
		{many, fault.InvalidArguments, "", "changes"},
		{[]wire.Change{{Kind: "patch", Path: "a"}}, fault.InvalidArguments, "", "changes[0].kind"},
		{[]wire.Change{editOf("a")}, fault.InvalidArguments, "", "changes[0].edits"},
		{[]wire.Change{editOf("a", edits...)}, fault.InvalidArguments, "", "changes[0].edits"},
		{[]wire.Change{editOf("a", replaceEdit("", "x"))}, fault.InvalidArguments, "", "changes[0].edits[0].old_text"},
		{[]wire.Change{editOf("a", wire.TextEdit{Kind: wire.ReplaceExact, OldText: "a"})}, fault.InvalidArguments, "", "changes[0].edits[0].new_text"},
		{[]wire.Change{editOf("a", wire.TextEdit{Kind: wire.InsertAfter, OldText: "a"})}, fault.InvalidArguments, "", "changes[0].edits[0].new_text"},
		{[]wire.Change{editOf("a", one(wire.DeleteExact))}, fault.InvalidArguments, "", "changes[0].edits[0].new_text"},
		{[]wire.Change{editOf("a", one("replace"))}, fault.InvalidArguments, "", "changes[0].edits[0].kind"},
		{[]wire.Change{editOf("a", nth(one(wire.ReplaceExact), 0))}, fault.InvalidArguments, "", "changes[0].edits[0].occurrence"},
		{[]wire.Change{editOf("a", nth(one(wire.ReplaceExact), wire.MaxOccurrence+1))}, fault.InvalidArguments, "", "changes[0].edits[0].occurrence"},
		{[]wire.Change{editOf("a", replaceEdit("a", long))}, fault.InvalidArguments, "", "changes[0].edits[0].new_text"},
		{[]wire.Change{editOf("a", replaceEdit(long, "a"))}, fault.InvalidArguments, "", "changes[0].edits[0].old_text"},
		{[]wire.Change{editOf("a", replaceEdit("a", "x\x00"))}, fault.InvalidArguments, "", "changes[0].edits[0].new_text"},
		{[]wire.Change{editOf("a", replaceEdit("a", "\xff"))}, fault.InvalidArguments, "", "changes[0].edits[0].new_text"},
		{[]wire.Change{{Kind: wire.ChangeEdit, Path: "a", ExpectedSHA256: "abc", Edits: edits[:1]}}, fault.InvalidArguments, "", "changes[0].expected_sha256"},
		{[]wire.Change{{Kind: wire.ChangeCreate, Path: "n"}}, fault.InvalidArguments, "", "changes[0].content"},
		{[]wire.Change{{Kind: wire.ChangeCreate, Path: "n", Content: ptr(""), ExpectedSHA256: sha}}, fault.InvalidArguments, "", "changes[0].expected_sha256"},
		{[]wire.Change{{Kind: wire.ChangeDelete, Path: "a"}}, fault.InvalidArguments, "", "changes[0].expected_sha256"},
		{[]wire.Change{{Kind: wire.ChangeRename, Path: "a", ToPath: "b"}}, fault.InvalidArguments, "", "changes[0].expected_sha256"},
		{[]wire.Change{{Kind: wire.ChangeRename, Path: "a", ExpectedSHA256: sha}}, fault.InvalidArguments, "", "changes[0].to_path"},
		{[]wire.Change{{Kind: wire.ChangeDelete, Path: "a", ExpectedSHA256: sha, ToPath: "b"}}, fault.InvalidArguments, "", "changes[0].to_path"},
		{[]wire.Change{{Kind: wire.ChangeDelete, Path: "a", ExpectedSHA256: sha, Edits: edits[:1]}}, fault.InvalidArguments, "", "changes[0].edits"},
		{[]wire.Change{{Kind: wire.ChangeDelete, Path: "a", ExpectedSHA256: sha, Content: ptr("")}}, fault.InvalidArguments, "", "changes[0].content"},
		{[]wire.Change{createOf("n", "1"), createOf("n", "2")}, fault.InvalidArguments, "duplicate_path", "changes[1].path"},
		{[]wire.Change{createOf("n", "1"), createOf("./n//m", "2")}, fault.InvalidArguments, "duplicate_path", "changes[1].path"},
		{[]wire.Change{editOf("a", replaceEdit("a", "x")), {Kind: wire.ChangeDelete, Path: "a", ExpectedSHA256: sha}},
			fault.InvalidArguments, "duplicate_path", "changes[1].path"},
		{[]wire.Change{editOf("gone", one(wire.ReplaceExact))}, fault.InvalidPath, reasonNotFound, "changes[0].path"},
		{[]wire.Change{createOf("a", "x")}, fault.InvalidPath, reasonExists, "changes[0].path"},
		{[]wire.Change{createOf("dir", "x")}, fault.InvalidPath, reasonExists, "changes[0].path"},
		{[]wire.Change{createOf("a/b", "x")}, fault.InvalidPath, reasonNotDirectory, "changes[0].path"},
		{[]wire.Change{{Kind: wire.ChangeRename, Path: "a", ToPath: "dir/b", ExpectedSHA256: sha}}, fault.InvalidPath, reasonExists, "changes[0].to_path"},
		{[]wire.Change{{Kind: wire.ChangeRename, Path: "a", ToPath: "a", ExpectedSHA256: sha}}, fault.InvalidPath, reasonExists, "changes[0].to_path"},
		{[]wire.Change{editOf("ro", replaceEdit("r", "w"))}, fault.InvalidPath, reasonReadOnly, "changes[0].path"},
		{[]wire.Change{editOf("bin", replaceEdit("a", "w"))}, fault.InvalidPath, reasonBinary, "changes[0].path"},
		{[]wire.Change{editOf("big", replaceEdit("x", "w"))}, fault.InvalidPath, reasonTooLarge, "changes[0].path"},
	} {
		_, f := g.edit(tc.changes...)
		if f == nil || f.Kind != tc.kind || f.Reason != tc.reason || f.Field != tc.field || f.StateChanged {
			t.Errorf("%.120v: %s, want %s (%s) %s", tc.changes, told(f), tc.kind, tc.reason, tc.field)
		}
	}
	g.same(before)
}

// The mode of an edited file stays, a new file has the process's own default.
func TestModesAreKept(t *testing.T) {
	g := newGround(t)
	for _, mode := range []fs.FileMode{0o755, 0o600, 0o644, 0o640} {
		g.file("f", "a\n")
		g.must(os.Chmod(filepath.Join(g.dir, "f"), mode))
		if _, f := g.edit(editOf("f", replaceEdit("a", "b"))); f != nil {
			t.Fatal(told(f))
		}
		info, err := os.Stat(filepath.Join(g.dir, "f"))
		g.must(err)
		if info.Mode() != mode || g.text("f") != "b\n" {
			t.Errorf("%v became %v", mode, info.Mode())
		}
		if _, f := ask(g, g.s.write, wire.WriteFileIn{Path: "f", Content: "c", Overwrite: true, ExpectedSHA256: g.sha("f")}); f != nil {
			t.Fatal(told(f))
		}
		if info, err = os.Stat(filepath.Join(g.dir, "f")); err != nil || info.Mode() != mode {
			t.Errorf("%v became %v %v", mode, info.Mode(), err)
		}
	}
}

// A CRLF file with one bare LF, edited on one line: every other byte stays.
func TestMixedLineEndsStay(t *testing.T) {
	g := newGround(t)
	before := "first\r\nsecond\nthird\r\nfourth\r\n"
	g.file("dos.txt", before)
	f := g.one("dos.txt")
	if f.EOL != wire.EOLMixed || f.Text != "first\nsecond\nthird\nfourth" {
		t.Fatalf("%+v", f)
	}
	// The text as shown matches, over several lines, with the real line ends kept.
	if _, f := g.edit(wire.Change{Kind: wire.ChangeEdit, Path: "dos.txt", ExpectedSHA256: f.SHA256,
		Edits: []wire.TextEdit{replaceEdit("first\nsecond\nthird\n", "first\nsecond\nTHIRD\n")}}); f != nil {
		t.Fatal(told(f))
	}
	if got := g.text("dos.txt"); got != strings.Replace(before, "third", "THIRD", 1) {
		t.Errorf("%q", got)
	}
}

// A transaction of four changes broken before each of its steps leaves everything as it was.
func TestAllOrNothing(t *testing.T) {
	for broken := range 4 {
		g := newGround(t)
		g.file("a", "a\n")
		g.file("b", "b\n")
		g.file("d/c", "c\n")
		changes := []wire.Change{editOf("a", replaceEdit("a", "A")), createOf("n/n", "new"),
			{Kind: wire.ChangeDelete, Path: "b", ExpectedSHA256: g.sha("b")},
			{Kind: wire.ChangeRename, Path: "d/c", ToPath: "e/c", ExpectedSHA256: g.sha("d/c")}}
		var before map[string]string
		g.s.between = func(i int) {
			if i != broken {
				return
			}
			// Someone else touches what the step is about.
			switch i {
			case 0:
				g.file("a", "other\n")
			case 1:
				g.file("n/n", "other\n")
			case 2:
				g.file("b", "other\n")
			case 3:
				g.file("d/c", "other\n")
			}
		}
		before = g.snapshot()
		_, f := g.edit(changes...)
		if broken == 1 {
			wants(g, f, fault.InvalidPath, reasonExists)
		} else {
			wants(g, f, fault.EditConflict, "")
		}
		if f.StateChanged {
			t.Errorf("step %d: %s", broken, told(f))
		}
		name := []string{"proj/a", "proj/n/n", "proj/b", "proj/d/c"}[broken]
		g.same(before, name, "proj/n")
		if broken != 1 && g.exists("n") {
			t.Errorf("step %d left a directory", broken)
		}
		if g.text(strings.TrimPrefix(name, "proj/")) != "other\n" {
			t.Errorf("step %d: the other's work is lost", broken)
		}
	}
}

// What cannot be put back is told by name.
func TestHalfWayIsTold(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	g.file("b", "b\n")
	g.s.between = func(i int) {
		if i == 1 {
			g.file("a", "someone else's\n") // the old name of the rename is taken
			g.file("b", "changed\n")
		}
	}
	_, f := g.edit(wire.Change{Kind: wire.ChangeRename, Path: "a", ToPath: "c", ExpectedSHA256: g.sha("a")}, editOf("b", replaceEdit("b", "B")))
	wants(g, f, fault.TransactionFailed, "io")
	if !f.StateChanged || !slices.Equal(f.Details["changed_paths"].([]string), []string{"a", "c"}) {
		t.Errorf("%s %v", told(f), f.Details)
	}
	if g.text("a") != "someone else's\n" || g.text("c") != "a\n" || g.text("b") != "changed\n" {
		t.Error("someone's work is lost")
	}
	noLeftovers(g)
}

// A system error in the middle changes nothing.
func TestSystemErrorChangesNothing(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	g.file("b", "b\n")
	// A directory takes the place of the second file.
	g.s.between = func(i int) {
		if i == 1 {
			g.must(os.Remove(filepath.Join(g.dir, "b")))
			g.must(os.Mkdir(filepath.Join(g.dir, "b"), 0o755))
		}
	}
	_, err := g.s.edit(t.Context(), g.p, wire.EditFilesIn{Changes: []wire.Change{editOf("a", replaceEdit("a", "A")), editOf("b", replaceEdit("b", "B"))}})
	f := fault.As(err)
	if f == nil || f.StateChanged || g.text("a") != "a\n" {
		t.Errorf("%s", told(f))
	}
	noLeftovers(g)
}

func TestCancelledBeforeTheFirstChange(t *testing.T) {
	g := newGround(t)
	g.file("a", "a\n")
	before := g.snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.s.edit(ctx, g.p, wire.EditFilesIn{Changes: []wire.Change{editOf("a", replaceEdit("a", "A"))}})
	if fault.KindOf(err) != fault.Cancelled {
		t.Error(err)
	}
	g.same(before)
}
