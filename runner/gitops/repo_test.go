package gitops

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner"
)

// repo is a real repository in a temporary directory, made by plain git.
type repo struct {
	t   testing.TB
	dir string
	p   *runner.Project
}

// isolate keeps the user's own git configuration out of a test.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	isolate(t)
	return newRepoIn(t, filepath.Join(t.TempDir(), "project"))
}

func newRepoIn(t testing.TB, dir string) *repo {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &repo{t: t, dir: dir}
	r.git("init", "-q", "-b", "main")
	r.git("config", "user.name", "Test Person")
	r.git("config", "user.email", "test@example.com")
	r.p = projectAt(t, dir)
	return r
}

func projectAt(t testing.TB, dir string) *runner.Project {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &runner.Project{ID: "test", Path: dir, Root: root}
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.tryGit(args...)
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

func (r *repo) tryGit(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) read(name string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *repo) commit(message string) string {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", message)
	return r.git("rev-parse", "HEAD")
}

// must gives the answer of an op that has to work.
func must[In, Out any](t *testing.T, p *runner.Project, do func(context.Context, *runner.Project, In) (Out, error), in In) Out {
	t.Helper()
	out, err := do(t.Context(), p, in)
	if err != nil {
		t.Fatalf("%T: %v (%v)", in, err, fault.As(err).Unwrap())
	}
	return out
}

// refused gives the fault of an op that has to refuse.
func refused[In, Out any](t *testing.T, p *runner.Project, do func(context.Context, *runner.Project, In) (Out, error), in In,
	kind fault.Kind, reason string) *fault.Error {
	t.Helper()
	_, err := do(t.Context(), p, in)
	if err == nil {
		t.Fatalf("%+v was not refused", in)
	}
	f := fault.As(err)
	if f.Kind != kind || f.Reason != reason {
		t.Fatalf("%+v: got %s/%s %q, want %s/%s", in, f.Kind, f.Reason, f.Message, kind, reason)
	}
	return f
}
