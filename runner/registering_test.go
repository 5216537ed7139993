package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// owned is a Runner with its own directory in one that also has an allowed root.
type owned struct {
	*Runner
	t          *testing.T
	base, root string
	file       string // the owner's projects file
}

func newOwned(t *testing.T, base string) *owned {
	t.Helper()
	o := &owned{t: t, base: base, root: mkdir(t, base, "it's the root"), file: filepath.Join(mkdir(t, base, "config"), "projects.toml")}
	r, err := New(Options{Dir: mkdir(t, base, "data", "runner"), Deny: []string{filepath.Join(base, "data"), filepath.Join(base, "config")},
		Client: "c1", AllowedRoots: []string{o.root}, ProjectsFile: o.file})
	if err != nil {
		t.Fatal(err)
	}
	o.Runner = r
	t.Cleanup(func() { _ = r.Close() })
	return o
}

func (o *owned) register(path string) (wire.RegisterProjectOut, error) {
	return o.registerProject(o.t.Context(), nil, wire.RegisterProjectIn{Path: path})
}

func (o *owned) create(path string, git bool) (wire.RegisterProjectOut, error) {
	return o.createProject(o.t.Context(), nil, wire.CreateProjectIn{Path: path, GitInit: git})
}

func (o *owned) served() map[string]bool {
	out := map[string]bool{}
	for _, p := range o.Projects() {
		out[p.Path] = true
	}
	return out
}

func refused(t *testing.T, err error, kind fault.Kind, reason string) {
	t.Helper()
	if fault.KindOf(err) != kind || fault.As(err).Reason != reason {
		t.Errorf("%v with reason %q, want %s with %q", err, fault.As(err).Reason, kind, reason)
	}
}

// A caller's Project lies in an allowed root, is one whatever path leads to it, and is served in
// later lives; outside nothing is told of what is there.
func TestCallersRegisterBelowAllowedRoots(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := newOwned(t, base)
	app := mkdir(t, o.root, "a b'c")
	outside := mkdir(t, base, "outside")
	link := filepath.Join(base, "link")
	if err := os.Symlink(app, link); err != nil {
		t.Fatal(err)
	}
	first, err := o.register(app)
	if err != nil || !first.Registered || first.Project.Name != "a b'c" {
		t.Fatal(first, err)
	}
	if again, err := o.register(link); err != nil || again.Registered || again.Project != first.Project {
		t.Errorf("by another path: %+v %v", again, err)
	}
	for path, reason := range map[string]string{outside: "outside_allowed_roots", filepath.Join(base, "nothing"): "outside_allowed_roots",
		filepath.Join(base, "data"): "data_directory", filepath.Join(o.root, "nothing"): "not_found", "relative": "not_absolute"} {
		_, err := o.register(path)
		refused(t, err, fault.InvalidPath, reason)
		_, err = o.findProject(t.Context(), nil, wire.FindProjectIn{Path: path})
		refused(t, err, fault.InvalidPath, reason)
	}
	owners, err := o.AddProject(outside)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := o.register(outside); err != nil || out.Registered || out.Project.ID != owners.ID {
		t.Errorf("the owner's own: %+v %v", out, err)
	}
	_ = o.Close()
	o = newOwned(t, base)
	o.serveKept(&standing{refused: map[string]bool{}})
	if got := o.served(); len(got) != 1 || !got[app] {
		t.Errorf("the next life serves %v", got)
	}
	if found, err := o.findProject(t.Context(), nil, wire.FindProjectIn{Path: link}); err != nil || found.Project == nil || *found.Project != first.Project {
		t.Errorf("%+v %v", found.Project, err)
	}
}

// What is created is made once, below an allowed root by the directory that is there, with a
// repository where one was asked for, and never over something.
func TestCallersCreateBelowAllowedRoots(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	base := t.TempDir()
	o := newOwned(t, base)
	made, err := o.create(filepath.Join(o.root, "new one"), true)
	if err != nil || !made.Registered || !made.Project.Git {
		t.Fatal(made, err)
	}
	if err := exec.Command("git", "-C", filepath.Join(o.root, "new one"), "status").Run(); err != nil {
		t.Errorf("it is no repository: %v", err)
	}
	if err := os.Symlink(base, filepath.Join(o.root, "out")); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{filepath.Join(o.root, "new one"): "exists", filepath.Join(o.root, "out", "x"): "outside_allowed_roots",
		filepath.Join(o.root, "no", "such", "parent"): "not_found", filepath.Join(base, "x"): "outside_allowed_roots", filepath.Join(base, "data", "x"): "data_directory"} {
		_, err := o.create(path, false)
		refused(t, err, fault.InvalidPath, reason)
	}
	o.projects.full = 1
	_, err = o.create(filepath.Join(o.root, "one too many"), true)
	refused(t, err, fault.CapacityReached, "")
	if _, err := os.Lstat(filepath.Join(o.root, "one too many")); err == nil {
		t.Error("what could not be served was left behind")
	}
}

// An unregistered Project is not served in a later life either; one of the owner's file is the
// owner's; the same directory has its id again.
func TestCallersUnregister(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := newOwned(t, base)
	app, owners := mkdir(t, o.root, "app"), mkdir(t, base, "owners")
	first, err := o.register(app)
	if err != nil {
		t.Fatal(err)
	}
	o.write("[[project]]\npath = '" + owners + "'\nname = \"Owner's\"\n")
	s := &standing{refused: map[string]bool{}}
	o.followFile(s)
	var theirs *Project
	for _, p := range o.Projects() {
		if p.Path == owners {
			theirs = p
		}
	}
	if theirs == nil || announced(theirs).Shown() != "Owner's" {
		t.Fatalf("%+v", o.Projects())
	}
	_, err = o.unregisterProject(t.Context(), nil, wire.UnregisterProjectIn{Project: theirs.ID})
	refused(t, err, fault.RunnerRefused, "named_by_owner")
	for _, want := range []bool{true, false} {
		if out, err := o.unregisterProject(t.Context(), nil, wire.UnregisterProjectIn{Project: first.Project.ID}); err != nil || out.Unregistered != want {
			t.Fatal(out, err)
		}
	}
	_ = o.Close()
	o = newOwned(t, base)
	o.serveKept(s)
	if got := o.served(); len(got) != 0 {
		t.Errorf("the next life serves %v", got)
	}
	if again, err := o.register(app); err != nil || again.Project != first.Project {
		t.Errorf("%+v, was %+v (%v)", again.Project, first.Project, err)
	}
}

func (o *owned) write(text string) {
	o.t.Helper()
	if err := replaceFile(o.file, []byte(text)); err != nil {
		o.t.Fatal(err)
	}
}

// The projects file is followed while the Runner serves: what it names comes and goes, what it
// allows counts at once, and while it is damaged the last good state holds and is said to.
func TestProjectsFileIsFollowed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := newOwned(t, base)
	one, two, wider := mkdir(t, base, "one"), mkdir(t, base, "two"), mkdir(t, base, "wider", "app")
	o.write("[[project]]\npath = '" + one + "'\n")
	ctx, cancel := context.WithCancel(t.Context())
	wait := o.follow(ctx, 10*time.Millisecond)
	t.Cleanup(func() { cancel(); wait() })
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %v, trouble %q", what, o.served(), o.hello().Trouble)
			}
		}
	}
	if got := o.served(); !got[one] {
		t.Fatalf("it begins with %v", got)
	}
	o.write("allowed_roots = ['" + filepath.Dir(wider) + "']\n[[project]]\npath = '" + two + "'\n[[project]]\npath = '" + filepath.Join(base, "missing") + "'\n")
	await("one left and two came", func() bool { return !o.served()[one] && o.served()[two] })
	if _, err := o.register(wider); err != nil {
		t.Errorf("what the file allows is refused: %v", err)
	}
	o.write("allowed_roots = [\n")
	await("trouble", func() bool { return o.hello().Trouble == wire.TroubleProjectsFile })
	if got := o.served(); !got[two] || !got[wider] {
		t.Errorf("a damaged file changed what is served: %v", got)
	}
	o.write("")
	await("all left", func() bool { return len(o.served()) == 0 && o.hello().Trouble == "" })
	o.write("allowed_roots = ['" + filepath.Dir(wider) + "']\n")
	await("a kept one is back where it may be", func() bool { return o.served()[wider] })
}

// A projects file that does not say exactly what is meant is damaged as a whole.
func TestProjectsFileForm(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	got, err := parseProjectsFile("allowed_roots = ['~', '/srv/../srv/x']\n[[project]]\npath = '~/a b'\n")
	if err != nil || got.AllowedRoots[0] != home || got.AllowedRoots[1] != "/srv/x" || got.Projects[0].Path != filepath.Join(home, "a b") {
		t.Errorf("%+v %v", got, err)
	}
	for _, text := range []string{"allowed_roots = 'x'", "allowed_roots = ['x']", "roots = []", "[[project]]\nname = 'x'", "[[project]]\npath = '/x'\nid = 'y'",
		"[[project]]\npath = '/x'\nname = \"two\\nlines\"", "[project]\npath = '/x'", "x", "[[project]]\npath = \"/a\\u0000b\""} {
		if got, err := parseProjectsFile(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
	path := filepath.Join(home, "projects.toml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := readProjectsFile(path); err == nil {
		t.Error("a file that others may write was read")
	}
}

// Callers register, use and unregister the same directories at once: whoever has a Project has its
// directory until it is done with it, and in the end everything is given back.
func TestProjectsComeAndGoAtOnce(t *testing.T) {
	t.Parallel()
	o := newOwned(t, t.TempDir())
	dirs := []string{mkdir(t, o.root, "a"), mkdir(t, o.root, "b")}
	var held sync.Map
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for i := range 6 {
				out, err := o.register(dirs[(n+i)%2])
				if err != nil {
					t.Error(err)
					return
				}
				if p, err := o.projects.find(out.Project.ID); err == nil {
					if _, err := p.Root.Lstat("."); err != nil {
						t.Errorf("a Project in use lost its directory: %v", err)
					}
					held.Store(p, true)
					p.drop()
				}
				if _, err := o.unregisterProject(t.Context(), nil, wire.UnregisterProjectIn{Project: out.Project.ID}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := o.served(); len(got) != 0 || len(o.projects.kept()) != 0 {
		t.Errorf("left: %v", got)
	}
	held.Range(func(p, _ any) bool {
		if _, err := p.(*Project).Root.Lstat("."); err == nil {
			t.Error("a directory is still open")
		}
		return true
	})
}
