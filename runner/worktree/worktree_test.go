package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// A worktree is of exactly the commit that was meant, detached, beside its source, and a Project
// that git and files can be used in; what the branch does afterwards is nothing to it.
// Covers: WTR-04, WTR-05
func TestWorktreeOfOneCommit(t *testing.T) {
	g := newGround(t)
	first := g.git("rev-parse", "HEAD")
	g.write("file", "two\n")
	second := g.commit("second")
	g.git("tag", "v1", first)
	for n, c := range []struct{ ref, want string }{{"", second}, {"main", second}, {"v1", first}, {"HEAD~1", first}, {first[:10], first}} {
		out, p := g.made(wire.CreateWorktreeIn{Operation: op(byte(n)), BaseRef: c.ref})
		if out.BaseCommit != c.want || !out.Created || !out.Project.Git {
			t.Errorf("%q: %+v", c.ref, out)
		}
		if head := gitIn(t, p.Path, "rev-parse", "HEAD"); head != c.want {
			t.Errorf("%q is at %s", c.ref, head)
		}
		if branch, err := tryGit(p.Path, "symbolic-ref", "-q", "HEAD"); err == nil {
			t.Errorf("%q is on %s", c.ref, branch)
		}
		if status := gitIn(t, p.Path, "status", "--porcelain"); status != "" {
			t.Errorf("%q is not clean: %s", c.ref, status)
		}
		if filepath.Dir(p.Path) != filepath.Join(g.base, namespace) {
			t.Errorf("it lies at %s", p.Path)
		}
	}
	all, err := g.m.notes.all()
	if err != nil || len(all) != 5 {
		t.Fatal(all, err)
	}
	if info, err := os.Stat(filepath.Join(all[0].Path, "dir/tool.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Error("a program is none any more", err)
	}
	g.write("file", "three\n")
	g.commit("third")
	if head := gitIn(t, all[1].Path, "rev-parse", "HEAD"); head != second {
		t.Errorf("the worktree follows the branch: %s", head)
	}
	// A worktree of a worktree lies beside it.
	p := g.served(all[1].Project)
	out, err := g.m.Create(t.Context(), p, wire.CreateWorktreeIn{Operation: op(9)})
	if err != nil || filepath.Dir(g.served(out.Project.ID).Path) != filepath.Join(g.base, namespace) || out.BaseCommit != second {
		t.Errorf("%+v %v", out, err)
	}
}

// What names no commit, and a request that is none, makes nothing.
func TestBaseThatIsNone(t *testing.T) {
	g := newGround(t)
	blob := g.git("rev-parse", "HEAD:file")
	for _, ref := range []string{"nothing", "-x", "--all", "HEAD:file", blob, "main..main", strings.Repeat("0", 40), "a b", "$(touch x)"} {
		_, err := g.create(wire.CreateWorktreeIn{Operation: op(1), BaseRef: ref})
		if f := g.refused(err, fault.InvalidArguments, "unknown_commit"); f.Field != "base_ref" {
			t.Errorf("%q: field %s", ref, f.Field)
		}
	}
	for _, in := range []wire.CreateWorktreeIn{{}, {Operation: "../../x"}, {Operation: op(1), BaseRef: strings.Repeat("a", wire.MaxBaseRef+1)},
		{Operation: op(1), BaseRef: "a\x00b"}, {Operation: op(1), BaseRef: "a\nb"}} {
		_, err := g.create(in)
		g.refused(err, fault.InvalidArguments, "")
	}
	g.nothingLeft()
	empty := filepath.Join(g.base, "empty")
	gitIn(t, g.base, "init", "-q", empty)
	p, err := g.r.AddProject(empty)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.m.Create(t.Context(), p, wire.CreateWorktreeIn{Operation: op(1)})
	g.refused(err, fault.InvalidArguments, "no_commit")
	plain := filepath.Join(g.base, "plain")
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err = g.r.AddProject(plain); err != nil {
		t.Fatal(err)
	}
	_, err = g.m.Create(t.Context(), p, wire.CreateWorktreeIn{Operation: op(1)})
	g.refused(err, fault.GitUnavailable, "not_a_repository")
}

// The owner's policy decides where a worktree may lie, and nothing widens it.
// Covers: WTR-10, NEG-26
func TestNoPlaceBeside(t *testing.T) {
	allow := func(g *ground, roots ...string) {
		g.restart(func(o *runner.Options) { o.AllowedRoots = roots })
	}
	g := newGround(t)
	for reason, roots := range map[string][]string{"outside_allowed_roots": {g.dir}, "": {g.base}} {
		allow(g, roots...)
		_, err := g.create(wire.CreateWorktreeIn{Operation: op(1)})
		if reason == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		f := g.refused(err, fault.WorktreeRootUnavailable, reason)
		if f.Next == "" {
			t.Error("it says no next step")
		}
	}
	allow(g, g.dir)
	if n := len(g.r.Projects()); n != 1 {
		t.Errorf("%d Projects: one is served that the policy has no room for any more", n)
	}
	// Somebody else's directory, or no directory, in the place is not used.
	for reason, plant := range map[string]func(at string) error{
		"not_ours":  func(at string) error { return os.Symlink(g.data, at) },
		"not_ours ": func(at string) error { return os.WriteFile(at, nil, 0o600) },
		"not_ours  ": func(at string) error {
			if err := os.Mkdir(at, 0o700); err != nil {
				return err
			}
			return os.Chmod(at, 0o777)
		},
	} {
		h := newGround(t)
		if err := plant(filepath.Join(h.base, namespace)); err != nil {
			t.Fatal(err)
		}
		_, err := h.create(wire.CreateWorktreeIn{Operation: op(1)})
		h.refused(err, fault.WorktreeRootUnavailable, strings.TrimSpace(reason))
	}
}

// A source that was replaced after it was named is not used.
// Covers: WTR-03
func TestSourceReplaced(t *testing.T) {
	g := newGround(t)
	if err := os.Rename(g.dir, g.dir+".away"); err != nil {
		t.Fatal(err)
	}
	gitIn(t, g.base, "clone", "-q", g.dir+".away", g.dir)
	_, err := g.create(wire.CreateWorktreeIn{Operation: op(1)})
	g.refused(err, fault.RunnerRefused, "root_changed")
	if _, err := os.Lstat(filepath.Join(g.base, namespace)); err == nil {
		t.Error("a place was made")
	}
}

// One operation makes one worktree, however often it comes, in this life and the next.
// Covers: WTR-16
func TestOneOperationOneWorktree(t *testing.T) {
	g := newGround(t)
	first, _ := g.made(wire.CreateWorktreeIn{Operation: op(1)})
	g.write("file", "two\n")
	g.commit("second")
	second, _ := g.made(wire.CreateWorktreeIn{Operation: op(1)})
	g.restart()
	third, _ := g.made(wire.CreateWorktreeIn{Operation: op(1)})
	if !first.Created || second.Created || third.Created || second.Project != first.Project || third.Project != first.Project || third.BaseCommit != first.BaseCommit {
		t.Errorf("%+v\n%+v\n%+v", first, second, third)
	}
	if out := g.git("worktree", "list"); strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
	other := filepath.Join(g.base, "other")
	gitIn(t, g.base, "clone", "-q", g.dir, other)
	p, err := g.r.AddProject(other)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.m.Create(t.Context(), p, wire.CreateWorktreeIn{Operation: op(1)})
	g.refused(err, fault.ExecutionConflict, "")
}

// Who goes on with a managed worktree is told what it is of, and refused where that is not so any
// more; nothing is made.
// Covers: WTR-13
func TestProvenance(t *testing.T) {
	g := newGround(t)
	g.git("branch", "topic")
	out, p := g.made(wire.CreateWorktreeIn{Operation: op(1), BaseRef: "topic"})
	look := func(p *runner.Project, ref string) (wire.ObserveWorktreeOut, error) {
		return g.m.Observe(t.Context(), p, wire.ObserveWorktreeIn{BaseRef: ref})
	}
	g.restart()
	p = g.served(p.ID)
	for _, ref := range []string{"", "topic", "HEAD", out.BaseCommit} {
		if seen, err := look(p, ref); err != nil || !seen.Managed || seen.BaseCommit != out.BaseCommit {
			t.Errorf("%q: %+v %v", ref, seen, err)
		}
	}
	if seen, err := look(g.p, "topic"); err != nil || seen.Managed {
		t.Errorf("the source: %+v %v", seen, err)
	}
	gitIn(t, p.Path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "work")
	if seen, err := look(p, "topic"); err != nil || seen.BaseCommit != out.BaseCommit {
		t.Errorf("work in it: %+v %v", seen, err)
	}
	g.write("file", "two\n")
	g.commit("second")
	g.git("branch", "-f", "topic", "main")
	for _, ref := range []string{"topic", "HEAD"} {
		_, err := look(p, ref)
		if f := g.refused(err, fault.RunnerRefused, "base_commit_differs"); f.Field != "base_ref" {
			t.Errorf("field %s", f.Field)
		}
	}
	_, err := look(p, "nothing")
	g.refused(err, fault.InvalidArguments, "unknown_commit")
	if n := len(g.r.Projects()); n != 2 {
		t.Errorf("%d Projects", n)
	}
	g.git("worktree", "remove", "--force", p.Path)
	if err := os.Mkdir(p.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	gitIn(t, p.Path, "init", "-q")
	_, err = look(p, "")
	g.refused(err, fault.RunnerRefused, "provenance")
}

// A worktree comes back with its source, unless its Project was unregistered or it was removed.
func TestWorktreesComeBack(t *testing.T) {
	g := newGround(t)
	kept, _ := g.made(wire.CreateWorktreeIn{Operation: op(1)})
	dropped, _ := g.made(wire.CreateWorktreeIn{Operation: op(2)})
	_, removed := g.made(wire.CreateWorktreeIn{Operation: op(3)})
	if err := g.r.RemoveProject(dropped.Project.ID); err != nil {
		t.Fatal(err)
	}
	g.git("worktree", "remove", removed.Path)
	g.restart()
	if all := g.r.Projects(); len(all) != 2 {
		t.Errorf("%d Projects", len(all))
	}
	p := g.served(kept.Project.ID)
	if p.Fingerprint != kept.Project.Root {
		t.Error("it is another Project now")
	}
	repo, err := git.Open(t.Context(), p.Root)
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	if head, err := repo.Head(t.Context()); err != nil || head != kept.BaseCommit {
		t.Error(head, err)
	}
}
