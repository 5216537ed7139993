package main

import (
	"runtime"
	"strings"
	"testing"

	"webcodex/commands/run"
)

// follow observes a Job until it is as it should be.
func (w *world) follow(id string, as func(run.JobOut) bool) run.JobOut {
	w.t.Helper()
	token := ""
	for range 30 {
		item := args{"job_id": id}
		if token != "" {
			item["after_observation_token"] = token
		}
		out := must[run.ObserveOut](w, "observe_jobs", args{"items": []args{item}, "wait_secs": 10})
		if as(out.Items[0]) {
			return out.Items[0]
		}
		token = out.Items[0].ObservationToken
	}
	w.t.Fatal("it never came to that")
	panic("unreachable")
}

// A run on a terminal asks, is seen to, and is answered: once, by nobody else, and what it was
// answered is kept nowhere.
//
// Covers: EVT-17
func TestAnInteractiveRunIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	asked := must[run.Output](w, "run_shell", args{"project": w.project, "session_id": s.SessionID, "shell": "bash", "interactive": true,
		"command": `read -s -p "secret? " x; echo "got ${#x}"; cat`})
	if !asked.Promoted || runtime.GOOS == "linux" && (!asked.WaitingForInput || asked.LastLine != "secret? ") {
		t.Fatalf("%+v", asked)
	}
	id := string(*asked.JobID)
	send := args{"project": w.project, "session_id": s.SessionID, "execution_id": id, "text": "markerthatistyped\n"}
	w.refused("send_execution_input", with(send, args{"project": w.other}), "session_project_mismatch", "session_id")
	w.refused("send_execution_input", args{"project": w.other, "execution_id": id, "text": "x"}, "unknown_job", "execution_id")
	w.refused("send_execution_input", args{"project": w.project, "execution_id": id}, "invalid_arguments", "text")
	if out := must[run.InputOut](w, "send_execution_input", send); out.Accepted != 18 || out.Closed {
		t.Fatalf("%+v", out)
	}
	if runtime.GOOS == "linux" {
		w.follow(id, func(j run.JobOut) bool { return j.WaitingForInput && strings.HasSuffix(j.LastLine, "got 17") })
	}
	if st := must[run.JobStatus](w, "get_job_status", args{"job_id": id}); st.Status != "running" || st.WaitingForInput != (runtime.GOOS == "linux") {
		t.Errorf("%+v", st)
	}
	if out := must[run.InputOut](w, "send_execution_input", args{"project": w.project, "execution_id": id, "close": true}); !out.Closed {
		t.Fatalf("%+v", out)
	}
	end := w.follow(id, func(j run.JobOut) bool { return j.Terminal })
	if end.Status != "completed" || end.WaitingForInput {
		t.Errorf("%+v", end)
	}
	w.refused("send_execution_input", args{"project": w.project, "execution_id": id, "text": "x"}, "execution_ended", "execution_id")
	for name, raw := range w.atRest() {
		if strings.Contains(string(raw), "markerthatistyped") {
			t.Errorf("%s holds what was typed", name)
		}
	}
}

// Without a terminal there is nothing to type on, and with one there is no other input.
func TestOnlyAnInteractiveRunTakesInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	plain := must[run.Output](w, "run_shell", args{"project": w.project, "command": "test ! -t 0; sleep 60", "sync_wait_secs": 0})
	w.refused("send_execution_input", args{"project": w.project, "execution_id": string(*plain.JobID), "text": "x"},
		"execution_not_interactive", "execution_id")
	must[run.StopOut](w, "stop_job", args{"project": w.project, "job_id": string(*plain.JobID)})
	for _, tool := range []string{"run_process", "run_script"} {
		w.refused(tool, with(sample[tool], args{"project": w.project, "interactive": true, "stdin": "x"}), "invalid_arguments", "stdin")
	}
	out := must[run.Output](w, "run_process", args{"project": w.project, "executable": "tty", "interactive": true})
	if out.Promoted || out.ExitCode == nil || *out.ExitCode != 0 || !strings.HasPrefix(out.Stdout, "/dev/") {
		t.Errorf("%+v", out)
	}
	job := must[run.StartJobOut](w, "run_job", args{"project": w.project, "command": "test -t 0 && read x && exit $x", "interactive": true})
	w.follow(string(job.JobID), func(j run.JobOut) bool { return j.Status == "running" })
	must[run.InputOut](w, "send_execution_input", args{"project": w.project, "execution_id": string(job.JobID), "text": "7\n"})
	if end := w.follow(string(job.JobID), func(j run.JobOut) bool { return j.Terminal }); end.ExitCode == nil || *end.ExitCode != 7 {
		t.Errorf("%+v", end)
	}
	out = must[run.Output](w, "run_script", args{"project": w.project, "language": "sh", "script": "test -t 0 && echo yes >&2", "interactive": true})
	if out.Stdout != "yes\n" || out.Stderr != "" {
		t.Errorf("%+v", out)
	}
}
