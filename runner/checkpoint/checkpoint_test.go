package checkpoint

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/files"
	"webcodex/runner/wire"
)

// ground is a real repository that a Runner serves.
type ground struct {
	t   testing.TB
	dir string
	s   *Service
	p   *runner.Project
	n   byte // restores so far
}

func newGround(t *testing.T) *ground {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	g := &ground{t: t, dir: filepath.Join(t.TempDir(), "it's a repo")}
	g.must(os.Mkdir(g.dir, 0o755))
	g.git("init", "-q", "-b", "main")
	g.git("config", "user.name", "Test Person")
	g.git("config", "user.email", "test@example.com")
	g.write("clean", "as in head\n")
	g.write("changed", "one\n")
	g.write("gone", "one\n")
	g.write("dir/deep", "one\n")
	g.write("program", "#!/bin/sh\n")
	g.write(".gitignore", "*.ignored\n")
	g.commit("base")
	r, err := runner.New(runner.Options{Dir: filepath.Join(t.TempDir(), "runner"), Client: "c1"})
	g.must(err)
	t.Cleanup(func() { _ = r.Close() })
	g.s = Register(r, files.Register(r), nil)
	g.p, err = r.AddProject(g.dir)
	g.must(err)
	return g
}

func (g *ground) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) git(args ...string) string {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		g.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (g *ground) write(name, text string) {
	g.t.Helper()
	at := filepath.Join(g.dir, name)
	g.must(os.MkdirAll(filepath.Dir(at), 0o755))
	g.must(os.WriteFile(at, []byte(text), 0o644))
}

func (g *ground) rm(name string) {
	g.t.Helper()
	g.must(os.RemoveAll(filepath.Join(g.dir, name)))
}

func (g *ground) commit(message string) string {
	g.t.Helper()
	g.git("add", "-A")
	g.git("commit", "-q", "--allow-empty", "-m", message)
	return g.git("rev-parse", "HEAD")
}

// tree is every file there is, with its mode and content, but for git's own.
func (g *ground) tree() map[string]string {
	g.t.Helper()
	out := map[string]string{}
	g.must(filepath.WalkDir(g.dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(g.dir, p)
		if d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type()&os.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			out[rel] = "-> " + to
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		out[rel] = info.Mode().String()[3:4] + string(b)
		return err
	}))
	return out
}

func ckpt(n byte) string { return "wc_ckpt_" + strings.Repeat(string("0123456789abcdef"[n%16]), 32) }

func (g *ground) keep(n byte, untracked bool) wire.CreateCheckpointOut {
	g.t.Helper()
	out, err := g.s.Create(g.t.Context(), g.p, wire.CreateCheckpointIn{ID: ckpt(n), Untracked: untracked,
		CheckpointAbout: wire.CheckpointAbout{Title: "it's a title", Kind: "baseline", Labels: []string{"a.b"}}})
	if err != nil {
		g.t.Fatalf("%v (%v)", err, fault.As(err).Unwrap())
	}
	return out
}

func (g *ground) read(n byte) wire.ReadCheckpointOut {
	g.t.Helper()
	out, err := g.s.Read(g.t.Context(), g.p, wire.ReadCheckpointIn{ID: ckpt(n)})
	if err != nil {
		g.t.Fatalf("%v (%v)", err, fault.As(err).Unwrap())
	}
	return out
}

func (g *ground) restore(n byte) wire.RestoreCheckpointOut {
	g.t.Helper()
	g.n++
	out, err := g.s.Restore(g.t.Context(), g.p, wire.RestoreCheckpointIn{ID: ckpt(n), Expected: g.read(n).Current, Before: ckpt(8 + g.n)})
	if err != nil {
		g.t.Fatalf("%v (%v)", err, fault.As(err).Unwrap())
	}
	return out
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// mess makes one of each kind of change.
func (g *ground) mess() {
	g.t.Helper()
	g.write("changed", "two\r\nand a half")
	g.git("add", "changed")
	g.write("changed", "two\r\nand more")
	g.rm("gone")
	g.write("new/a b'c", "new\x00binary\xff")
	g.write("-dash", "x")
	g.write("x.ignored", "ignored")
	g.must(os.Chmod(filepath.Join(g.dir, "program"), 0o755))
	g.must(os.Symlink("new/a b'c", filepath.Join(g.dir, "link")))
	g.must(os.Symlink("/etc/passwd", filepath.Join(g.dir, "outlink")))
	g.write("line\nbreak \"quoted\\", "odd")
	g.git("mv", "dir/deep", "moved")
}

// Making a checkpoint changes no file, no index and no branch; putting it back brings every byte,
// mode, link and deletion, and takes away what came since; ignored files, HEAD and index stay.
func TestThereAndBack(t *testing.T) {
	g := newGround(t)
	g.mess()
	index, err := os.ReadFile(filepath.Join(g.dir, ".git/index"))
	g.must(err)
	then, refs := g.tree(), g.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash")
	made := g.keep(1, true)
	if !made.Complete || made.Kept != 8 || made.Deleted != 2 || made.Branch != "main" || made.Head != g.git("rev-parse", "HEAD") {
		t.Errorf("%+v", made)
	}
	if after, err := os.ReadFile(filepath.Join(g.dir, ".git/index")); err != nil || string(after) != string(index) {
		t.Error("the index was touched", err)
	}
	if !same(then, g.tree()) || g.git("for-each-ref", "refs/heads", "refs/tags", "refs/stash") != refs {
		t.Error("files or branches were touched")
	}
	if r := g.read(1); r.ChangeCount != 0 || r.Current != made.State || len(r.Files) != 10 {
		t.Errorf("right after: %+v", r)
	}
	g.write("clean", "not any more\n")
	g.write("changed", "three\n")
	g.write("gone", "back\n")
	g.rm("new")
	g.rm("link")
	g.write("link", "a file now")
	g.must(os.Chmod(filepath.Join(g.dir, "program"), 0o644))
	g.write("since/then", "x")
	g.write("y.ignored", "kept")
	g.rm("outlink")
	read := g.read(1)
	out := g.restore(1)
	if !out.Restored || !out.Complete || out.HeadMoved || out.ChangeCount != 8 || read.ChangeCount != 8 || !slices.Equal(out.Changes, read.Changes) || out.State != made.State {
		t.Errorf("%+v\n%+v", out, read)
	}
	then["y.ignored"] = "-kept"
	if now := g.tree(); !same(then, now) {
		t.Errorf("then\n%q\nnow\n%q", then, now)
	}
	if _, err := os.Lstat(filepath.Join(g.dir, "since")); err == nil {
		t.Error("an empty directory is left")
	}
	// What was there before is a checkpoint too.
	if back, err := g.s.Restore(t.Context(), g.p, wire.RestoreCheckpointIn{ID: out.Before, Expected: out.State, Before: ckpt(14)}); err != nil || back.ChangeCount != 8 {
		t.Errorf("%+v %v", back, err)
	}
	if b, _ := os.ReadFile(filepath.Join(g.dir, "link")); string(b) != "a file now" {
		t.Errorf("%q", b)
	}
	g.restore(1)
	if again := g.restore(1); again.Restored || again.ChangeCount != 0 || again.Before != "" {
		t.Errorf("a second time: %+v", again)
	}
}

// Commits since then stay; the files are as they were, those of the commits too, with the line ends
// that the repository asks for.
func TestAcrossCommits(t *testing.T) {
	g := newGround(t)
	g.write(".gitattributes", "*.crlf text eol=crlf\n")
	g.write("a.crlf", "one\r\ntwo\r\n")
	g.commit("line ends")
	g.write("changed", "work\n")
	then := g.tree()
	g.keep(1, true)
	g.write("a.crlf", "three\r\n")
	g.write("added", "x\n")
	g.git("rm", "-q", "-f", "gone")
	head := g.commit("later")
	g.write("changed", "more\n")
	out := g.restore(1)
	if !out.HeadMoved || !out.Complete || out.Head != head || g.git("rev-parse", "HEAD") != head {
		t.Errorf("%+v", out)
	}
	if now := g.tree(); !same(then, now) {
		t.Errorf("then\n%q\nnow\n%q", then, now)
	}
}

// Without untracked files nothing of theirs is kept, and none is deleted.
func TestTrackedOnly(t *testing.T) {
	g := newGround(t)
	g.write("changed", "two\n")
	g.write("loose", "x\n")
	made := g.keep(1, false)
	if made.Kept != 1 || made.Untracked {
		t.Errorf("%+v", made)
	}
	g.write("changed", "three\n")
	g.write("later", "y\n")
	out := g.restore(1)
	now := g.tree()
	if out.ChangeCount != 1 || now["changed"] != "-two\n" || now["loose"] != "-x\n" || now["later"] != "-y\n" {
		t.Errorf("%+v %q", out, now)
	}
}

// A restore that does not know what is there changes nothing.
func TestStateIsAFence(t *testing.T) {
	g := newGround(t)
	g.write("changed", "two\n")
	g.keep(1, true)
	g.write("changed", "three\n")
	seen := g.read(1).Current
	g.write("changed", "four\n")
	then := g.tree()
	_, err := g.s.Restore(t.Context(), g.p, wire.RestoreCheckpointIn{ID: ckpt(1), Expected: seen, Before: ckpt(9)})
	f := fault.As(err)
	if f == nil || f.Kind != fault.EditConflict || f.Reason != "state_changed" || f.StateChanged || f.Details["current_state"] == seen || !same(then, g.tree()) {
		t.Errorf("%+v", f)
	}
	if list, err := g.s.List(t.Context(), g.p, wire.ListCheckpointsIn{}); err != nil || list.Total != 1 {
		t.Errorf("%+v %v", list, err)
	}
}

// What cannot be kept is named, and what cannot be put back is left and named; the rest is.
func TestSkipped(t *testing.T) {
	g := newGround(t)
	large := strings.Repeat("x", int(limits.File)+1)
	g.write("large", large)
	g.write("changed", "two\n")
	g.git("init", "-q", filepath.Join(g.dir, "inner"))
	g.write("inner/file", "x")
	g.write("bad\xffname", "x")
	made := g.keep(1, true)
	if made.Complete || made.Skipped != 3 {
		t.Errorf("%+v", made)
	}
	g.write("large", "small")
	g.write("changed", "three\n")
	g.rm("clean")
	g.write("clean/dir", "x")
	out := g.restore(1)
	reasons := map[string]string{}
	for _, s := range out.Skipped {
		reasons[s.Path] = s.Reason
	}
	now := g.tree()
	if out.Complete || reasons["large"] != "too_large" || reasons["clean"] != "in_the_way" || now["changed"] != "-two\n" || now["large"] != "-small" || now["inner/file"] != "-x" {
		t.Errorf("%+v %q", out, now)
	}
}

// The bounds hold at their values, and one past them.
func TestBounds(t *testing.T) {
	g := newGround(t)
	about := wire.CheckpointAbout{Kind: "snapshot"}
	for name, in := range map[string]wire.CreateCheckpointIn{
		"id":      {ID: "wc_ckpt_../../heads/main", CheckpointAbout: about},
		"title":   {ID: ckpt(1), CheckpointAbout: wire.CheckpointAbout{Kind: "snapshot", Title: strings.Repeat("é", wire.MaxCheckpointTitle+1)}},
		"control": {ID: ckpt(1), CheckpointAbout: wire.CheckpointAbout{Kind: "snapshot", Title: "a\x1b[0m"}},
		"note":    {ID: ckpt(1), CheckpointAbout: wire.CheckpointAbout{Kind: "snapshot", Note: strings.Repeat("a", wire.MaxCheckpointNote+1)}},
		"kind":    {ID: ckpt(1), CheckpointAbout: wire.CheckpointAbout{Kind: "other"}},
		"labels":  {ID: ckpt(1), CheckpointAbout: wire.CheckpointAbout{Kind: "snapshot", Labels: slices.Repeat([]string{"a"}, wire.MaxCheckpointLabels+1)}},
		"label":   {ID: ckpt(1), CheckpointAbout: wire.CheckpointAbout{Kind: "snapshot", Labels: []string{"a/b"}}},
	} {
		if _, err := g.s.Create(t.Context(), g.p, in); fault.KindOf(err) != fault.InvalidArguments {
			t.Errorf("%s: %v", name, err)
		}
	}
	most := wire.CheckpointAbout{Kind: "snapshot", Title: strings.Repeat("é", wire.MaxCheckpointTitle), Note: strings.Repeat("\n", wire.MaxCheckpointNote),
		Labels: slices.Repeat([]string{strings.Repeat("a", wire.MaxCheckpointLabel)}, wire.MaxCheckpointLabels)}
	if _, err := g.s.Create(t.Context(), g.p, wire.CreateCheckpointIn{ID: ckpt(1), CheckpointAbout: most}); err != nil {
		t.Error(err)
	}
	if again, err := g.s.Create(t.Context(), g.p, wire.CreateCheckpointIn{ID: ckpt(1), CheckpointAbout: about}); err != nil || again.Title != most.Title {
		t.Errorf("the same id again: %+v %v", again, err)
	}
	for i := range limits.Paths + 1 {
		g.write(filepath.Join("many", strings.Repeat("x", 1+i%7)+string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))), "")
	}
	if _, err := g.s.Create(t.Context(), g.p, wire.CreateCheckpointIn{ID: ckpt(2), CheckpointAbout: about}); fault.As(err).Reason != "too_many_files" {
		t.Errorf("%v", err)
	}
	for _, do := range []error{
		func() error { _, err := g.s.Read(t.Context(), g.p, wire.ReadCheckpointIn{ID: ckpt(5)}); return err }(),
		func() error { _, err := g.s.Delete(t.Context(), g.p, wire.DeleteCheckpointIn{ID: ckpt(5)}); return err }(),
	} {
		if fault.As(do).Reason != "unknown_checkpoint" {
			t.Error(do)
		}
	}
}

// Checkpoints of one Project are no other's, though worktrees share their refs; deleting forgets one;
// what somebody else put in their place is not believed.
func TestListAndDelete(t *testing.T) {
	g := newGround(t)
	g.write("changed", "two\n")
	g.keep(1, true)
	g.keep(2, true)
	g.git("update-ref", "refs/webcodex/checkpoints/other-00000000/"+ckpt(3), "HEAD")
	g.git("update-ref", "refs/webcodex/checkpoints/"+string(g.p.ID)+"/"+ckpt(4), "HEAD")
	g.git("update-ref", "refs/webcodex/checkpoints/"+string(g.p.ID)+"/"+ckpt(5), "refs/webcodex/checkpoints/"+string(g.p.ID)+"/"+ckpt(1))
	list, err := g.s.List(t.Context(), g.p, wire.ListCheckpointsIn{Limit: 1})
	if err != nil || list.Total != 2 || len(list.Checkpoints) != 1 || list.Checkpoints[0].Title != "it's a title" {
		t.Errorf("%+v %v", list, err)
	}
	if _, err := g.s.Read(t.Context(), g.p, wire.ReadCheckpointIn{ID: ckpt(4)}); fault.As(err).Reason != "unknown_checkpoint" {
		t.Error(err)
	}
	if out, err := g.s.Delete(t.Context(), g.p, wire.DeleteCheckpointIn{ID: ckpt(1)}); err != nil || !out.Deleted {
		t.Error(out, err)
	}
	g.git("gc", "-q", "--prune=now")
	if r := g.read(2); r.ChangeCount != 0 {
		t.Errorf("%+v", r)
	}
	plain := t.TempDir()
	root, err := os.OpenRoot(plain)
	g.must(err)
	defer root.Close()
	if list, err := g.s.List(t.Context(), &runner.Project{ID: "p-00000000", Path: plain, Root: root}, wire.ListCheckpointsIn{}); err != nil || !list.NoRepository {
		t.Errorf("%+v %v", list, err)
	}
}
