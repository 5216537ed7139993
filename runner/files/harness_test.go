package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// ground is a Project in a directory of its own, next to things it must never reach.
type ground struct {
	t    testing.TB
	base string // holds the Project and what lies outside
	dir  string
	p    *runner.Project
	s    *service
}

const secret = "outside content that no tool may show or change\n"

func newGround(t testing.TB) *ground {
	t.Helper()
	base := t.TempDir()
	g := &ground{t: t, base: base, dir: filepath.Join(base, "proj"), s: newService(&notebook{dir: filepath.Join(t.TempDir(), "edits")})}
	g.must(os.Mkdir(g.dir, 0o755))
	g.must(os.MkdirAll(filepath.Join(base, "outside", "sub"), 0o755))
	g.must(os.MkdirAll(filepath.Join(base, "proj-evil"), 0o755))
	for _, f := range []string{"outside/secret", "outside/sub/secret", "proj-evil/secret"} {
		g.must(os.WriteFile(filepath.Join(base, f), []byte(secret), 0o644))
	}
	root, err := os.OpenRoot(g.dir)
	g.must(err)
	t.Cleanup(func() { root.Close() })
	g.p = &runner.Project{Name: "proj", Path: g.dir, Root: root, Fingerprint: strings.Repeat("a", 64)}
	return g
}

func (g *ground) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *ground) file(name, text string) {
	g.t.Helper()
	at := filepath.Join(g.dir, name)
	g.must(os.MkdirAll(filepath.Dir(at), 0o755))
	g.must(os.WriteFile(at, []byte(text), 0o644))
}

func (g *ground) link(name, target string) {
	g.t.Helper()
	at := filepath.Join(g.dir, name)
	g.must(os.MkdirAll(filepath.Dir(at), 0o755))
	g.must(os.Symlink(target, at))
}

func (g *ground) text(name string) string {
	g.t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	g.must(err)
	return string(b)
}

func (g *ground) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(g.dir, name))
	return err == nil
}

func (g *ground) git(args ...string) {
	g.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("git %v: %v %s", args, err, out)
	}
}

// output is what a program printed.
func (g *ground) output(name string, args ...string) string {
	g.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = g.dir
	out, err := cmd.Output()
	g.must(err)
	return string(out)
}

// snapshot is every name below the base with its kind, mode and content.
func (g *ground) snapshot() map[string]string {
	g.t.Helper()
	all := map[string]string{}
	g.must(filepath.WalkDir(g.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += " " + string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " -> " + to
		}
		rel, err := filepath.Rel(g.base, path)
		all[rel] = what
		return err
	}))
	return all
}

// same fails the test where anything differs from before, but for the named paths.
func (g *ground) same(before map[string]string, but ...string) {
	g.t.Helper()
	now := g.snapshot()
	for name, was := range before {
		if now[name] != was && !slices.Contains(but, name) {
			g.t.Errorf("%q changed from %.80q to %.80q", name, was, now[name])
		}
	}
	for name := range now {
		if _, ok := before[name]; !ok && !slices.Contains(but, name) {
			g.t.Errorf("%q appeared", name)
		}
	}
}

// ask runs one op and gives its answer in the form that crosses the wire.
func ask[In, Out any](g *ground, do func(context.Context, *runner.Project, In) (Out, error), in In) (Out, *fault.Error) {
	g.t.Helper()
	out, err := do(g.t.Context(), g.p, in)
	var f *fault.Error
	if err != nil && !errors.As(err, &f) {
		g.t.Fatalf("not a fault: %v", err)
	}
	if f != nil {
		// Nothing of the machine may show.
		shown, _ := json.Marshal(f)
		if strings.Contains(string(shown), g.base) || strings.Contains(string(shown), secret[:20]) {
			g.t.Errorf("the refusal tells too much: %s", shown)
		}
	}
	return out, f
}

func wants(g *ground, f *fault.Error, kind fault.Kind, reason string) {
	g.t.Helper()
	if f == nil || f.Kind != kind || f.Reason != reason {
		g.t.Errorf("got %s, want %s (%s)", told(f), kind, reason)
	}
}

func told(f *fault.Error) string {
	if f == nil {
		return "no refusal"
	}
	return fmt.Sprintf("%s (%s) %s %s %v", f.Kind, f.Reason, f.Field, f.Message, f.Unwrap())
}

func ptr[T any](v T) *T { return &v }

func replaceEdit(old, text string) wire.TextEdit {
	return wire.TextEdit{Kind: wire.ReplaceExact, OldText: old, NewText: &text}
}

func editOf(path string, edits ...wire.TextEdit) wire.Change {
	return wire.Change{Kind: wire.ChangeEdit, Path: path, Edits: edits}
}

func createOf(path, content string) wire.Change {
	return wire.Change{Kind: wire.ChangeCreate, Path: path, Content: &content}
}

func (g *ground) edit(changes ...wire.Change) (wire.EditFilesOut, *fault.Error) {
	g.t.Helper()
	return ask(g, g.s.edit, wire.EditFilesIn{Changes: changes})
}

func (g *ground) sha(name string) string { return hashOf([]byte(g.text(name))) }

// one reads one file whole.
func (g *ground) one(path string) wire.ReadFile {
	g.t.Helper()
	out, f := ask(g, g.s.read, wire.ReadFilesIn{Items: []wire.ReadItem{{Path: path}}})
	if f != nil {
		g.t.Fatal(told(f))
	}
	return out.Items[0]
}

func (g *ground) search(q wire.SearchQuery) wire.SearchResult {
	g.t.Helper()
	out, f := ask(g, g.s.searchTexts, wire.SearchTextsIn{Queries: []wire.SearchQuery{q}})
	if f != nil {
		g.t.Fatal(told(f))
	}
	return out.Items[0]
}
