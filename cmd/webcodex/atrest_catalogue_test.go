package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/run"
	"webcodex/mcp"
	"webcodex/mcp/schema"
)

// heldTexts are arguments whose text is kept by contract: what somebody said, redacted; paths of
// the Project; names of programs, packages and scripts, which say what was proven (ruling 5).
var heldTexts = strings.Fields("title instruction message resolution answer tags note labels name path paths cwd tool executable package features script")

// Every text argument of every tool in the catalogue, in a call that is right but for it, and
// every text of the calls that run, type, patch and keep something: none of it is in a file of
// the data directory or said by the server, but the output of a detached Job in its own log.
//
// Covers: EVT-17, EVT-20
func TestNoArgumentOfAnyToolIsAtRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	never, n := map[string]string{}, 0
	secret := func(what string) string {
		n++
		what = fmt.Sprintf("%s %d", what, n)
		never[what] = fmt.Sprintf("nEvEr%03dkX7q", n)
		return never[what]
	}
	p := args{"project": w.project, "session_id": w.work(args{}).SessionID}
	for _, tool := range mcp.Catalogue() {
		for _, a := range variants(tool, secret) {
			if _, takes := tool.Input.Prop("session_id"); takes && a["session_id"] == nil {
				a["session_id"] = p["session_id"]
			}
			if _, takes := tool.Input.Prop("project"); takes && a["project"] == nil {
				a["project"] = w.project
			}
			w.call(tool.Spec.Name, a)
		}
	}
	inLog := w.executeEverything(p, secret)
	for name, b := range w.atRest() {
		for what, text := range never {
			form, at := lies(b, text)
			if at < 0 || inLog == text && strings.HasPrefix(name, filepath.Join("runner", "jobs")+"/") && strings.Contains(name, "stdout.") {
				continue
			}
			t.Errorf("%s: %q is in %s: …%s…", what, form, name, around(b, at))
		}
	}
}

// variants are the sample call of a tool, once for each text that it takes, with a secret there.
func variants(tool mcp.Tool, secret func(string) string) (out []args) {
	for _, prop := range tool.Input.Props {
		put := func(s *schema.Schema) any {
			if s.Type != "string" {
				return nil
			}
			return secret(tool.Spec.Name + "." + prop.Name)
		}
		var v any
		switch s := prop.Schema; {
		case slices.Contains(heldTexts, prop.Name):
		case s.Type == "array" && s.Items != nil:
			if text := put(s.Items); text != nil {
				v = []any{text}
			}
		default:
			v = put(s)
		}
		if v != nil {
			out = append(out, with(sample[tool.Spec.Name], args{prop.Name: v}))
		}
	}
	return out
}

// executeEverything makes calls that work and say a secret wherever they take a text. It gives the
// one text that a detached Job prints.
func (w *world) executeEverything(p args, secret func(string) string) (inLog string) {
	w.t.Helper()
	key := func(tool string) args { return with(p, args{"idempotency_key": secret("key of " + tool)}) }
	said := func(tool string) string {
		return "A='" + secret(tool+", a variable") + "'; echo \"$A\"; echo $A >&2; nosuch" + secret(tool+", a program that is none")
	}
	must[run.Output](w, "run_process", with(key("run_process"), args{"executable": "sh", "args": []string{"-c", said("run_process")}, "stdin": secret("stdin")}))
	must[run.Output](w, "run_script", with(key("run_script"), args{"language": "sh", "script": said("run_script"), "args": []string{secret("argument of a script")}}))
	shell := with(key("run_shell"), args{"command": said("run_shell")})
	must[run.Output](w, "run_shell", shell)
	must[run.Output](w, "run_shell", shell)
	if r := w.call("run_shell", with(shell, args{"command": secret("another under the key")})); r.Kind() != "idempotency_conflict" {
		w.t.Errorf("another command under the key: %s", r.Text)
	}
	job := must[run.StartJobOut](w, "run_job", with(key("run_job"), args{"command": said("run_job")}))
	inLog = secret("what a detached Job says")
	detached := must[run.StartJobOut](w, "run_detached_process", with(key("run_detached_process"), args{"executable": "sh",
		"args": []string{"-c", "read x; echo $x", secret("argument of a detached Job")}, "stdin": inLog + "\n"}))
	w.ends(job.JobID, detached.JobID)
	asks := must[run.Output](w, "run_shell", with(p, args{"command": "read x; echo $x", "interactive": true, "sync_wait_secs": 0}))
	w.follow(string(*asks.JobID), func(j run.JobOut) bool { return j.Status == "running" })
	must[run.InputOut](w, "send_execution_input", with(p, args{"execution_id": *asks.JobID, "text": secret("typed") + "\n"}))
	w.ends(*asks.JobID)

	at := with(p, args{"shell_id": must[args](w, "open_session_shell", p)["shell_id"]})
	w.call("execute_session_shell", with(at, args{"command": "export " + said("a shell")}))
	must[args](w, "close_session_shell", at)

	must[args](w, "apply_patch", with(p, args{"patch": "--- /dev/null\n+++ b/kept.txt\n@@ -0,0 +1 @@\n+" + secret("line of a patch") + "\n"}))
	for _, tool := range []string{"validate_patch", "apply_patch", "apply_patch_checked"} {
		w.call(tool, with(p, args{"patch": "--- a/kept.txt\n+++ b/kept.txt\n@@ -1 +1 @@\n-" + secret("old line, "+tool) + "\n+" + secret("new line, "+tool) + "\n"}))
	}
	must[args](w, "read_git_review_summary", p)
	must[args](w, "check_workspace_hygiene", p)
	kept := must[args](w, "create_workspace_checkpoint", p)["checkpoint_id"]
	must[args](w, "write_project_file", with(p, args{"path": "since.txt", "content": secret("body")}))
	look := must[args](w, "read_workspace_checkpoint", with(p, args{"checkpoint_id": kept}))
	must[args](w, "restore_workspace_checkpoint", with(p, args{"checkpoint_id": kept, "expected_state": look["current_state"]}))
	must[args](w, "discard_untracked", with(p, args{"paths": []string{"kept.txt"}}))
	must[args](w, "work_on_project", args{"project": w.project, "mode": "worktree", "instruction": "beside"})
	for _, name := range []string{"kept.txt", "since.txt"} {
		if _, err := os.Stat(filepath.Join(w.repo, name)); err == nil {
			w.t.Errorf("%s is still there", name)
		}
	}
	return inLog
}
