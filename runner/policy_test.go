package runner

import (
	"os"
	"path/filepath"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// What callers may have lies in an allowed root by the directories that are really there: a name
// that only begins alike, a symlink out and a root that is gone allow nothing; ours is never allowed.
// Covers: AUTH-19
func TestAllowedGoesByTheDirectoryThatIsThere(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	root, out := mkdir(t, base, "it's a root"), mkdir(t, base, "it's a root-sibling")
	data := mkdir(t, root, "data")
	mkdir(t, root, "inside")
	link, alias := filepath.Join(root, "link"), filepath.Join(base, "alias")
	for from, to := range map[string]string{link: out, alias: root, filepath.Join(root, "dangling"): filepath.Join(out, "nothing")} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Options{Dir: mkdir(t, data, "runner"), Deny: []string{data, filepath.Join(root, "config", "later")}, Client: "c1",
		AllowedRoots: []string{filepath.Join(base, "gone"), alias}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, path := range []string{filepath.Join(root, "inside"), filepath.Join(root, "config"), filepath.Join(alias, "inside"), filepath.Join(out, "..", "it's a root", "inside", "new", "deep")} {
		if err := r.Allowed(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for path, reason := range map[string]string{out: "outside_allowed_roots", filepath.Join(link, "x"): "outside_allowed_roots", base: "data_directory",
		root: "data_directory", filepath.Join(data, "new"): "data_directory",
		filepath.Join(root, "dangling"): "not_found", "/": "data_directory", "a\x00b": "nul"} {
		if err := r.Allowed(path); fault.KindOf(err) != fault.InvalidPath || fault.As(err).Reason != reason {
			t.Errorf("%q: %v %+v, want %s", path, err, fault.As(err), reason)
		}
	}
}

// A Project that was removed answers nobody, tells who kept something for it, and has its id again
// when its directory is added again.
func TestRemovedProjectIsServedNoLonger(t *testing.T) {
	t.Parallel()
	r, err := New(Options{Dir: t.TempDir(), Client: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var told []event.ProjectID
	r.OnProjectRemoved(func(id event.ProjectID) { told = append(told, id) })
	dir := t.TempDir()
	if fault.As(r.Allowed(dir)).Reason != "outside_allowed_roots" {
		t.Error("without allowed roots a caller may have a Project")
	}
	p, err := r.AddProject(dir)
	if err != nil {
		t.Fatal(err)
	}
	held, err := r.projects.find(p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.RemoveProject(p.ID); err != nil || len(told) != 1 || told[0] != p.ID || len(r.Projects()) != 0 {
		t.Fatal(err, told, r.Projects())
	}
	if _, err := held.Root.Stat("."); err != nil {
		t.Errorf("who works in it lost the directory: %v", err)
	}
	held.drop()
	if _, err := held.Root.Stat("."); err == nil {
		t.Error("its directory is still open")
	}
	if fault.KindOf(r.RemoveProject(p.ID)) != fault.UnknownProject {
		t.Error("it was removed twice")
	}
	if again, err := r.AddProject(dir); err != nil || again.ID != p.ID || again == p {
		t.Error(again, err)
	}
}
