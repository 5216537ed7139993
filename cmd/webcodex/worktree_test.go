package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/commands/session"
	"webcodex/mcp"
	view "webcodex/projections/session"
)

func gitIn(t testing.TB, dir string, a ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@x"}, a...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", a, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A start in a worktree is an ordinary Session on an ordinary Project: every kind of tool works in
// it, the checkout stays as it was, and closing leaves it for commits and for the next Session, after
// a restart too.
// Covers: WTR-01, WTR-06, WTR-09, WTR-12, WTR-15
func TestWorkInAWorktree(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	process := func(f *upFlags) { f.cfg.Durability = "process" }
	var second session.WorkOut
	head := ""
	t.Run("one life", func(t *testing.T) { second, head = workInWorktree(t, openWorld(t, base, process)) })
	w := openWorld(t, base, process)
	third := w.work(args{"session_id": second.SessionID, "project": second.Project})
	if third.Continuation != session.Resumed || third.Workspace.Head == head {
		t.Errorf("after a restart: %+v", third)
	}
}

func workInWorktree(t *testing.T, w *world) (session.WorkOut, string) {
	out := w.work(args{"mode": "worktree", "base_ref": "main"})
	head := gitIn(t, w.repo, "rev-parse", "HEAD")
	if out.Project == w.project || out.ProjectRef == "" || out.SessionRef == "" || out.Continuation != session.Created || out.Worktree.BaseCommit != head ||
		out.Worktree.Source != w.project || !out.Workspace.Detached || out.Workspace.Head != head || out.Workspace.Status != "clean" || out.Instructions.Status != "loaded" {
		t.Fatalf("%+v %+v", out, out.Worktree)
	}
	in := func(extra args) args { return with(args{"project": out.Project, "session_id": out.SessionID}, extra) }
	for _, c := range []struct {
		tool string
		a    args
	}{
		{"read_files", args{"items": []args{{"path": "add.go"}}}},
		{"write_project_file", args{"path": "new.txt", "content": "x"}},
		{"edit_project_files", args{"changes": []args{{"kind": "create", "path": "swept.txt", "content": "x"}}}},
		{"get_git_status", args{}}, {"read_git_diff", args{}}, {"read_git_log", args{}}, {"read_workspace_changes", args{}}, {"list_project_tracked_files", args{}},
		{"search_project_texts", args{"queries": []args{{"pattern": "Add"}}}},
		{"run_process", args{"executable": "git", "args": []string{"status", "--porcelain"}}},
		{"run_shell", args{"command": "git add -A && git -c user.name=n -c user.email=e@x commit -qm work && test -f new.txt"}},
		{"go_test", args{}},
	} {
		if r := w.call(c.tool, in(c.a)); r.IsError || strings.Contains(string(r.Output), `"exit_code":1`) {
			t.Errorf("%s: %s", c.tool, r.Text)
		}
	}
	if status := gitIn(t, w.repo, "status", "--porcelain"); status != "" || gitIn(t, w.repo, "rev-parse", "HEAD") != head {
		t.Errorf("the checkout was changed: %s", status)
	}
	must[session.CloseOut](w, "close_session", args{"session_id": out.SessionID})
	if r := w.call("run_shell", args{"project": out.Project, "command": "git -c user.name=n -c user.email=e@x commit -q --allow-empty -m later"}); r.IsError {
		t.Errorf("after closing: %s", r.Text)
	}
	second := w.work(args{"project": out.Project})
	if second.Project != out.Project || second.Worktree != nil {
		t.Errorf("%+v", second)
	}
	return second, head
}

// What is refused makes nothing: no worktree, no Project, no Session.
// Covers: WTR-07, WTR-11, WTR-13
func TestWorktreeThatIsNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	mine := w.work(args{})
	w.refused("work_on_project", args{"instruction": "x", "project": w.project, "session_id": mine.SessionID, "mode": "worktree"}, "session_project_mismatch", "session_id")
	w.refused("work_on_project", args{"instruction": "x", "session_id": mine.SessionID, "mode": "worktree"}, "session_project_mismatch", "session_id")
	w.refused("work_on_project", args{"instruction": "x", "project": w.project, "mode": "worktree", "base_ref": "nothing"}, "invalid_arguments", "base_ref")
	w.refused("work_on_project", args{"instruction": "x", "project": w.project, "mode": "worktree", "destination": "/tmp/x"}, "invalid_arguments", "")
	if n := len(w.srv.runner.Projects()); n != 2 {
		t.Errorf("%d Projects", n)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(w.repo), ".webcodex-worktrees")); err == nil {
		t.Error("a place was made")
	}
	for _, tool := range mcp.Catalogue() {
		if tool.Spec.Name == "work_on_project" {
			for _, name := range []string{"destination", "worktree_path", "worktree", "target", "branch"} {
				if _, takes := tool.Input.Prop(name); takes {
					t.Errorf("it takes %s", name)
				}
			}
		}
	}
	out := w.work(args{"mode": "worktree"})
	again := w.work(args{"session_id": out.SessionID, "mode": "worktree", "base_ref": "main"})
	if again.Continuation != session.Resumed || again.Worktree.BaseCommit != out.Worktree.BaseCommit || len(w.srv.runner.Projects()) != 3 {
		t.Errorf("%+v", again)
	}
	gitIn(t, w.repo, "commit", "-q", "--allow-empty", "-m", "moved")
	w.refused("work_on_project", args{"instruction": "x", "session_id": out.SessionID, "mode": "worktree", "base_ref": "main"}, "runner_refused", "base_ref")
	if h := must[view.Handoff](w, "read_session_handoff", args{"session_id": out.SessionID}); h.Brief.Workspace.Status != "available" {
		t.Errorf("%+v", h.Brief.Workspace)
	}
}

// The form by client_id and path takes the same way: from the checkout it makes a worktree, in a
// worktree it goes on and makes none, and refuses a base that has moved.
// Covers: WTR-08, WTR-13
func TestWorktreeByPath(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	by := func(path string, extra ...args) args {
		return with(args{"client_id": string(w.srv.settings.Client), "path": path, "mode": "worktree", "project": nil, "instruction": "x"}, extra...)
	}
	out := must[session.WorkOut](w, "work_on_project", by(w.repo, args{"base_ref": "main"}))
	if out.Worktree.Source != w.project || out.Project == w.project || len(w.srv.runner.Projects()) != 3 {
		t.Fatalf("%+v", out)
	}
	place := ""
	for _, p := range w.srv.runner.Projects() {
		if strings.HasSuffix(out.Project, string(p.ID)) {
			place = p.Path
		}
	}
	again := must[session.WorkOut](w, "work_on_project", by(place, args{"base_ref": "main"}))
	if again.Project != out.Project || again.SessionID == out.SessionID || again.Worktree.BaseCommit != out.Worktree.BaseCommit || len(w.srv.runner.Projects()) != 3 {
		t.Errorf("%+v", again)
	}
	gitIn(t, w.repo, "commit", "-q", "--allow-empty", "-m", "moved")
	w.refused("work_on_project", by(place, args{"base_ref": "main"}), "runner_refused", "base_ref")
	w.refused("work_on_project", by(filepath.Dir(w.repo)), "invalid_path", "path")
	if n := len(w.srv.runner.Projects()); n != 3 {
		t.Errorf("%d Projects", n)
	}
}
