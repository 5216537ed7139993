package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func TestRestore(t *testing.T) {
	r := newRepo(t)
	for _, name := range []string{"changed", "same", "deleted", "dir/gone/deep", "staged", "mode", "kept"} {
		r.write(name, "base\n")
	}
	if err := os.Symlink("changed", filepath.Join(r.dir, "link")); err != nil {
		t.Fatal(err)
	}
	r.commit("base")
	r.write("changed", "lost\n")
	r.write("kept", "not named\n")
	r.write("staged", "staged\n")
	r.git("add", "staged")
	r.write("staged", "lost\n")
	for _, name := range []string{"deleted", "dir", "link"} {
		if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.write("link", "a file in its place\n")
	if err := os.Chmod(filepath.Join(r.dir, "mode"), 0o755); err != nil {
		t.Fatal(err)
	}
	head := r.git("rev-parse", "HEAD")
	got := must(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{"changed", "./same", "deleted", "dir/gone/deep", "staged", "mode", "link", "changed"}})
	if !slices.Equal(got.Restored, []string{"changed", "deleted", "dir/gone/deep", "staged", "mode", "link"}) || !slices.Equal(got.Unchanged, []string{"same"}) {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"changed": "base\n", "deleted": "base\n", "dir/gone/deep": "base\n", "staged": "staged\n", "kept": "not named\n"} {
		if r.read(name) != want {
			t.Errorf("%s: %q, want %q", name, r.read(name), want)
		}
	}
	if target, err := os.Readlink(filepath.Join(r.dir, "link")); err != nil || target != "changed" {
		t.Errorf("link: %q %v", target, err)
	}
	if out := r.git("status", "--porcelain"); out != " M kept\nM  staged" {
		t.Errorf("status after: %q", out)
	}
	if r.git("rev-parse", "HEAD") != head || r.git("stash", "list") != "" {
		t.Error("more than the files was touched")
	}
	again := must(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{"changed", "same"}})
	if len(again.Restored) != 0 || len(again.Unchanged) != 2 {
		t.Errorf("a second time: %+v", again)
	}
}

// One path that may not be restored keeps all from being touched.
func TestRestoreRefusals(t *testing.T) {
	r := newRepo(t)
	for _, name := range []string{"good", "dir/file", "was file", "below/file", "lfs/big"} {
		r.write(name, "base\n")
	}
	r.commit("base")
	sub := newRepoIn(t, filepath.Join(r.dir, "sub"))
	sub.commit("sub")
	r.git("-c", "advice.addEmbeddedRepo=false", "add", "sub")
	r.write("good", "mine\n")
	r.write("untracked", "x\n")
	r.write("meant", "not staged yet\n")
	r.git("add", "--intent-to-add", "meant")
	replace(t, r, "was file", func(p string) error { return os.MkdirAll(filepath.Join(p, "untracked"), 0o755) })
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("outside\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	replace(t, r, "below", func(p string) error { return os.Symlink(outside, p) })
	r.git("config", "filter.lfs.smudge", "false")
	r.git("config", "filter.lfs.clean", "cat")
	r.write(".gitattributes", "lfs/* filter=lfs\n")
	r.write("lfs/big", "big\n")
	for path, reason := range map[string]string{"untracked": "not_tracked", "nowhere": "not_tracked", "meant": "not_tracked", "dir": "not_regular", ".": "not_regular",
		"was file": "not_regular", "below/file": "not_regular", "sub": "not_regular", ".git/config": "git_internal", "dir/.GIT/x": "git_internal",
		"GIT~1/config": "git_internal", ".g\u200cit/config": "git_internal", "lfs/big": "content_filter"} {
		f := refused(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{"good", path}}, fault.InvalidPath, reason)
		if f.StateChanged || f.Field != "paths" {
			t.Errorf("%s: changed %v, field %q", path, f.StateChanged, f.Field)
		}
		if r.read("good") != "mine\n" {
			t.Fatalf("%s: good was restored all the same", path)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "file")); string(b) != "outside\n" {
		t.Error("a file outside was written")
	}
	refused(t, r.p, restorePaths, wire.RestorePathsIn{}, fault.InvalidArguments, "")
	refused(t, r.p, restorePaths, wire.RestorePathsIn{Paths: make([]string, maxRestorePaths+1)}, fault.InvalidArguments, "")
}

func replace(t *testing.T, r *repo, name string, with func(path string) error) {
	t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.RemoveAll(p); err != nil {
		t.Fatal(err)
	}
	if err := with(p); err != nil {
		t.Fatal(err)
	}
}

// A second name of the file keeps its content: the restored one is a new file.
func TestRestoreLeavesHardLinks(t *testing.T) {
	r := newRepo(t)
	r.write("file", "base\n")
	r.commit("base")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	replace(t, r, "file", func(p string) error {
		if err := os.Link(outside, p); err != nil {
			t.Skip("no hard links here: " + err.Error())
		}
		return nil
	})
	must(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{"file"}})
	if b, _ := os.ReadFile(outside); string(b) != "theirs\n" || r.read("file") != "base\n" {
		t.Errorf("outside %q, file %q", b, r.read("file"))
	}
}

// Line endings and encodings that git converts by itself are converted.
func TestRestoreKeepsLineEndings(t *testing.T) {
	r := newRepo(t)
	r.write(".gitattributes", "*.crlf text eol=crlf\n")
	r.write("a.crlf", "1\r\n2\r\n")
	r.commit("base")
	r.write("a.crlf", "lost\r\n")
	must(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{"a.crlf"}})
	if got := r.read("a.crlf"); got != "1\r\n2\r\n" {
		t.Errorf("%q", got)
	}
}

// A failure after the writing began says that something changed.
func TestRestoreBlockedByLock(t *testing.T) {
	r := newRepo(t)
	r.write("file", "base\n")
	r.commit("base")
	r.write("file", "mine\n")
	r.write(".git/index.lock", "")
	_, err := restorePaths(t.Context(), r.p, wire.RestorePathsIn{Paths: []string{"file"}})
	if f := fault.As(err); f == nil || f.Kind != fault.GitFailed || !f.StateChanged {
		t.Fatalf("%+v", f)
	}
}

func TestLog(t *testing.T) {
	r := newRepo(t)
	subjects := []string{"plain", "tab\tand \"quotes\"", "émoji 😀", strings.Repeat("long ", 40_000)}
	for _, s := range subjects {
		r.write("msg", s+"\n\nbody\x01 text\n")
		r.git("add", "-A")
		r.git("commit", "-q", "--allow-empty", "-F", "msg", "--author", "Ünïcode <x@y>", "--date", "2024-02-03T04:05:06+0500")
	}
	first := must(t, r.p, gitLog, wire.GitLogIn{Limit: 3})
	if first.Count != 3 || !first.Truncated || *first.NextSkip != 3 || first.Commits[1].Subject != subjects[2] || first.Commits[2].Subject != subjects[1] {
		t.Errorf("%+v", first)
	}
	if c := first.Commits[0]; len([]rune(c.Subject)) != maxSubjectChars+1 || c.Author != "Ünïcode" || c.AuthoredAt != "2024-02-02T23:05:06.000Z" || len(c.Parents) != 1 {
		t.Errorf("%+v", c)
	}
	rest := must(t, r.p, gitLog, wire.GitLogIn{Limit: 3, Skip: *first.NextSkip})
	if rest.Count != 1 || rest.Truncated || rest.NextSkip != nil || rest.Commits[0].Subject != "plain" || len(rest.Commits[0].Parents) != 0 {
		t.Errorf("%+v", rest)
	}
}

func TestChangesInOneAnswer(t *testing.T) {
	r := newRepo(t)
	r.write("f", "1\n2\n3\n")
	r.write("g", "1\n")
	r.commit("base")
	r.write("f", "1\n2\nthree\n")
	r.git("add", "f")
	r.write("f", "1\ntwo\nthree\n")
	r.write("new text", strings.Repeat("line\n", 100))
	r.write("new binary", "a\x00b")
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dir, "new link")); err != nil {
		t.Fatal(err)
	}
	got := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: true})
	if got.Counts != (wire.GitCounts{Staged: 1, Unstaged: 1, Untracked: 3, Total: 4}) || got.DiffStat != (wire.DiffStat{Files: 1, Additions: 2, Deletions: 2}) {
		t.Errorf("%+v %+v", got.Counts, got.DiffStat)
	}
	if f := got.Files[0]; f.Path != "f" || f.Staged != "modified" || f.Unstaged != "modified" || *f.Additions != 2 {
		t.Errorf("%+v", f)
	}
	if got.Diff.HunkCount != 1 || got.Diff.Files[0].Hunks[0].Text != " 1\n-2\n-3\n+two\n+three\n" {
		t.Errorf("%+v", got.Diff)
	}
	previews := map[string]wire.UntrackedPreview{}
	for _, v := range got.Previews {
		previews[v.Path] = v
	}
	if len(previews) != 2 || !previews["new binary"].Binary || previews["new text"].Text != strings.Repeat("line\n", maxPreviewLines) || !previews["new text"].Truncated {
		t.Errorf("%+v", previews)
	}
	plain := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{})
	if plain.Diff != nil || plain.Previews != nil || plain.Total != 4 {
		t.Errorf("%+v", plain)
	}
}

func TestFiltersAreNamed(t *testing.T) {
	r := newRepo(t)
	r.write("f", "x\n")
	r.commit("base")
	if must(t, r.p, gitStatus, wire.GitStatusIn{}).FiltersDisabled {
		t.Error("no filter is configured")
	}
	r.git("config", "filter.lfs.clean", "git-lfs clean -- %f")
	for _, disabled := range []bool{must(t, r.p, gitStatus, wire.GitStatusIn{}).FiltersDisabled, must(t, r.p, gitDiff, wire.GitDiffIn{}).FiltersDisabled,
		must(t, r.p, gitDiffHunks, wire.DiffHunksIn{}).FiltersDisabled, must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{}).FiltersDisabled,
		must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{}).FiltersDisabled} {
		if !disabled {
			t.Error("a configured filter is not told")
		}
	}
}

func TestTrackedFiles(t *testing.T) {
	r := newRepo(t)
	for _, name := range []string{"a.go", "b/c.go", "b/d/e.go", "b/d/f.txt", "b-x/g.go", "z.md"} {
		r.write(name, "x\n")
	}
	if err := os.Symlink("a.go", filepath.Join(r.dir, "l")); err != nil {
		t.Fatal(err)
	}
	r.commit("base")
	r.write("untracked.go", "x\n")
	list := func(in wire.TrackedFilesIn) (out []string) {
		for _, e := range must(t, r.p, trackedFiles, in).Entries {
			out = append(out, e.Kind+" "+e.Path)
		}
		return out
	}
	for name, c := range map[string]struct {
		in   wire.TrackedFilesIn
		want []string
	}{
		"all":    {wire.TrackedFilesIn{}, []string{"file a.go", "file b-x/g.go", "file b/c.go", "file b/d/e.go", "file b/d/f.txt", "symlink l", "file z.md"}},
		"depth":  {wire.TrackedFilesIn{Depth: 1}, []string{"file a.go", "dir b-x", "dir b", "symlink l", "file z.md"}},
		"below":  {wire.TrackedFilesIn{Path: "b", Depth: 1}, []string{"file b/c.go", "dir b/d"}},
		"slash":  {wire.TrackedFilesIn{Path: "b/", Depth: 1}, []string{"file b/c.go", "dir b/d"}},
		"file":   {wire.TrackedFilesIn{Path: "b/c.go"}, []string{"file b/c.go"}},
		"globs":  {wire.TrackedFilesIn{Globs: []string{"*.md", "b/**/*.{txt,md}"}}, []string{"file b/d/f.txt", "file z.md"}},
		"class":  {wire.TrackedFilesIn{Globs: []string{"[!a-b].go"}}, []string{"file b-x/g.go", "file b/c.go", "file b/d/e.go"}},
		"single": {wire.TrackedFilesIn{Globs: []string{"b/?.go"}}, []string{"file b/c.go"}},
		"page":   {wire.TrackedFilesIn{Offset: 5, Limit: 1}, []string{"symlink l"}},
	} {
		if got := list(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	for _, bad := range []string{"", "[a", "{a", "a}", `a\`, strings.Repeat("a", 257)} {
		refused(t, r.p, trackedFiles, wire.TrackedFilesIn{Globs: []string{bad}}, fault.InvalidArguments, "")
	}
}
