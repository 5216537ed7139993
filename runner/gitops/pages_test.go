package gitops

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// changedRepo has a diff of many pages: text, long lines, characters of every length, a
// rename, a deletion, an empty and a binary file, a changed mode.
func changedRepo(t *testing.T) *repo {
	r := newRepo(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var a, b strings.Builder
	for i := range 1500 {
		line := fmt.Sprintf("%d äöü😀 %s\t\"x\"\n", i, strings.Repeat("w", rnd.IntN(60)))
		a.WriteString(line)
		if i%17 == 0 {
			line = "changed " + line
		}
		b.WriteString(line)
	}
	r.write("long", a.String())
	r.write("oneline", "start\n")
	r.write("moved from", strings.Repeat("same\n", 20))
	r.write("gone", "1\n2\n")
	r.write("script", "#!/bin/sh\n")
	r.write("binary", "a\x00b")
	r.commit("base")
	r.write("long", b.String())
	r.write("oneline", strings.Repeat("😀", 40_000)+"\n")
	r.git("mv", "moved from", "moved to")
	r.git("rm", "-q", "gone")
	if err := os.Chmod(filepath.Join(r.dir, "script"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("binary", "a\x00c")
	r.write("empty", "")
	r.git("add", "-A")
	return r
}

// The pages of a diff, joined, are the diff.
func TestDiffPagesMeet(t *testing.T) {
	r := changedRepo(t)
	staged := wire.DiffScope{Cached: true}
	var joined strings.Builder
	in := wire.GitDiffIn{DiffScope: staged}
	pages := 0
	for {
		out := must(t, r.p, gitDiff, in)
		if !utf8.ValidString(out.Diff) || chars(out.Diff) > diffChars || out.Truncated != (out.NextContinuation != "") || len(out.NextContinuation) > maxCursorBytes {
			t.Fatalf("page %d: %d characters, truncated %v", pages, chars(out.Diff), out.Truncated)
		}
		if pages == 0 != (len(out.Files) > 0) || out.FileCount != 7 {
			t.Errorf("page %d: files %d of %d", pages, len(out.Files), out.FileCount)
		}
		joined.WriteString(out.Diff)
		pages++
		if in.Continuation = out.NextContinuation; in.Continuation == "" {
			break
		}
	}
	want := r.git("diff", "--cached", "-M", "--no-color", "--abbrev=12") + "\n"
	if joined.String() != want || pages < 4 {
		t.Errorf("%d pages of %d bytes, want %d", pages, joined.Len(), len(want))
	}
}

// The pages of hunks hold every hunk of git once, with the lines git shows.
func TestHunkPagesMeet(t *testing.T) {
	r := changedRepo(t)
	for _, perPage := range []int{2, 7, 100} {
		in := wire.DiffHunksIn{DiffScope: wire.DiffScope{Cached: true}, MaxHunks: perPage, MaxHunkLines: 400}
		var heads []string
		files := map[string]wire.HunksFile{}
		for pages := 0; pages < 1000; pages++ {
			out := must(t, r.p, gitDiffHunks, in)
			n := 0
			for _, f := range out.Files {
				files[f.Path] = f
				n += len(f.Hunks)
				for _, h := range f.Hunks {
					heads = append(heads, fmt.Sprintf("%s %d,%d %d,%d", f.Path, h.OldStart, h.OldLines, h.NewStart, h.NewLines))
					if lines := strings.Count(h.Text, "\n"); !h.Truncated && lines < max(h.OldLines, h.NewLines) {
						t.Errorf("%s: %d lines of %d,%d", f.Path, lines, h.OldLines, h.NewLines)
					}
				}
			}
			if n != out.HunkCount || n > perPage {
				t.Fatalf("%d hunks, said %d, asked for %d", n, out.HunkCount, perPage)
			}
			if in.Continuation = out.NextContinuation; !out.HasMore {
				break
			}
		}
		want := 0
		for line := range strings.Lines(r.git("diff", "--cached", "-M")) {
			if strings.HasPrefix(line, "@@ ") {
				want++
			}
		}
		if got := slices.Compact(slices.Sorted(slices.Values(heads))); len(heads) != want || len(got) != want {
			t.Errorf("%d a page: %d hunks, %d distinct, git has %d", perPage, len(heads), len(got), want)
		}
		for path, change := range map[string]string{"long": "modified", "moved to": "renamed", "gone": "deleted", "script": "modified",
			"binary": "modified", "empty": "added", "oneline": "modified"} {
			if files[path].Change != change {
				t.Errorf("%s: %q, want %q", path, files[path].Change, change)
			}
		}
		if !files["binary"].Binary || files["moved to"].OrigPath != "moved from" {
			t.Errorf("%+v %+v", files["binary"], files["moved to"])
		}
	}
}

// A hunk that fits no page is cut and says so.
func TestHunkBounds(t *testing.T) {
	r := newRepo(t)
	r.write("wide", "x\n")
	r.write("tall", "x\n")
	r.commit("base")
	r.write("wide", strings.Repeat("y", 200_000)+"\n")
	r.write("tall", strings.Repeat("line\n", 1000))
	tall := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: wire.DiffScope{Paths: []string{"tall"}}, MaxHunkLines: 10})
	if h := tall.Files[0].Hunks[0]; !h.Truncated || strings.Count(h.Text, "\n") != 10 || !slices.Equal(tall.Reasons, []string{"max_hunk_lines"}) || tall.HasMore {
		t.Errorf("%+v", tall)
	}
	wide := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: wire.DiffScope{Paths: []string{"wide"}}})
	if h := wide.Files[0].Hunks[0]; !h.Truncated || len(h.Text) > hunksChars || !slices.Contains(wide.Reasons, "output_budget") {
		t.Errorf("%d characters, %v", len(h.Text), wide.Reasons)
	}
}

// A continuation holds only for the same question and the same diff.
func TestContinuations(t *testing.T) {
	r := changedRepo(t)
	staged := wire.DiffScope{Cached: true}
	text := must(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: staged}).NextContinuation
	hunks := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: staged, MaxHunks: 2}).NextContinuation
	refused(t, r.p, gitDiff, wire.GitDiffIn{Continuation: text}, fault.InvalidArguments, "continuation_scope")
	refused(t, r.p, gitDiffHunks, wire.DiffHunksIn{Continuation: hunks}, fault.InvalidArguments, "continuation_scope")
	for _, bad := range []string{hunks, "x", "e30", strings.Repeat("A", 600), text + "=="} {
		if f := refused(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: staged, Continuation: bad}, fault.InvalidArguments, ""); f.Field != "continuation" {
			t.Errorf("field %q", f.Field)
		}
	}
	r.write("aaa first", "now there is more before it\n")
	r.git("add", "-A")
	if f := refused(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: staged, Continuation: text}, fault.InvalidArguments, "continuation_stale"); f.Recovery != fault.ReRead {
		t.Errorf("recovery %q", f.Recovery)
	}
	refused(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: staged, Continuation: hunks}, fault.InvalidArguments, "continuation_stale")
	r.commit("all")
	refused(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: staged, Continuation: text}, fault.InvalidArguments, "continuation_stale")
	refused(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: staged, Continuation: hunks}, fault.InvalidArguments, "continuation_stale")
}

func TestDiffScopes(t *testing.T) {
	r := newRepo(t)
	r.write("f", "one\n")
	base := r.commit("one")
	r.write("f", "two\n")
	head := r.commit("two")
	r.write("f", "three\n")
	r.git("add", "f")
	r.write("f", "four\n")
	for name, c := range map[string]struct {
		scope wire.DiffScope
		want  string
	}{
		"working_tree": {wire.DiffScope{}, "-three\n+four\n"},
		"staged":       {wire.DiffScope{Cached: true}, "-two\n+three\n"},
		"committed":    {wire.DiffScope{Base: base, Head: head}, "-one\n+two\n"},
	} {
		d := must(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: c.scope})
		if d.Scope != name || !strings.HasSuffix(d.Diff, c.want) {
			t.Errorf("%s: %s %q", name, d.Scope, d.Diff)
		}
		if h := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: c.scope}); h.Scope != name || h.Files[0].Hunks[0].Text != c.want {
			t.Errorf("%s: %+v", name, h)
		}
	}
	none := strings.Repeat("0", 40)
	tree := r.git("rev-parse", "HEAD^{tree}")
	for _, c := range []struct {
		scope         wire.DiffScope
		field, reason string
	}{
		{wire.DiffScope{Base: base}, "head_commit", ""},
		{wire.DiffScope{Head: base}, "base_commit", ""},
		{wire.DiffScope{Base: base, Head: head, Cached: true}, "cached", ""},
		{wire.DiffScope{Base: "HEAD", Head: head}, "base_commit", ""},
		{wire.DiffScope{Base: base, Head: "--output=x"}, "head_commit", ""},
		{wire.DiffScope{Base: base, Head: none}, "", "unknown_commit"},
		{wire.DiffScope{Base: tree, Head: head}, "", "unknown_commit"},
	} {
		if f := refused(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: c.scope}, fault.InvalidArguments, c.reason); f.Field != c.field {
			t.Errorf("%+v: field %q, want %q", c.scope, f.Field, c.field)
		}
	}
}

func TestPathsOfADiff(t *testing.T) {
	r := newRepo(t)
	r.commit("base")
	for path, reason := range map[string]string{"/etc/passwd": "absolute", "../x": "outside_project", "a/../../x": "outside_project",
		"": "malformed", "a\x00b": "malformed", "a\xff": "malformed", strings.Repeat("x", 4096): "malformed"} {
		refused(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: wire.DiffScope{Paths: []string{path}}}, fault.InvalidPath, reason)
		refused(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{path}}, fault.InvalidPath, reason)
	}
	many := make([]string, maxPaths+1)
	for i := range many {
		many[i] = "x"
	}
	refused(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: wire.DiffScope{Paths: many}}, fault.InvalidArguments, "")
}

// The form of an answer does not follow a user's settings.
func TestSettingsDoNotChangeTheForm(t *testing.T) {
	r := newRepo(t)
	r.write("dir/f ü", strings.Repeat("same\n", 10)+"one\n"+strings.Repeat("same\n", 10))
	r.write("old name", strings.Repeat("moved\n", 10))
	r.commit("base")
	r.write("dir/f ü", strings.Repeat("same\n", 10)+"two\n"+strings.Repeat("same\n", 10))
	r.git("mv", "old name", "new name")
	r.write("dir/untracked", "x\n")
	type answers struct {
		status wire.GitStatusOut
		diff   wire.GitDiffOut
		hunks  wire.DiffHunksOut
		log    wire.GitLogOut
	}
	ask := func() answers {
		return answers{must(t, r.p, gitStatus, wire.GitStatusIn{}), must(t, r.p, gitDiff, wire.GitDiffIn{}),
			must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: wire.DiffScope{Cached: true}}), must(t, r.p, gitLog, wire.GitLogIn{})}
	}
	want := fmt.Sprintf("%+v", ask())
	for _, kv := range [][2]string{{"diff.noprefix", "true"}, {"diff.mnemonicPrefix", "true"}, {"color.ui", "always"}, {"color.diff", "always"},
		{"diff.context", "0"}, {"diff.interHunkContext", "50"}, {"diff.renames", "false"}, {"status.renames", "false"},
		{"status.showUntrackedFiles", "no"}, {"status.relativePaths", "false"}, {"status.branch", "false"}, {"core.quotePath", "true"},
		{"diff.wsErrorHighlight", "all"}, {"diff.colorMoved", "zebra"}, {"diff.algorithm", "patience"}, {"diff.orderFile", "dir/untracked"},
		{"diff.suppressBlankEmpty", "true"}, {"diff.relative", "true"}, {"diff.wordRegex", "."}, {"diff.submodule", "log"}, {"diff.dirstat", "lines"},
		{"log.date", "relative"}, {"log.decorate", "full"}, {"log.showRoot", "false"}, {"format.pretty", "raw"}, {"format.notes", "*"},
		{"core.abbrev", "4"}, {"status.short", "true"}, {"status.showStash", "true"}, {"column.ui", "always"}, {"log.diffMerges", "on"}} {
		r.git("config", kv[0], kv[1])
		if got := fmt.Sprintf("%+v", ask()); got != want {
			t.Fatalf("with %s=%s:\n%s\nwithout:\n%s", kv[0], kv[1], got, want)
		}
	}
}

func FuzzCutPage(f *testing.F) {
	f.Add([]byte("a\nb😀\xff\n\x00"), 5, true)
	f.Add([]byte("😀"), 1, false)
	f.Fuzz(func(t *testing.T, raw []byte, room int, whole bool) {
		room = max(1, room%1000)
		kept, text := cutPage(raw, room, whole)
		if kept < 0 || kept > len(raw) || !utf8.ValidString(text) || chars(text) > room {
			t.Fatalf("kept %d of %d, %d characters of %d", kept, len(raw), chars(text), room)
		}
		if kept == 0 && len(raw) >= utf8.UTFMax && room >= 6 {
			t.Fatal("a page without progress")
		}
	})
}
