package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// points are the steps of a creation, in order.
var points = []string{"noted", "added", "populated", "ready"}

// A step that fails leaves nothing: no registration, no directory, no note, no Project.
// Covers: WTR-06
func TestFailureAtEachStep(t *testing.T) {
	at := func(g *ground) string { return filepath.Join(g.base, namespace, name(g.p, op(1))) }
	breaks := map[string]func(g *ground) error{
		"noted":     func(g *ground) error { return os.WriteFile(at(g), []byte("x"), 0o600) },
		"added":     func(g *ground) error { return os.Remove(filepath.Join(at(g), ".git")) },
		"populated": func(g *ground) error { return os.Mkdir(g.m.notes.file(op(1))+".tmp", 0o700) },
		"ready":     func(g *ground) error { return os.Remove(filepath.Join(at(g), ".git")) },
	}
	for _, point := range points {
		g := newGround(t)
		g.m.reached = func(p string) {
			if p == point {
				if err := breaks[p](g); err != nil {
					t.Error(err)
				}
			}
		}
		if out, err := g.create(wire.CreateWorktreeIn{Operation: op(1)}); err == nil {
			t.Errorf("%s: %+v", point, out)
		}
		_ = os.Remove(g.m.notes.file(op(1)) + ".tmp")
		g.nothingLeft()
		g.m.reached = func(string) {}
		if out, _ := g.made(wire.CreateWorktreeIn{Operation: op(1)}); !out.Created {
			t.Errorf("%s: the same operation afterwards: %+v", point, out)
		}
	}
}

const dyingEnv = "WEBCODEX_TEST_DYING_WORKTREE"

// TestDyingChild is not a test: it is the Runner that the next one kills.
func TestDyingChild(t *testing.T) {
	point := os.Getenv(dyingEnv)
	if point == "" {
		t.Skip("only as a child")
	}
	r, err := runner.New(runner.Options{Dir: os.Getenv(dyingEnv + "_DATA"), Client: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	m := Register(r, Options{})
	p, err := r.AddProject(os.Getenv(dyingEnv + "_REPO"))
	if err != nil {
		t.Fatal(err)
	}
	m.reached = func(at string) {
		if at == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	_, err = m.Create(t.Context(), p, wire.CreateWorktreeIn{Operation: op(1)})
	t.Fatal("it lives", err)
}

// A Runner that is killed between two steps leaves nothing half-made: the next one takes back what
// was not whole, and serves what was; the same operation then gives one worktree.
// Covers: WTR-06, WTR-16
func TestKilledAtEachStep(t *testing.T) {
	for _, point := range points {
		g := newGround(t)
		if err := g.r.Close(); err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0], "-test.run=^TestDyingChild$")
		child.Env = append(os.Environ(), dyingEnv+"="+point, dyingEnv+"_DATA="+g.data, dyingEnv+"_REPO="+g.dir)
		out, err := child.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("%s: the child was not killed: %v\n%s", point, err, out)
		}
		g.begin()
		if point == "ready" {
			if n := len(g.r.Projects()); n != 2 {
				t.Errorf("%d Projects: what was whole is not served", n)
			}
		} else {
			g.nothingLeft()
		}
		made, p := g.made(wire.CreateWorktreeIn{Operation: op(1)})
		if made.Created != (point != "ready") || gitIn(t, p.Path, "status", "--porcelain") != "" {
			t.Errorf("%s: %+v", point, made)
		}
	}
}

// What git itself leaves when it is killed in the middle is found by its name.
func TestGitKilledInTheMiddle(t *testing.T) {
	g := newGround(t)
	at := filepath.Join(g.base, namespace, name(g.p, op(1)))
	n := note{Version: noteVersion, Operation: op(1), Step: stepCreating, Source: g.p.ID, Root: g.p.Fingerprint, From: g.dir,
		Common: filepath.Join(g.dir, ".git"), Base: g.git("rev-parse", "HEAD"), Path: at}
	mine := filepath.Join(n.Common, "worktrees", filepath.Base(at))
	for _, dir := range []string{at, mine, filepath.Join(n.Common, "worktrees", "somebody-s")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(mine, "locked"), []byte("initializing"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := g.m.notes.put(n); err != nil {
		t.Fatal(err)
	}
	g.restart()
	if _, err := os.Lstat(mine); err == nil {
		t.Error("the registration is left")
	}
	if _, err := os.Lstat(filepath.Join(n.Common, "worktrees", "somebody-s")); err != nil {
		t.Error("somebody else's is gone")
	}
	if err := os.RemoveAll(filepath.Join(n.Common, "worktrees")); err != nil {
		t.Fatal(err)
	}
	g.nothingLeft()
}

// A repository whose place for registrations leads elsewhere, and one whose objects are not there,
// make nothing.
func TestRepositoryThatCannot(t *testing.T) {
	g := newGround(t)
	if err := os.Symlink(t.TempDir(), filepath.Join(g.dir, ".git", "worktrees")); err != nil {
		t.Fatal(err)
	}
	_, err := g.create(wire.CreateWorktreeIn{Operation: op(1)})
	g.refused(err, fault.GitUnavailable, "unsupported_repository")
	if err := os.Remove(filepath.Join(g.dir, ".git", "worktrees")); err != nil {
		t.Fatal(err)
	}
	id := g.git("rev-parse", "HEAD:file")
	if err := os.Remove(filepath.Join(g.dir, ".git/objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
	_, err = g.create(wire.CreateWorktreeIn{Operation: op(1)})
	g.refused(err, fault.GitFailed, "")
	g.nothingLeft()
}
