package gitops

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func TestRepositoryWithoutCommit(t *testing.T) {
	r := newRepo(t)
	r.write("staged", "a\nb\n")
	r.git("add", "staged")
	r.write("loose", "c\n")
	st := must(t, r.p, gitStatus, wire.GitStatusIn{})
	if !st.Unborn || st.Branch != "main" || st.Head != "" || st.Counts != (wire.GitCounts{Staged: 1, Untracked: 1, Total: 2}) {
		t.Errorf("status: %+v", st)
	}
	if got := must(t, r.p, gitLog, wire.GitLogIn{}); got.Count != 0 || got.Truncated {
		t.Errorf("log: %+v", got)
	}
	ch := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: true})
	if ch.DiffStat != (wire.DiffStat{Files: 1, Additions: 2}) || ch.Diff.HunkCount != 1 || len(ch.Previews) != 1 || ch.Previews[0].Text != "c\n" {
		t.Errorf("changes: %+v", ch)
	}
	if d := must(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: wire.DiffScope{Cached: true}}); !strings.Contains(d.Diff, "+a\n+b\n") || d.Scope != "staged" {
		t.Errorf("diff: %+v", d)
	}
	if w := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{}); w.Status != wire.WorkspaceDirty || w.ChangedFiles != 2 || w.Detached {
		t.Errorf("workspace: %+v", w)
	}
}

func TestDetachedHead(t *testing.T) {
	r := newRepo(t)
	first := r.commit("one")
	r.commit("two")
	r.git("checkout", "-q", first)
	st := must(t, r.p, gitStatus, wire.GitStatusIn{})
	if !st.Detached || st.Branch != "" || st.Head != first || !st.Clean {
		t.Errorf("%+v", st)
	}
	if w := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{}); w.Status != wire.WorkspaceClean || !w.Detached || w.Head != first {
		t.Errorf("%+v", w)
	}
}

func conflicted(t *testing.T) *repo {
	r := newRepo(t)
	r.write("both", "base\n")
	r.write("calm", "calm\n")
	r.commit("base")
	r.git("checkout", "-q", "-b", "side")
	r.write("both", "side\n")
	r.commit("side")
	r.git("checkout", "-q", "main")
	r.write("both", "main\n")
	r.commit("main")
	if out, err := r.tryGit("merge", "--no-edit", "side"); err == nil {
		t.Fatal("no conflict: " + out)
	}
	return r
}

func TestMergeConflict(t *testing.T) {
	r := conflicted(t)
	st := must(t, r.p, gitStatus, wire.GitStatusIn{})
	if st.Counts.Conflicted != 1 || st.Operation != "merge" || len(st.Files) != 1 || !st.Files[0].Conflicted || st.Files[0].Path != "both" {
		t.Errorf("status: %+v", st)
	}
	w := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{})
	if w.Status != wire.WorkspaceBlocked || w.ConflictCount != 1 || !slices.Equal(w.Conflicts, []string{"both"}) {
		t.Errorf("workspace: %+v", w)
	}
	h := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{})
	if len(h.Files) != 1 || h.Files[0].Change != "unmerged" || h.HunkCount != 1 || !strings.Contains(h.Files[0].Hunks[0].Text, "<<<<<<<") {
		t.Errorf("hunks: %+v", h)
	}
	if h := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: wire.DiffScope{Cached: true}}); len(h.Files) != 1 || h.Files[0].Change != "unmerged" {
		t.Errorf("staged hunks: %+v", h)
	}
	if c := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: true}); c.Clean || c.Counts.Conflicted != 1 || c.DiffStat.Files != 1 {
		t.Errorf("changes: %+v", c)
	}
	if tr := must(t, r.p, trackedFiles, wire.TrackedFilesIn{}); tr.TotalFiles != 2 {
		t.Errorf("a conflicted file is counted once: %+v", tr)
	}
	if d := must(t, r.p, gitDiff, wire.GitDiffIn{}); len(d.Files) != 1 || d.Files[0].Additions == 0 {
		t.Errorf("the lines of a conflict are not counted: %+v", d.Files)
	}
	refused(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{"both"}}, fault.InvalidPath, "conflicted")
}

// A worktree checkout is served; its git directory lies in another place, but points back.
func TestWorktreeCheckout(t *testing.T) {
	r := newRepo(t)
	r.write("file", "one\n")
	r.commit("base")
	dir := filepath.Join(t.TempDir(), "wt")
	r.git("worktree", "add", "-q", "-b", "topic", dir)
	wt := &repo{t: t, dir: dir, p: projectAt(t, dir)}
	wt.write("file", "two\n")
	st := must(t, wt.p, gitStatus, wire.GitStatusIn{})
	if st.Branch != "topic" || st.Counts != (wire.GitCounts{Unstaged: 1, Total: 1}) {
		t.Errorf("%+v", st)
	}
	if got := must(t, wt.p, restorePaths, wire.RestorePathsIn{Paths: []string{"file"}}); !slices.Equal(got.Restored, []string{"file"}) || wt.read("file") != "one\n" {
		t.Errorf("%+v", got)
	}
	// One that points back nowhere is not registered and not served.
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, ".git"), []byte(wt.read(".git")), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, projectAt(t, other), gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "git_dir_outside_project")
}

func TestNoRepository(t *testing.T) {
	isolate(t)
	plain := projectAt(t, t.TempDir())
	refused(t, plain, gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "not_a_repository")
	if w := must(t, plain, observeWorkspace, wire.ObserveWorkspaceIn{}); w.Status != wire.WorkspaceUnavailable || w.Reason != "not_a_repository" || w.Conflicts == nil {
		t.Errorf("%+v", w)
	}
	// A folder inside a repository is not that repository.
	r := newRepo(t)
	r.write("sub/file", "x\n")
	r.commit("base")
	refused(t, projectAt(t, filepath.Join(r.dir, "sub")), gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "not_a_repository")
	bare := filepath.Join(t.TempDir(), "bare.git")
	r.git("clone", "-q", "--bare", r.dir, bare)
	refused(t, projectAt(t, bare), gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "bare_repository")
	broken := t.TempDir()
	if err := os.MkdirAll(filepath.Join(broken, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	refused(t, projectAt(t, broken), gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "not_a_repository")
	fifo := t.TempDir()
	if out, err := exec.Command("mkfifo", filepath.Join(fifo, ".git")).CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v %s", err, out)
	}
	refused(t, projectAt(t, fifo), gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "not_a_repository")
}

func TestForeignOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("giving a file away needs root")
	}
	r := newRepo(t)
	r.commit("base")
	for _, p := range []string{r.dir, filepath.Join(r.dir, ".git")} {
		if err := os.Chown(p, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	f := refused(t, r.p, gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "dubious_ownership")
	if !strings.Contains(f.Next, "safe.directory") || strings.Contains(f.Message+f.Next, r.dir) {
		t.Errorf("%q %q", f.Message, f.Next)
	}
	if w := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{}); w.Status != wire.WorkspaceUnavailable || w.Reason != "dubious_ownership" {
		t.Errorf("%+v", w)
	}
	// The owner of the machine may allow it.
	r.git("config", "--global", "--add", "safe.directory", r.dir)
	must(t, r.p, gitStatus, wire.GitStatusIn{})
}

func TestUnknownFormat(t *testing.T) {
	r := newRepo(t)
	r.git("config", "core.repositoryFormatVersion", "1")
	r.git("config", "extensions.fromTheFuture", "true")
	refused(t, r.p, gitStatus, wire.GitStatusIn{}, fault.GitUnavailable, "unsupported_repository")
}

// Names that hosts and shells trip over pass through every op unchanged.
func TestOddNames(t *testing.T) {
	odd := []string{"with space", "two  spaces ", "émoji 😀.txt", `quo"te`, "new\nline", "-leading", "--dashes", "tab\there",
		"e\u0301 decomposed", `back\slash`, ":(glob)*", "*", "[a]", "!not", "#hash", "dir with space/-x", "a -> b", "bell\a", "a/b.txt b/b.txt"}
	r := newRepo(t)
	for _, name := range odd {
		r.write(name, "one\n")
	}
	r.commit("base")
	for _, name := range odd {
		r.write(name, "two\nthree\n")
	}
	var status, hunks, files, changed []string
	for _, f := range must(t, r.p, gitStatus, wire.GitStatusIn{}).Files {
		status = append(status, f.Path)
	}
	for _, f := range must(t, r.p, gitDiffHunks, wire.DiffHunksIn{MaxHunks: 100}).Files {
		hunks = append(hunks, f.Path)
	}
	for _, f := range must(t, r.p, gitDiff, wire.GitDiffIn{}).Files {
		files = append(files, f.Path)
	}
	for _, f := range must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{}).Files {
		if changed = append(changed, f.Path); f.Additions == nil || *f.Additions != 2 || *f.Deletions != 1 {
			t.Errorf("%q: counts %v %v", f.Path, f.Additions, f.Deletions)
		}
	}
	var tracked []string
	for _, f := range must(t, r.p, trackedFiles, wire.TrackedFilesIn{}).Entries {
		tracked = append(tracked, f.Path)
	}
	want := slices.Sorted(slices.Values(odd))
	for name, got := range map[string][]string{"status": status, "hunks": hunks, "diff": files, "changes": changed, "tracked": tracked} {
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, want)
		}
	}
	for _, name := range odd {
		one := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{DiffScope: wire.DiffScope{Paths: []string{name}}})
		if len(one.Files) != 1 || one.Files[0].Path != name || one.Files[0].Change != "modified" {
			t.Errorf("%q alone: %+v", name, one.Files)
		}
		got := must(t, r.p, restorePaths, wire.RestorePathsIn{Paths: []string{name}})
		if !slices.Equal(got.Restored, []string{name}) || r.read(name) != "one\n" {
			t.Errorf("%q: %+v", name, got)
		}
	}
	if !must(t, r.p, gitStatus, wire.GitStatusIn{}).Clean {
		t.Error("not clean after all was restored")
	}
}

// A name that is not UTF-8 is shown escaped and marked.
func TestNameThatIsNotUTF8(t *testing.T) {
	r := newRepo(t)
	name := "a%\xff\xc3"
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte("x\n"), 0o644); err != nil {
		t.Skip("the file system takes only UTF-8 names")
	}
	st := must(t, r.p, gitStatus, wire.GitStatusIn{})
	if len(st.Files) != 1 || st.Files[0].Path != "a%25%FF%C3" || !st.Files[0].Lossy {
		t.Errorf("%+v", st.Files)
	}
	r.commit("base")
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte("y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h := must(t, r.p, gitDiffHunks, wire.DiffHunksIn{})
	if len(h.Files) != 1 || h.Files[0].Path != "a%25%FF%C3" || !h.Files[0].Lossy {
		t.Errorf("%+v", h.Files)
	}
}

// 50,000 changed files are counted exactly and come in pages that meet.
func TestManyFiles(t *testing.T) {
	const n = 50_000
	r := newRepo(t)
	r.write("seed", "x\n")
	blob := r.git("hash-object", "-w", "seed")
	var index strings.Builder
	for i := range n {
		fmt.Fprintf(&index, "100644 %s\tdir%03d/a file with a rather long name %05d.txt\n", blob, i/500, i)
	}
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(index.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	w := must(t, r.p, observeWorkspace, wire.ObserveWorkspaceIn{})
	if w.ChangedFiles != n+1 {
		t.Errorf("%d changed", w.ChangedFiles)
	}
	seen := map[string]bool{}
	for offset, pages := 0, 0; ; pages++ {
		st := must(t, r.p, gitStatus, wire.GitStatusIn{Offset: offset, Limit: 1000})
		if st.Counts.Total != n+1 || st.Counts.Staged != n || st.Counts.Unstaged != n || st.Counts.Untracked != 1 {
			t.Fatalf("%+v", st.Counts)
		}
		for _, f := range st.Files {
			seen[f.Path] = true
		}
		if len(seen) != offset+st.Returned || st.Returned == 0 {
			t.Fatalf("page at %d repeats or is empty", offset)
		}
		if pages == 3 {
			break // the rest is alike
		}
		offset = *st.NextOffset
	}
	tr := must(t, r.p, trackedFiles, wire.TrackedFilesIn{Depth: 1})
	if tr.TotalFiles != n || tr.TotalEntries != 100 || tr.Entries[0].Kind != "dir" || tr.Entries[0].Files != 500 {
		t.Errorf("tracked: %d %d %+v", tr.TotalFiles, tr.TotalEntries, tr.Entries[:1])
	}
	if c := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: true}); c.Total != n+1 || !c.Truncated || c.Returned > maxChangedFiles {
		t.Errorf("changes: %d of %d", c.Returned, c.Total)
	}
}

// A repository with the longer object ids is served alike.
func TestLongObjectIDs(t *testing.T) {
	isolate(t)
	r := &repo{t: t, dir: t.TempDir()}
	if out, err := r.tryGit("init", "-q", "-b", "main", "--object-format=sha256"); err != nil {
		t.Skip("this git has none: " + out)
	}
	r.git("config", "user.name", "n")
	r.git("config", "user.email", "e@x")
	r.p = projectAt(t, r.dir)
	r.write("f", "one\n")
	r.git("add", "f")
	if c := must(t, r.p, workspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: true}); c.DiffStat.Additions != 1 || c.Diff.HunkCount != 1 {
		t.Errorf("%+v", c)
	}
	base := r.commit("one")
	r.write("f", "two\n")
	head := r.commit("two")
	d := must(t, r.p, gitDiff, wire.GitDiffIn{DiffScope: wire.DiffScope{Base: base, Head: head}})
	if len(base) != 64 || !strings.HasSuffix(d.Diff, "-one\n+two\n") || must(t, r.p, gitLog, wire.GitLogIn{}).Count != 2 {
		t.Errorf("%q %+v", base, d)
	}
}
