package runner

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

var (
	idForm     = regexp.MustCompile(`^[a-z0-9-]{1,40}-[0-9a-f]{8}$`)
	rootForm64 = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What is registered to be done with a Project is done once, before the Project can be found;
// that it failed keeps nobody from the Project.
func TestPrepareComesBeforeServing(t *testing.T) {
	t.Parallel()
	r, err := New(Options{Dir: t.TempDir(), Client: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var seen []*Project
	Prepare(r, func(p *Project) error {
		if r.projects.served[p.ID] != nil {
			t.Error("the Project is served already")
		}
		if _, err := p.Root.Lstat("."); err != nil {
			t.Error(err)
		}
		seen = append(seen, p)
		return os.ErrInvalid
	})
	dir := t.TempDir()
	for range 2 {
		p, err := r.AddProject(dir)
		if err != nil || len(seen) != 1 || seen[0] != p || len(r.Projects()) != 1 {
			t.Fatal(p, err, len(seen))
		}
	}
}

// Paths that fall together in a readable form are different Projects; each keeps its id for
// good, and paths to one directory are one Project.
func TestProjectIdentity(t *testing.T) {
	t.Parallel()
	dir, base := t.TempDir(), t.TempDir()
	open := func() *registry {
		g, err := openRegistry(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.close)
		return g
	}
	add := func(g *registry, path string) *Project {
		t.Helper()
		p, _, err := g.add(wish{path: path, by: bySelf})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	g := open()
	ids, roots, byPath := map[event.ProjectID]string{}, map[string]string{}, map[string]*Project{}
	for _, name := range []string{"App", "app", "a-b", "a_b", "a/b", "a b", "プロジェクト", "项目", "é", "e\u0301", "-", "emoji😀", "quote'\"", "new\nline",
		"a-very-long-folder-name-that-goes-on-and-on-and-on-for-ever"} {
		path := mkdir(t, base, name)
		p := add(g, path)
		if !idForm.MatchString(string(p.ID)) || !rootForm64.MatchString(p.Fingerprint) {
			t.Errorf("%q: id %q root %q", name, p.ID, p.Fingerprint)
		}
		if other, twice := ids[p.ID]; twice {
			t.Errorf("%q and %q share the id %s", name, other, p.ID)
		}
		if other, twice := roots[p.Fingerprint]; twice {
			t.Errorf("%q and %q share a root fingerprint", name, other)
		}
		ids[p.ID], roots[p.Fingerprint], byPath[path] = name, name, p
	}
	g.close()
	g = open()
	for path, before := range byPath {
		if p := add(g, path); p.ID != before.ID || p.Fingerprint != before.Fingerprint {
			t.Errorf("%q became %s after a restart, was %s", path, p.ID, before.ID)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(base, "app"), link); err != nil {
		t.Fatal(err)
	}
	if p := add(g, link); p.ID != byPath[filepath.Join(base, "app")].ID {
		t.Errorf("a symlink to a Project is another Project, %s", p.ID)
	}
	g.close()
	moved := filepath.Join(base, "moved")
	if err := os.Rename(filepath.Join(base, "App"), moved); err != nil {
		t.Fatal(err)
	}
	g = open()
	if p := add(g, moved); p.ID != byPath[filepath.Join(base, "App")].ID {
		t.Errorf("a renamed Project became %s", p.ID)
	}
	fresh := mkdir(t, base, "App")
	if p := add(g, fresh); p.ID == byPath[fresh].ID {
		t.Error("another directory at the old path is taken for the Project")
	}
}

// A Project whose directory was replaced is not served under its old name.
func TestReplacedRootIsRefused(t *testing.T) {
	t.Parallel()
	g, err := openRegistry(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := mkdir(t, t.TempDir(), "p")
	p, _, err := g.add(wish{path: path, by: bySelf})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.find(p.ID); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+"-away"); err != nil {
		t.Fatal(err)
	}
	mkdir(t, path)
	if _, err := g.find(p.ID); fault.KindOf(err) != fault.RunnerRefused {
		t.Errorf("it answers %v", err)
	}
	if _, err := g.find("nothing-00000000"); fault.KindOf(err) != fault.UnknownProject {
		t.Errorf("an unknown one answers %v", err)
	}
}

// No Project holds our own directories or lies in them, by whatever path.
func TestRootsWithOurDataAreRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	data := mkdir(t, base, "home", "data")
	inside := mkdir(t, data, "runner", "x")
	link := filepath.Join(base, "link")
	if err := os.Symlink(filepath.Join(base, "home"), link); err != nil {
		t.Fatal(err)
	}
	g, err := openRegistry(mkdir(t, data, "runner"), []string{data, filepath.Join(base, "not-there-yet")})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{base, filepath.Join(base, "home"), link, data, inside, filepath.Join(link, "data", "runner"), "/"} {
		if _, _, err := g.add(wish{path: path, by: bySelf}); fault.KindOf(err) != fault.InvalidPath || fault.As(err).Reason != "data_directory" {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, _, err := g.add(wish{path: mkdir(t, base, "home", "data-sibling"), by: bySelf}); err != nil {
		t.Errorf("a sibling with the same prefix: %v", err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{file: "not_directory", filepath.Join(base, "nothing"): "not_found", "a\x00b": "nul"} {
		if _, _, err := g.add(wish{path: path, by: bySelf}); fault.KindOf(err) != fault.InvalidPath || fault.As(err).Reason != reason {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestDamagedProjectsFileIsNotGuessedAt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, text := range []string{"{", `[{"random":"ab"}]`} {
		if err := os.WriteFile(filepath.Join(dir, "projects.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openRegistry(dir, nil); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}
