package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/mcp"
	"webcodex/mcp/client"
	"webcodex/runner/wire"
)

// sample is a valid call of each tool that takes a session_id, but for project and session.
var sample = map[string]args{
	"work_on_project":         {"instruction": "go on"},
	"close_session":           {},
	"update_session_context":  {"execution_context": args{"default_cwd": "."}},
	"read_session_summary":    {},
	"read_session_handoff":    {},
	"finish_coding_task":      {},
	"read_validation_summary": {},
	"post_session_message":    {"kind": "note", "message": "x"},
	"list_session_messages":   {},
	"read_session_discussion": {},
	"resolve_session_message": {"message_id": "wc_msg_00000000000000000000000000000000"},
	"get_session_assignment":  {"message_id": "wc_msg_00000000000000000000000000000000"},
	"complete_session_message": {"message_id": "wc_msg_00000000000000000000000000000000", "answer": "x", "completion_key": "k",
		"expected_assignment_fence": "wsa1_0000000000000000000000000000000000000000000"},
	"observe_session_messages":   {},
	"read_project_overview":      {},
	"list_project_files":         {},
	"list_project_tracked_files": {},
	"read_files":                 {"items": []args{{"path": "add.go"}}},
	"search_project_texts":       {"queries": []args{{"pattern": "Add"}}},
	"search_file_context":        {"path": "add.go", "pattern": "Add"},
	"edit_project_files":         {"changes": []args{{"kind": "create", "path": "swept.txt", "content": "x"}}},
	"write_project_file":         {"path": "written.txt", "content": "x", "overwrite": true},
	"delete_project_files":       {"paths": []string{"nothing.txt"}},
	"apply_patch":                {"patch": "--- /dev/null\n+++ b/patched.txt\n@@ -0,0 +1 @@\n+x\n"},
	"apply_patch_checked":        {"patch": "--- /dev/null\n+++ b/patched2.txt\n@@ -0,0 +1 @@\n+x\n"},
	"validate_patch":             {"patch": "--- /dev/null\n+++ b/patched3.txt\n@@ -0,0 +1 @@\n+x\n"},
	"get_git_status":             {},
	"read_git_diff":              {},
	"read_git_diff_hunks":        {},
	"read_git_log":               {},
	"read_workspace_changes":     {},
	"restore_git_paths":          {"paths": []string{"add.go"}},
	"read_git_review_summary":    {},
	"discard_untracked":          {"dry_run": true},
	"check_workspace_hygiene":    {},
	"run_process":                {"executable": "true"},
	"run_script":                 {"language": "sh", "script": "true"},
	"run_shell":                  {"command": "true"},
	"run_job":                    {"command": "true"},
	"run_detached_process":       {"executable": "true"},
	"list_jobs":                  {},
	"go_test":                    {},
	"cargo_test":                 {},
	"cargo_check":                {},
	"cargo_fmt":                  {"check": true},
	"go_vet":                     {},
	"npm_test":                   {},
	"pytest":                     {},
	"run_validation":             {"executable": "true", "parser": "none"},
	"stop_job":                   {"job_id": "wc_exec_00000000000000000000000000000000"},
	"send_execution_input":       {"execution_id": "wc_exec_00000000000000000000000000000000", "text": "y\n"},
	"get_lsp_status":             {},
	"document_symbols":           {"path": "notes.txt"},
	"document_diagnostics":       {"path": "notes.txt"},
	"workspace_symbols":          {"query": "Add"},
	"goto_definition":            {"path": "notes.txt", "line": 1, "column": 1},
	"find_references":            {"path": "notes.txt", "line": 1, "column": 1},
	"hover":                      {"path": "notes.txt", "line": 1, "column": 1},
	"call_hierarchy":             {"path": "notes.txt", "line": 1, "column": 1},
	"record_external_observation": {"adapter_id": strings.Repeat("a", 64), "event_id": strings.Repeat("b", 64),
		"tool": "go_test", "status": "succeeded"},
	"list_external_observations": {},

	"create_workspace_checkpoint": {},
	"list_workspace_checkpoints":  {},
	"read_workspace_checkpoint":   {"checkpoint_id": "wc_ckpt_00000000000000000000000000000000"},
	"restore_workspace_checkpoint": {"checkpoint_id": "wc_ckpt_00000000000000000000000000000000",
		"expected_state": strings.Repeat("0", 64)},
	"delete_workspace_checkpoint": {"checkpoint_id": "wc_ckpt_00000000000000000000000000000000"},

	"open_session_shell":       {},
	"execute_session_shell":    {"shell_id": "wc_shell_00000000000000000000000000000000", "command": "true"},
	"get_session_shell_status": {"shell_id": "wc_shell_00000000000000000000000000000000"},
	"close_session_shell":      {"shell_id": "wc_shell_00000000000000000000000000000000"},
}

func with(base args, extra ...args) args {
	out := args{}
	for _, m := range append([]args{base}, extra...) {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// sessionTools are the catalogue's tools that take a session_id; one without a sample fails.
func sessionTools(t *testing.T) []mcp.Tool {
	t.Helper()
	var out []mcp.Tool
	for _, tool := range mcp.Catalogue() {
		if _, takes := tool.Input.Prop("session_id"); !takes {
			continue
		}
		if _, ok := sample[tool.Spec.Name]; !ok {
			t.Errorf("%s has no sample call", tool.Spec.Name)
			continue
		}
		out = append(out, tool)
	}
	return out
}

// Covers: SES-23, SES-24, NEG-09
func TestEveryToolAgainstAClosedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	must[session.CloseOut](w, "close_session", args{"session_id": s.SessionID})
	before := w.srv.log.Status().Seq
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		a := with(sample[name], args{"session_id": s.SessionID})
		if _, takes := tool.Input.Prop("project"); takes {
			a["project"] = w.project
		}
		r := w.call(name, a)
		denied := tool.Spec.Class != call.Observe && name != "close_session"
		if got := r.Kind() == "session_closed"; got != denied {
			t.Errorf("%s on a Closed Session: %s", name, r.Text)
		}
	}
	if after := w.srv.log.Status().Seq; after != before {
		t.Errorf("%d commits were written", after-before)
	}
	for _, f := range []string{"swept.txt", "written.txt", "patched.txt", "patched2.txt", "patched3.txt"} {
		if _, err := os.Stat(filepath.Join(w.repo, f)); err == nil {
			t.Errorf("%s was written", f)
		}
	}
}

// Covers: AUTH-07, EXE-24
func TestEveryToolAgainstASessionOfAnotherProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	for _, tool := range sessionTools(t) {
		if _, takes := tool.Input.Prop("project"); takes {
			w.refused(tool.Spec.Name, with(sample[tool.Spec.Name], args{"session_id": s.SessionID, "project": w.other}), "session_project_mismatch", "session_id")
		}
	}
}

// Neither that there is one Session alone, nor that the caller's window has just worked with it and
// recorded in it, makes it the target or the recorder of any call.
//
// Covers: AUTH-09, HND-02, NEG-01, WIN-05
func TestNoToolInfersASession(t *testing.T) {
	t.Parallel()
	for _, windowed := range []bool{false, true} {
		w := newWorld(t, "process")
		if windowed {
			w.client = w.window(mcp.Modern, "v1/the-window-that-works-here").c
		}
		s := w.work(args{})
		w.call("get_git_status", args{"project": w.project, "_wc": args{"record": s.SessionID}})
		before := w.observed(s.SessionID)
		for _, tool := range sessionTools(t) {
			name := tool.Spec.Name
			if name == "list_jobs" {
				continue // its Session narrows the list; there is none to infer
			}
			if tool.Spec.Plane != call.PlaneProject {
				if name != "work_on_project" {
					w.refused(name, with(sample[name], project(tool, w)), "invalid_arguments", "session_id")
				} else if fresh := w.work(args{}); fresh.SessionID == s.SessionID || fresh.Continuation != session.Created {
					t.Errorf("windowed %v: a start went on with %s", windowed, fresh.SessionID)
				}
				continue
			}
			r := w.call(name, with(sample[name], args{"project": w.project}))
			if r.IsError {
				continue // a refusal by the tool itself; recorded nowhere either
			}
			var out struct {
				Recorded *bool `json:"session_recorded"`
			}
			if err := r.Decode(&out); err != nil || out.Recorded == nil || *out.Recorded {
				t.Errorf("%s does not say that it was not recorded: %s", name, r.Output)
			}
		}
		if after := w.observed(s.SessionID); after != before {
			t.Errorf("windowed %v: the Session that happened to be there got %d events", windowed, after-before)
		}
	}
}

func project(tool mcp.Tool, w *world) args {
	if p, takes := tool.Input.Prop("project"); takes && p.Required {
		return args{"project": w.project}
	}
	return args{}
}

// Covers: EVT-07, EVT-14
func TestEveryProjectToolLeavesOnePair(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	// One that there is: a checkpoint that there is not is a refused argument, which leaves no pair.
	kept := must[wire.CreateCheckpointOut](w, "create_workspace_checkpoint", args{"project": w.project})
	for _, tool := range sessionTools(t) {
		name, before := tool.Spec.Name, w.observed(s.SessionID)
		if tool.Spec.Plane != call.PlaneProject {
			continue
		}
		a := with(sample[name], args{"project": w.project, "session_id": s.SessionID})
		if _, takes := tool.Input.Prop("checkpoint_id"); takes {
			a["checkpoint_id"] = kept.ID
		}
		r := w.call(name, a)
		if got := w.observed(s.SessionID) - before; got != 2 {
			t.Errorf("%s left %d events: %s", name, got, r.Text)
		}
	}
	if core, _ := w.srv.store.Core(s.SessionID); len(core.Open) != 0 {
		t.Errorf("%d calls are open", len(core.Open))
	}
}

// Covers: STA-01, STA-02, SES-04, AUTH-08, EVT-12, EVT-16
func TestRetiredAndForeignArgumentsExistNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	for _, tool := range mcp.Catalogue() {
		name := tool.Spec.Name
		raw, err := json.Marshal(tool.Input)
		if err != nil {
			t.Fatal(err)
		}
		if _, takes := tool.Input.Prop("instruction"); takes != (name == "work_on_project") {
			t.Errorf("%s takes an instruction: a second entry", name)
		}
		for _, gone := range []string{"resume_session_id", "allow_cross_project_session", "cross_project", "_session_id", "bind_current",
			"new_session", "context_revision", "invocation_id", "logical_invocation_id", "call_id", "completion_id", "context_ack"} {
			if strings.Contains(string(raw), `"`+gone+`"`) {
				t.Errorf("%s takes %s", name, gone)
			}
			if sample[name] == nil {
				continue
			}
			w.refused(name, with(sample[name], project(tool, w), args{"session_id": s.SessionID, gone: "x"}), "invalid_arguments", gone)
		}
	}
	for _, retired := range []string{"start_coding_task", "resume_coding_task", "no_such_tool"} {
		_, err := w.client.CallTool(t.Context(), retired, args{"instruction": "x", "project": w.project})
		var rpc *client.RPCError
		if !errors.As(err, &rpc) || rpc.Code != -32602 || !strings.Contains(string(rpc.Data), "unknown_tool") {
			t.Errorf("%s: %v", retired, err)
		}
		w.refused("call_runtime_tool", args{"tool": retired, "arguments": args{"instruction": "x", "project": w.project}}, "unknown_tool", "")
	}
}

// Covers: STA-05, STA-09
func TestResumeShowsThePresentAndNoSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	w.write(filepath.Join(w.repo, "add.go"), "package sample\n\n// NEWER\nfunc Add(a, b int) int { return a + b }\n")
	again := w.work(args{"session_id": string(s.SessionID), "instruction": "go on"})
	if again.Workspace.Status != "dirty" || again.Workspace.ChangedFiles != 1 || s.Workspace.Status != "clean" {
		t.Errorf("first %+v, then %+v", s.Workspace, again.Workspace)
	}
	r := w.call("read_files", args{"project": again.Project, "session_id": s.SessionID, "items": []args{{"path": "add.go"}}})
	if !strings.Contains(string(r.Output), "NEWER") {
		t.Errorf("the file as it was: %s", r.Output)
	}
}

// Covers: STA-14
func TestStartCarriesNoInstructionBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	r := w.call("work_on_project", args{"project": w.project, "instruction": "x"})
	if strings.Contains(r.Text, "INSTRUCTION_BODY_MARKER") || !strings.Contains(r.Text, "AGENTS.md") {
		t.Errorf("%s", r.Text)
	}
}

// Covers: EXE-20, EXE-22, EXE-37
func TestAuthoredBoundsHoldWhateverTheWireCouldCarry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	p := args{"project": w.project}
	four := strings.Repeat("🙂", 4000) // 16,000 bytes in 4,000 characters
	w.refused("run_shell", with(p, args{"command": four + "x"}), "invalid_arguments", "command")
	w.refused("run_shell", with(p, args{"command": "x", "timeout_secs": 121}), "invalid_arguments", "timeout_secs")
	w.refused("run_process", with(p, args{"executable": strings.Repeat("x", 1025)}), "invalid_arguments", "executable")
	w.refused("run_process", with(p, args{"executable": "true", "args": make257()}), "invalid_arguments", "args")
	w.refused("run_process", with(p, args{"executable": "true", "args": []string{strings.Repeat("x", 8193)}}), "invalid_arguments", "args[0]")
	w.refused("run_process", with(p, args{"executable": "true", "cwd": strings.Repeat("x", 1025)}), "invalid_arguments", "cwd")
	w.refused("run_process", with(p, args{"executable": "true", "timeout_secs": 0}), "invalid_arguments", "timeout_secs")
	w.refused("run_process", with(p, args{"executable": "true", "timeout_secs": 3601}), "invalid_arguments", "timeout_secs")
	w.refused("run_process", with(p, args{"executable": "true", "stdin": strings.Repeat("x", 64<<10+1)}), "invalid_arguments", "stdin")
	w.refused("run_script", with(p, args{"language": "sh", "script": strings.Repeat("x", 512<<10+1)}), "invalid_arguments", "script")
	w.refused("run_script", with(p, args{"language": "perl", "script": "x"}), "invalid_arguments", "language")
	if r := w.call("run_shell", with(p, args{"command": four + "x"})); !strings.Contains(r.Text, "run_script") {
		t.Errorf("the refusal names no way for a larger program: %s", r.Text)
	}
	if r := w.call("run_shell", with(p, args{"command": "printf ok #" + strings.Repeat("🙂", 3997)})); !r.Success {
		t.Errorf("a command within the bound: %s", r.Text)
	}
}

func make257() []string {
	out := make([]string, 257)
	for i := range out {
		out[i] = "x"
	}
	return out
}

// Covers: STA-11, SES-02
func TestBadInputIsAnsweredAndWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	for name, tc := range map[string]struct {
		tool        string
		a           args
		kind, field string
	}{
		"unknown field":     {"get_git_status", with(p, args{"colour": "red"}), "invalid_arguments", "colour"},
		"missing field":     {"read_files", p, "invalid_arguments", "items"},
		"wrong type":        {"read_files", with(p, args{"items": 5}), "invalid_arguments", "items"},
		"wrong type inside": {"read_files", with(p, args{"items": []args{{"path": 5}}}), "invalid_arguments", "items[0].path"},
		"no instruction":    {"work_on_project", args{"project": w.project}, "invalid_coding_instruction", "instruction"},
		"long instruction":  {"work_on_project", args{"project": w.project, "instruction": strings.Repeat("x", 4001)}, "invalid_coding_instruction", "instruction"},
		"chosen session id": {"work_on_project", args{"session_id": "wc_sess_mine", "instruction": "x"}, "unknown_session_id", "session_id"},
		"malformed session": {"read_files", with(sample["read_files"], args{"project": w.project, "session_id": "../x"}), "unknown_session_id", "session_id"},
		"unknown project":   {"read_files", with(sample["read_files"], args{"project": "agent:x:y"}), "unknown_project", "project"},
		"no project":        {"read_files", sample["read_files"], "invalid_arguments", "project"},
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(tc.tool, tc.a, tc.kind, tc.field)
		})
	}
	if id := event.SessionID(s.SessionID); !id.Valid() {
		t.Errorf("session id %s", id)
	}
}

// A failed validation is taken up by the handoff's own next action, followed to the letter: it
// runs the same packages, and its pass resolves the failure.
func TestTheNextActionOfAFailureResolvesIt(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]args{
		"packages":   {"packages": []string{"./sub"}, "purpose": "test"},
		"directory":  {"cwd": "./sub/"},
		"long way":   {"cwd": "sub/../sub", "packages": []string{"."}},
		"everything": {"cwd": "."},
	} {
		t.Run(name, func(t *testing.T) { followNextAction(t, call) })
	}
}

func followNextAction(t *testing.T, a args) {
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	test := "package sub\n\nimport \"testing\"\n\nfunc TestSub(t *testing.T) {\n\tif WANT {\n\t\tt.Fatal(\"no\")\n\t}\n}\n"
	w.write(filepath.Join(w.repo, "sub", "sub_test.go"), strings.ReplaceAll(test, "WANT", "true"))
	w.write(filepath.Join(w.repo, "sub", "sub.go"), "package sub\n")
	if r := w.call("go_test", with(p, a)); r.Success || r.IsError {
		t.Fatalf("%s", r.Text)
	}
	w.write(filepath.Join(w.repo, "sub", "sub_test.go"), strings.ReplaceAll(test, "WANT", "false"))
	type brief struct {
		Brief struct {
			Progress   struct{ State string }
			Validation struct {
				Status   string
				Failures struct{ Items []struct{ Name string } }
			}
			Next struct {
				Items []struct {
					Tool      string
					Arguments args
				}
			} `json:"next_actions"`
		} `json:"handoff_brief"`
	}
	h := must[brief](w, "read_session_handoff", args{"session_id": s.SessionID})
	if h.Brief.Validation.Status != "failed" {
		t.Fatalf("%+v", h)
	}
	for _, next := range h.Brief.Next.Items {
		if next.Tool == "go_test" {
			if r := w.call(next.Tool, next.Arguments); !r.Success {
				t.Fatalf("%v: %s", next.Arguments, r.Text)
			}
		}
	}
	if h = must[brief](w, "read_session_handoff", args{"session_id": s.SessionID}); h.Brief.Validation.Status != "passed" || h.Brief.Progress.State == "blocked" {
		t.Errorf("after the pass: %+v", h)
	}
}

// As many calls as may wait do wait, down to the Runner, and work goes on beside them.
func TestWaitingObserversLeaveTheRunnerToWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	out := must[struct {
		JobID string  `json:"job_id"`
		Token *string `json:"observation_token"`
	}](w, "run_shell", args{"project": w.project, "command": "sleep 60", "sync_wait_secs": 0})
	if out.JobID == "" || out.Token == nil {
		t.Fatalf("%+v", out)
	}
	observe := args{"items": []args{{"job_id": out.JobID, "after_observation_token": *out.Token}}, "wait_secs": 60}
	answers := make(chan client.Result, call.MaxWaitersPerPrincipal)
	for range call.MaxWaitersPerPrincipal {
		go func() {
			r, err := w.client.CallTool(context.Background(), "observe_jobs", observe)
			if err != nil {
				r.IsError, r.Text = true, err.Error()
			}
			answers <- r
		}()
		time.Sleep(20 * time.Millisecond) // each takes a slot for work before it waits
	}
	for range 4 {
		if r := w.call("read_files", with(sample["read_files"], args{"project": w.project})); !r.Success {
			t.Fatalf("%s", r.Text)
		}
	}
	must[struct{}](w, "stop_job", args{"project": w.project, "job_id": out.JobID})
	for range call.MaxWaitersPerPrincipal {
		if r := <-answers; r.IsError || !strings.Contains(r.Text, `"wait_outcome":"changed"`) {
			t.Errorf("%s", r.Text)
		}
	}
}
