package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// ground is a real repository and a Runner that serves it.
type ground struct {
	t    testing.TB
	base string // holds the repository and nothing of the Runner
	dir  string // the repository
	data string // the Runner's
	r    *runner.Runner
	m    *Manager
	p    *runner.Project
}

// repoName is one that careless quoting breaks.
const repoName = "it's a repo"

func newGround(t testing.TB, change ...func(*runner.Options)) *ground {
	t.Helper()
	if tt, ok := t.(*testing.T); ok {
		tt.Setenv("HOME", t.TempDir())
		tt.Setenv("XDG_CONFIG_HOME", "")
		tt.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, base: base, dir: filepath.Join(base, repoName), data: filepath.Join(t.TempDir(), "runner")}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	g.git("init", "-q", "-b", "main")
	g.git("config", "user.name", "Test Person")
	g.git("config", "user.email", "test@example.com")
	g.write("file", "one\n")
	g.write("dir/tool.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(g.dir, "dir/tool.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	g.commit("base")
	g.begin(change...)
	return g
}

// begin is a life of the Runner.
func (g *ground) begin(change ...func(*runner.Options)) {
	g.t.Helper()
	o := runner.Options{Dir: g.data, Client: "c1"}
	for _, c := range change {
		c(&o)
	}
	r, err := runner.New(o)
	if err != nil {
		g.t.Fatal(err)
	}
	g.r, g.m = r, Register(r, Options{})
	g.t.Cleanup(func() { _ = r.Close() })
	if g.p, err = r.AddProject(g.dir); err != nil {
		g.t.Fatal(err)
	}
}

// restart is the next life.
func (g *ground) restart(change ...func(*runner.Options)) {
	g.t.Helper()
	if err := g.r.Close(); err != nil {
		g.t.Fatal(err)
	}
	g.begin(change...)
}

func (g *ground) git(args ...string) string { return gitIn(g.t, g.dir, args...) }

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func tryGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (g *ground) write(name, text string) {
	g.t.Helper()
	p := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) commit(message string) string {
	g.t.Helper()
	g.git("add", "-A")
	g.git("commit", "-q", "--allow-empty", "-m", message)
	return g.git("rev-parse", "HEAD")
}

// op is an operation id of a test.
func op(n byte) string { return strings.Repeat(string("0123456789abcdef"[n%16]), 32) }

func (g *ground) create(in wire.CreateWorktreeIn) (wire.CreateWorktreeOut, error) {
	return g.m.Create(g.t.Context(), g.p, in)
}

func (g *ground) made(in wire.CreateWorktreeIn) (wire.CreateWorktreeOut, *runner.Project) {
	g.t.Helper()
	out, err := g.create(in)
	if err != nil {
		g.t.Fatalf("%v (%v)", err, fault.As(err).Unwrap())
	}
	return out, g.served(out.Project.ID)
}

func (g *ground) served(id event.ProjectID) *runner.Project {
	g.t.Helper()
	for _, p := range g.r.Projects() {
		if p.ID == id {
			return p
		}
	}
	g.t.Fatalf("%s is not served", id)
	return nil
}

func (g *ground) refused(err error, kind fault.Kind, reason string) *fault.Error {
	g.t.Helper()
	if fault.KindOf(err) != kind || fault.As(err).Reason != reason {
		g.t.Fatalf("got %v %+v, want %s/%s", err, fault.As(err), kind, reason)
	}
	if strings.Contains(fault.As(err).Message+fault.As(err).Next, g.base) {
		g.t.Errorf("the refusal tells a path: %+v", fault.As(err))
	}
	return fault.As(err)
}

// nothingLeft holds that neither git nor the disk nor the Runner knows of a worktree.
func (g *ground) nothingLeft() {
	g.t.Helper()
	if out := g.git("worktree", "list", "--porcelain"); strings.Count(out, "worktree ") != 1 {
		g.t.Errorf("git still knows:\n%s", out)
	}
	if left, _ := os.ReadDir(filepath.Join(g.dir, ".git", "worktrees")); len(left) > 0 {
		g.t.Errorf("registrations are left: %v", left)
	}
	if left, _ := os.ReadDir(filepath.Join(g.base, namespace)); len(left) > 0 {
		g.t.Errorf("directories are left: %v", left)
	}
	if notes, err := g.m.notes.all(); len(notes) > 0 || err != nil {
		g.t.Errorf("notes are left: %+v %v", notes, err)
	}
	if served := g.r.Projects(); len(served) != 1 {
		g.t.Errorf("%d Projects are served", len(served))
	}
}
