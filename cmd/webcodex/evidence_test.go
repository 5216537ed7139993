package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/commands/run"
	view "webcodex/projections/session"
)

// A failing go test, the fix, the pass, the commit and another edit, through the real Runner:
// what validation proves follows the files. The next window is told of the attempt before it,
// and of the failure first.
//
// Covers: CON-02, CON-05, CON-06, CON-15, CON-17, VAL-01, VAL-26
func TestEvidenceFollowsTheFiles(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("GOPROXY", "off")
	w := newWorld(t, "process")
	id := w.work(args{"instruction": "fix the sum"}).SessionID
	p := args{"project": w.project, "session_id": id}
	read := func() view.ValidationSummary { return must[view.ValidationSummary](w, "read_validation_summary", p) }
	is := func(what string, stale *bool, want bool) {
		t.Helper()
		if stale == nil || *stale != want {
			t.Errorf("%s: stale %v", what, stale)
		}
	}
	add := filepath.Join(w.repo, "add.go")
	right, err := os.ReadFile(add)
	if err != nil {
		t.Fatal(err)
	}
	w.call("read_files", with(p, args{"items": []args{{"path": "add.go"}}}))
	w.write(add, strings.ReplaceAll(string(right), "+", "-"))
	if out, _ := w.tests("go_test", with(p)); out.Passed == nil || *out.Passed || out.Expectation.Result != "unexpected_failure" {
		t.Fatalf("%+v", out)
	}
	s := read()
	is("just failed", s.Latest.Stale, false)
	if s.Status != "failed" || s.Unresolved.Total != 1 || s.Unresolved.Items[0].Name != "sample.TestAdd" || s.Unresolved.Items[0].File != "add_test.go" || s.Unresolved.Items[0].Line != 7 {
		t.Errorf("%+v", s.Unresolved)
	}
	if b := s.Events.Items[0].Bound; b == nil || len(b.Tree) != 64 || len(b.Commit) != 40 || len(b.Output) != 64 || b.Tree != s.Workspace.Tree || b.Moved {
		t.Errorf("%+v, the tree is %s", b, s.Workspace.Tree)
	}
	before := w.observed(id)
	resumed := w.work(args{"session_id": id, "instruction": "go on"})
	if f := resumed.Feedback; f.Attempt == nil || f.Attempt.Instruction.Text != "fix the sum" || f.Attempt.Failures.Total != 1 ||
		!strings.Contains(f.Suggested[0].Why, "sample.TestAdd") || f.Suggested[0].Tool != "go_test" || f.Attempt.Exploration.Paths.Items[0] != "add.go" {
		t.Errorf("%+v", f.Attempt)
	}
	if now := w.observed(id); now != before+1 {
		t.Errorf("a resume left %d events", now-before)
	}
	w.write(add, string(right))
	is("fixed, not tested", read().Latest.Stale, true)
	if r := w.call("go_test", resumed.Feedback.Suggested[0].Arguments); !r.Success {
		t.Fatalf("%s", r.Text)
	}
	s = read()
	is("passed", s.Stale, false)
	if s.Status != "passed" || s.Unresolved.Total != 0 || s.Resolved.Total != 1 || s.Delta.Status != "available" || *s.Delta.Failed != -1 || *s.Delta.Passed != 1 {
		t.Errorf("%+v %+v", s, s.Delta)
	}
	w.write(filepath.Join(w.repo, "more.go"), "package sample\n")
	is("another file", read().Stale, true)
	for _, a := range [][]string{{"add", "-A"}, {"-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "second"}} {
		if out, err := exec.Command("git", append([]string{"-C", w.repo}, a...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	is("committed untested", read().Stale, true)
	w.tests("go_test", with(p))
	w.write(add, string(right)+"\n// more\n")
	is("edited", read().Stale, true)
	h := must[view.Handoff](w, "read_session_handoff", args{"session_id": id, "diagnostic": true, "limit": 1})
	is("in the handoff", h.Brief.Validation.Latest.Stale, true)
	is("in its feedback", h.Feedback.Attempt.Validation.Latest.Stale, true)
	if h.Brief.Progress.State != view.StateNeedsProof || h.Feedback.Delta == nil {
		t.Errorf("%+v", h.Brief.Progress)
	}
	is("at the finish", must[view.Finish](w, "finish_coding_task", p).Validation.Latest.Stale, true)
	w.write(add, string(right))
	is("undone", read().Stale, false)
}

// A long run with a validating purpose becomes a Job; its end is evidence of the Session, and
// what it was declared to be.
func TestAJobThatValidates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	p := args{"project": w.project, "session_id": id}
	out := must[run.Output](w, "run_shell", with(p, args{"command": "sleep 0.3; echo OUTMARK; exit 3", "purpose": "validation",
		"result_expectation": "observe", "sync_wait_secs": 0}))
	if !out.Promoted || out.Expectation.Result != "none" {
		t.Fatalf("%+v", out)
	}
	look := args{"items": []args{{"job_id": out.JobID}}, "wait_secs": 60}
	for {
		seen := must[run.ObserveOut](w, "observe_jobs", look)
		if seen.Items[0].Terminal {
			break
		}
		look["items"] = []args{{"job_id": out.JobID, "after_observation_token": seen.Items[0].ObservationToken}}
	}
	s := must[view.ValidationSummary](w, "read_validation_summary", p)
	if s.Latest == nil || s.Latest.Outcome != "failed" || !*s.Latest.Met || s.Latest.Passed || s.Unresolved.Total != 0 || s.Jobs.Active != 0 ||
		s.Events.Items[0].Bound == nil || s.Events.Items[0].Bound.Tree == "" || s.Latest.At == "" {
		t.Errorf("%+v", s)
	}
	if raw := w.call("read_validation_summary", p).Text; strings.Contains(raw, "OUTMARK") || strings.Contains(raw, "sleep") {
		t.Errorf("%s", raw)
	}
}
