package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"webcodex/commands/run"
	"webcodex/eventlog/event"
)

// The server is killed while a Runner elsewhere runs Jobs and a call that is waited for, and has one
// Job in line. The next server finds what runs, the call as a Job too, with output and all, and
// records the true ends, each once; what was in line is proven not to have started.
//
// Covers: EXE-38, EXE-39, NEG-33
func TestARunnerElsewhereOutlivesItsServer(t *testing.T) {
	t.Parallel()
	r := newRemote(t, "tls")
	var begun struct {
		ID event.SessionID `json:"session_id"`
	}
	if res := r.call("work_on_project", args{"project": r.project, "instruction": "run"}); res.IsError || res.Decode(&begun) != nil {
		t.Fatal(res.Text)
	}
	p := args{"project": r.project, "session_id": begun.ID}
	command := func(mark, after string) args {
		return with(p, args{"command": "echo " + mark + " >> ../marks; echo out; while [ ! -e ../go ]; do sleep 0.02; done; " + after})
	}
	var ids []event.ExecutionID
	for _, mark := range []string{"1", "2", "3", "4", "queued"} {
		out := remoteCall[run.StartJobOut](r, "run_job", command(mark, "exit 3"))
		ids = append(ids, out.JobID)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = r.mcp.CallTool(ctx, "run_shell", command("waited", "exit 4")) }()
	for deadline := time.Now().Add(20 * time.Second); r.marks("1")+r.marks("2")+r.marks("3")+r.marks("4")+r.marks("waited") < 5; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("they do not run")
		}
	}
	r.server.kill()
	r.startServer()
	status := func() (all map[string]run.JobStatus, waited event.ExecutionID) {
		all = map[string]run.JobStatus{}
		for _, v := range remoteCall[run.ListJobsOut](r, "list_jobs", args{"session_id": begun.ID}).Items {
			if v.Tool == "run_shell" {
				waited = v.JobID
			}
			all[string(v.JobID)] = v
		}
		return all, waited
	}
	all, waited := status()
	for deadline := time.Now().Add(20 * time.Second); (all[string(ids[0])].Status != "running" || !all[string(ids[4])].Terminal || waited == "") && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
		all, waited = status()
	}
	for _, id := range append(ids[:4:4], waited) {
		if v := all[string(id)]; v.Status != "running" || v.RecoveryState != "reconciled" || v.Log != "kept" {
			t.Errorf("after the kill: %+v", v)
		}
	}
	if v := all[string(ids[4])]; v.Status != "failed" || v.State != event.NotStarted || v.FailureKind != "never" {
		t.Errorf("in line: %+v", v)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := remoteCall[run.WaitJobsOut](r, "wait_for_job_terminal", args{"job_ids": append(ids[:4:4], waited), "wait_secs": 30})
	for _, v := range end.Items {
		want := 3
		if v.JobID == waited {
			want = 4
		}
		if v.Status != "failed" || v.ExitCode == nil || *v.ExitCode != want {
			t.Errorf("%+v", v)
		}
		if log := remoteCall[run.JobLogOut](r, "read_job_log", args{"job_id": v.JobID}); log.Stdout == nil || log.Stdout.Text != "out\n" {
			t.Errorf("log %+v", log)
		}
	}
	for _, mark := range []string{"1", "2", "3", "4", "waited", "queued"} {
		if n := r.marks(mark); n > 1 || (n == 0) != (mark == "queued") {
			t.Errorf("%s ran %d times", mark, n)
		}
	}
	list := remoteCall[run.ListJobsOut](r, "list_jobs", args{"session_id": begun.ID, "active": true})
	for deadline := time.Now().Add(20 * time.Second); list.Active > 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list = remoteCall[run.ListJobsOut](r, "list_jobs", args{"session_id": begun.ID, "active": true})
	}
	if list.Active != 0 {
		t.Errorf("the log knows no end of %d", list.Active)
	}
}

func remoteCall[Out any](r *remote, tool string, a args) Out {
	r.t.Helper()
	var out Out
	if res := r.call(tool, a); res.IsError || res.Decode(&out) != nil {
		r.t.Fatalf("%s: %s", tool, res.Text)
	}
	return out
}
