package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"webcodex/commands/access"
	projects "webcodex/commands/project"
	"webcodex/commands/run"
	"webcodex/commands/runtime"
	"webcodex/commands/session"
	"webcodex/runner/wire"
)

// owned is a world whose Runner has an allowed root, and settings of its owner.
type owned struct {
	*world
	client, root, file string
}

func openOwned(t *testing.T, base string) owned {
	t.Helper()
	o := owned{root: filepath.Join(base, "it's all mine"), file: filepath.Join(base, "config", "projects.toml")}
	for _, dir := range []string{o.root, filepath.Dir(o.file)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o.world = openWorld(t, base, func(f *upFlags) {
		f.cfg.AllowedRoots = o.root
		f.cfg.file = filepath.Join(filepath.Dir(o.file), "config.toml")
	})
	o.client = string(o.srv.settings.Client)
	return o
}

func (o owned) at(path string) args { return args{"client_id": o.client, "path": path} }

func (o owned) listed() (out []string) {
	o.t.Helper()
	for _, p := range must[projects.ListOut](o.world, "list_projects", args{}).Projects {
		out = append(out, p.Project)
	}
	return out
}

// A directory that a host created or named is worked on like any other, by whatever path; once it
// is unregistered nothing of it runs or is taken, its Sessions can be read, and it comes back as
// the same Project.
func TestHostsHaveProjectsBelowAllowedRoots(t *testing.T) {
	t.Parallel()
	o := openOwned(t, t.TempDir())
	dir, link := filepath.Join(o.root, "a 'new' one"), filepath.Join(o.root, "link")
	made := must[projects.RegisterOut](o.world, "create_project", with(o.at(dir), args{"git_init": true}))
	if !made.Registered || !made.Git || made.Name != "a 'new' one" {
		t.Fatalf("%+v", made)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	w := must[session.WorkOut](o.world, "work_on_project", with(o.at(link), args{"instruction": "build it"}))
	if w.Project != made.Project || w.Workspace.Status != "clean" || w.Workspace.Branch != "main" {
		t.Errorf("by another path: %+v", w)
	}
	plain := filepath.Join(o.root, "plain")
	if err := os.Mkdir(plain, 0o755); err != nil {
		t.Fatal(err)
	}
	second := must[session.WorkOut](o.world, "work_on_project", with(o.at(plain), args{"instruction": "look", "execution_context": args{"default_cwd": "."}}))
	if again := must[projects.RegisterOut](o.world, "register_project", o.at(plain)); again.Registered || again.Project != second.Project {
		t.Errorf("%+v, begun on %s", again, second.Project)
	}
	on := args{"project": made.Project, "session_id": w.SessionID}
	job := must[run.Output](o.world, "run_shell", with(on, args{"command": "pwd; sleep 60", "sync_wait_secs": 1}))
	if !job.Promoted || !strings.Contains(job.Stdout, dir) {
		t.Fatalf("%+v", job)
	}
	_, shell := o.opened(w, args{"project": made.Project})
	shell["project"] = made.Project
	pid, err := strconv.Atoi(strings.TrimSpace(o.in(shell, "echo $$")))
	if err != nil {
		t.Fatal(err)
	}
	gone := must[projects.UnregisterOut](o.world, "unregister_project", args{"project": made.Project})
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("its shell is still there: %v", err)
	}
	if !gone.Unregistered || gone.Ended != 1 {
		t.Errorf("%+v", gone)
	}
	if list := o.listed(); slices.Contains(list, made.Project) || !slices.Contains(list, second.Project) {
		t.Errorf("listed: %v", list)
	}
	if again := must[projects.UnregisterOut](o.world, "unregister_project", args{"project": made.Project}); again.Unregistered {
		t.Errorf("%+v", again)
	}
	o.refused("get_git_status", args{"project": made.Project}, "unknown_project", "project")
	o.refused("work_on_project", args{"instruction": "x", "project": made.Project}, "unknown_project", "project")
	if text := o.call("read_session_handoff", args{"session_id": w.SessionID}).Text; !strings.Contains(text, "build it") {
		t.Errorf("its Session tells %s", text)
	}
	if back := must[projects.RegisterOut](o.world, "register_project", o.at(dir)); !back.Registered || back.Project != made.Project {
		t.Errorf("%+v", back)
	}
	if w := o.work(args{"session_id": w.SessionID, "instruction": "go on"}); w.Continuation != session.Resumed {
		t.Errorf("%+v", w)
	}
}

// Where Projects may lie is the owner's word: whatever a caller names outside of it is refused
// with the same kind and changes nothing, and so are half-named places and callers without the
// right. A path is no authority: for whom a Project does not exist, nothing lies anywhere.
//
// Covers: AUTH-10, AUTH-11, AUTH-15, AUTH-19
func TestPlacesOutsideThePolicyAreRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := openOwned(t, base)
	outside := filepath.Join(base, "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(o.root, "way out")); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{outside: "outside_allowed_roots", filepath.Join(o.root, "way out"): "outside_allowed_roots",
		o.root + "-sibling": "outside_allowed_roots", filepath.Join(base, "config"): "data_directory", o.dir: "data_directory", base: "data_directory",
		filepath.Join(o.root, "nothing"): "not_found", "relative": "not_absolute"} {
		for tool, a := range map[string]args{"register_project": o.at(path), "work_on_project": with(o.at(path), args{"instruction": "x"})} {
			o.refused(tool, a, "invalid_path", "path")
			if f := refusalOf(t, o.call(tool, a)); f.Reason != reason {
				t.Errorf("%s %s: %s, want %s", tool, path, f.Reason, reason)
			}
		}
	}
	o.refused("create_project", o.at(filepath.Join(o.root, "way out", "x")), "invalid_path", "path")
	o.refused("create_project", o.at(filepath.Join(base, "data", "x")), "invalid_path", "path")
	o.refused("create_project", o.at(o.root), "invalid_path", "path")
	o.refused("register_project", args{"client_id": "nobody", "path": o.root}, "unknown_client_id", "client_id")
	for name, a := range map[string]args{"client_id": {"path": o.root}, "path": {"client_id": o.client}} {
		o.refused("work_on_project", with(a, args{"instruction": "x"}), "invalid_arguments", name)
	}
	o.refused("work_on_project", with(o.at(o.root), args{"instruction": "x", "project": o.project}), "invalid_arguments", "path")
	o.refused("work_on_project", with(o.at(o.root), args{"instruction": ""}), "invalid_coding_instruction", "")
	reader := o.admit(access.CreateIn{Name: "reader", Kind: "user", Scopes: []string{"runtime:read", "project:read"}})
	reader.refused("register_project", o.at(o.root), "insufficient_scope")
	reader.refused("unregister_project", args{"project": o.project}, "insufficient_scope")
	reader.refused("work_on_project", with(o.at(o.root), args{"instruction": "x", "session_mode": "read_only"}), "insufficient_scope")
	one := o.admit(access.CreateIn{Name: "one", Kind: "project", Projects: []string{o.project}})
	one.refused("register_project", o.at(o.root), "insufficient_scope")
	for _, path := range []string{o.otherDir, o.root, outside, filepath.Join(base, "nothing")} {
		one.refused("work_on_project", with(o.at(path), args{"instruction": "x"}), "unknown_project")
	}
	if w := ask[session.WorkOut](one, "work_on_project", with(o.at(o.repo), args{"instruction": "x"})); w.Project != o.project {
		t.Errorf("%+v", w)
	}
	if len(o.listed()) != 2 {
		t.Errorf("listed: %v", o.listed())
	}
}

// What hosts registered is served in the next life, what they unregistered is not; the owner's
// file is followed meanwhile, and is said to where it is damaged.
func TestRegisteredProjectsOutliveTheServer(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var kept, gone string
	t.Run("first", func(t *testing.T) {
		o := openOwned(t, base)
		kept = must[projects.RegisterOut](o.world, "create_project", o.at(filepath.Join(o.root, "kept"))).Project
		gone = must[projects.RegisterOut](o.world, "create_project", o.at(filepath.Join(o.root, "gone"))).Project
		must[projects.UnregisterOut](o.world, "unregister_project", args{"project": gone})
	})
	o := openOwned(t, base)
	if list := o.listed(); !slices.Contains(list, kept) || slices.Contains(list, gone) {
		t.Errorf("listed: %v, kept %s, gone %s", list, kept, gone)
	}
	o.refused("get_git_status", args{"project": gone}, "unknown_project", "project")
	o.work(args{"project": kept})
	owners := filepath.Join(base, "owner's")
	if err := os.Mkdir(owners, 0o755); err != nil {
		t.Fatal(err)
	}
	row := func() runtime.RunnerRow {
		t.Helper()
		return must[runtime.ListRunnersOut](o.world, "list_runners", args{}).Runners[0]
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %v, %+v", what, o.listed(), row())
			}
		}
	}
	before := len(o.listed())
	o.write(o.file, "[[project]]\npath = \""+owners+"\"\n")
	await("the owner's came", func() bool { return len(o.listed()) == before+1 })
	w := must[session.WorkOut](o.world, "work_on_project", with(o.at(owners), args{"instruction": "x"}))
	o.refused("unregister_project", args{"project": w.Project}, "runner_refused", "")
	o.write(o.file, "[[project]\n")
	await("trouble", func() bool { return row().Trouble == wire.TroubleProjectsFile })
	if said := o.srv.status().Attention; len(said) != 1 || !strings.Contains(said[0], "line 2") {
		t.Errorf("its owner is told %q", said)
	}
	if r := row(); r.Status != "connected" || r.SameBuild == nil || !*r.SameBuild || r.SameProtocol == nil || !*r.SameProtocol ||
		r.Projects != before+1 || !slices.Contains(r.Capabilities, string(wire.OpRegisterProject)) || r.Since == "" {
		t.Errorf("%+v", r)
	}
}

// A Runner of its own process decides by its own settings, keeps what hosts registered across its
// restarts, and is seen by hosts with what it is.
func TestRemoteRunnersHaveTheirOwnPolicy(t *testing.T) {
	root := t.TempDir()
	t.Setenv("WEBCODEX_RUNNER_ALLOWED_ROOTS", root)
	r := newRemote(t, "tls")
	client := string(r.issued.Client)
	at := func(path string) args { return args{"client_id": client, "path": path} }
	for path, reason := range map[string]string{r.dir: "data_directory", r.data: "outside_allowed_roots", filepath.Join(r.runnerData, "x"): "data_directory"} {
		if f := refusalOf(t, r.call("register_project", at(path))); f.Kind != "invalid_path" || f.Reason != reason {
			t.Errorf("%s: %+v", path, f)
		}
	}
	var made projects.RegisterOut
	if res := r.call("create_project", with(at(filepath.Join(root, "made")), args{"name": "Made"})); res.IsError || res.Decode(&made) != nil || made.Name != "Made" {
		t.Fatal(res.Text)
	}
	r.runner.kill()
	r.startRunner()
	var w session.WorkOut
	if res := r.call("work_on_project", with(at(filepath.Join(root, "made")), args{"instruction": "x"})); res.IsError || res.Decode(&w) != nil || w.Project != made.Project {
		t.Fatal(res.Text)
	}
	var list runtime.ListRunnersOut
	if res := r.call("list_runners", args{"client_id": client}); res.IsError || res.Decode(&list) != nil || list.Runners[0].Projects != 2 || list.Runners[0].Status != "connected" {
		t.Error(res.Text)
	}
	job := r.call("run_job", args{"project": made.Project, "session_id": w.SessionID, "command": "sleep 60"})
	var gone projects.UnregisterOut
	if res := r.call("unregister_project", args{"project": made.Project}); res.IsError || res.Decode(&gone) != nil || gone.Ended != 1 {
		t.Errorf("%s, of %s", res.Text, job.Text)
	}
}
