package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/run"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// jobs makes the scripted Runner take Jobs and tell how they are.
func jobs(e *calltest.Env, view func(id string) wire.JobView) (offers *[]wire.Offer) {
	offers = new([]wire.Offer)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		*offers = append(*offers, x.Offer)
		return call.Outcome{Promoted: true}, x.Ready(ctx)
	}
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		switch op {
		case wire.OpObserveJobs:
			var in wire.ObserveJobsIn
			_ = json.Unmarshal(body, &in)
			return wire.ObserveJobsOut{Items: []wire.JobView{view(in.Items[0].ID)}, WaitOutcome: "not_waited"}, nil
		case wire.OpJobStates:
			var in wire.JobStatesIn
			_ = json.Unmarshal(body, &in)
			out := wire.JobStatesOut{WaitOutcome: "not_waited"}
			for _, id := range in.IDs {
				out.Items = append(out.Items, view(id))
			}
			return out, nil
		}
		return nil, fault.New(fault.RunnerUnavailable, "the Runner is away")
	}
	return offers
}

// A Job is offered as one, with a limit of its own; what is kept of it is counts. Its admission
// says nothing about an end.
//
// Covers: EXE-27, EXE-35
func TestAJobIsOfferedAsOne(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	offers := jobs(e, func(id string) wire.JobView {
		return wire.JobView{ID: id, Known: true, State: wire.JAccepted, Waiting: true, Ahead: 2, Token: "t0"}
	})
	out := calltest.Must[run.StartJobOut](e, &run.RunJob, args{"project": alpha, "session_id": id, "command": "echo SHELLMARK", "purpose": "build",
		"result_expectation": "failure", "accepted_exit_codes": []int{1}})
	if out.Status != "agent_queued" || out.State != "" || *out.JobsAhead != 2 || *out.ObservationToken != "t0" || out.JobID == "" {
		t.Errorf("%+v", out)
	}
	calltest.Must[run.StartJobOut](e, &run.RunJob, args{"project": alpha, "session_id": id, "executable": "/opt/SECRETDIR/tool", "args": []string{"ARGMARK"}, "stdin": "INMARK", "timeout_secs": 7})
	if b := (*offers)[0].Bounds; !b.Job || b.TimeoutMS != 3_600_000 || (*offers)[1].Bounds.TimeoutMS != 7000 || (*offers)[1].Op != wire.OpProcess {
		t.Errorf("%+v", *offers)
	}
	var inputs []string
	for _, ev := range e.Events(event.SessionID(id)) {
		switch ev := ev.(type) {
		case event.ToolCallStarted:
			b, _ := json.Marshal(ev.Input)
			inputs = append(inputs, string(b))
		case event.ToolCallFinished:
			if !ev.Promoted || ev.Effect != (event.Effect{}) || ev.Expectation != event.ExpectationNone || ev.Status != event.StatusSucceeded {
				t.Errorf("the admission is recorded as %+v", ev)
			}
		}
	}
	want := []event.Input{{CommandBytes: 14, TimeoutSecs: 3600, Purpose: "build", Expectation: "failure", AcceptedExitCodes: []int{1}},
		{Executable: "tool", ArgCount: 1, StdinBytes: 6, TimeoutSecs: 7}}
	for i, w := range want {
		if b, _ := json.Marshal(w); inputs[i] != string(b) {
			t.Errorf("kept %s, want %s", inputs[i], b)
		}
	}
	for _, mark := range []string{"SHELLMARK", "SECRETDIR", "ARGMARK", "INMARK"} {
		if strings.Contains(stored(t, e, id), mark) {
			t.Errorf("%s is in the log", mark)
		}
	}
}

// A Runner that is away leaves its Jobs recovering, never healthy and never ended; one that knows
// nothing of a Job leaves what the Session keeps, else nothing is invented.
//
// Covers: NEG-33, CON-21
func TestAJobWhoseRunnerIsAway(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	known := true
	jobs(e, func(id string) wire.JobView { return wire.JobView{ID: id, Known: known, State: wire.JRunning} })
	first := calltest.Must[run.StartJobOut](e, &run.RunJob, args{"project": alpha, "session_id": id, "command": "sleep 9"})
	status := func() run.JobStatus {
		return calltest.Must[run.JobStatus](e, &run.GetJobStatus, args{"job_id": first.JobID})
	}
	if s := status(); s.Status != "running" || s.State != event.Started {
		t.Errorf("%+v", s)
	}
	ask := e.Fleet.OnAsk
	e.Fleet.OnAsk = func(wire.Op, json.RawMessage) (any, error) {
		return nil, fault.New(fault.RunnerUnavailable, "the Runner is away")
	}
	s := status()
	if s.Status != "recovering" || s.RecoveryState != "recovering" || s.RecoveryReason != "runner_transport_disconnected" || s.State != "" || s.Terminal || s.Log != "" {
		t.Errorf("%+v", s)
	}
	if l := calltest.Must[run.ListJobsOut](e, &run.ListJobs, args{"project": alpha}); l.Active != 1 || l.Items[0].Status != "recovering" {
		t.Errorf("%+v", l)
	}
	e.Refused(calltest.Owner(), &run.ReadJobLog, args{"job_id": first.JobID}, fault.RunnerUnavailable)
	e.Fleet.OnAsk, known = ask, false
	e.Refused(calltest.Owner(), &run.GetJobStatus, args{"job_id": first.JobID}, fault.UnknownJob)
	// The next server life: of what has no end nobody can say how it is.
	e.Fleet.OnAsk = func(wire.Op, json.RawMessage) (any, error) {
		return nil, fault.New(fault.RunnerUnavailable, "the Runner is away")
	}
	e.Reopen()
	if s := status(); s.Status != "recovering" || s.RecoveryReason != "server_restart_reconciliation" || s.Tool != "run_job" {
		t.Errorf("%+v", s)
	}
	other, err := e.CallAs(context.Background(), calltest.Someone("b"), &run.ListJobs, args{})
	if err != nil || strings.Contains(string(other.Output), string(first.JobID)) {
		t.Errorf("another authority sees %s %v", other.Output, err)
	}
}

// What lives on at a Runner is taken over by the next server life, once; its end goes to its
// Session. A Job whose Runner is away stays open, and its end is told when it is long overdue.
//
// Covers: EXE-39, CON-20, NEG-33
func TestTheNextLifeTakesJobsOver(t *testing.T) {
	for state, reply := range map[string]func() (wire.QueryReply, error){
		"running": func() (wire.QueryReply, error) { return wire.QueryReply{State: wire.JRunning}, nil },
		"away":    func() (wire.QueryReply, error) { return wire.QueryReply{}, fault.New(fault.RunnerUnavailable, "away") },
	} {
		t.Run(state, func(t *testing.T) {
			e := calltest.New(t, nil)
			id := work(e, nil)
			jobs(e, func(id string) wire.JobView { return wire.JobView{ID: id, Known: true, State: wire.JRunning} })
			out := calltest.Must[run.StartJobOut](e, &run.RunJob, args{"project": alpha, "session_id": id, "command": "sleep 9", "timeout_secs": 7})
			e.Reopen()
			e.Fleet.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) { return reply() }
			if n, err := e.Kernel.Recover(context.Background()); err != nil || n.Jobs != 0 {
				t.Fatalf("%+v %v", n, err)
			}
			taken := e.Fleet.Adopted()
			core, _ := e.Store.Core(event.SessionID(id))
			if len(taken) != 1 || taken[0].Offer.ID != out.JobID || taken[0].Offer.Bounds.TimeoutMS != 7000 || len(core.Jobs) != 1 {
				t.Fatalf("%+v, %d open", taken, len(core.Jobs))
			}
			brief := func() view.JobAttention {
				return calltest.Must[view.Finish](e, &session.FinishTask, args{"project": alpha, "session_id": id, "include_workspace": false}).Feedback.Attempt.Jobs
			}
			if b := brief(); b != (view.JobAttention{Active: 1, Recovering: 1, Recovery: "recovering"}) {
				t.Errorf("before its Runner said a word: %+v", b)
			}
			taken[0].Alive()
			if b := brief(); b != (view.JobAttention{Active: 1, Running: 1, Recovery: "active"}) {
				t.Errorf("afterwards: %+v", b)
			}
			if taken[0].Ready(t.Context()) == nil {
				t.Error("it could be granted")
			}
			three := 3
			for _, r := range []wire.Result{{ID: out.JobID, State: wire.JLost},
				{ID: out.JobID, State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &three}}} {
				if err := taken[0].Late(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			events := e.Events(event.SessionID(id))
			end, ok := events[len(events)-2].(event.ExecutionFinished)
			proof, later := events[len(events)-1].(event.ExecutionReconciled)
			if !ok || end.Effect.State != event.OutcomeUnknown || end.Effect.StateChanged || !later || *proof.ExitCode != 3 {
				t.Errorf("%+v, then %+v", end, proof)
			}
		})
	}
}

// Who waits for Jobs takes a place of those that wait, and none of those that work; the end of the
// server ends the wait.
func TestAWaitForJobsTakesNoWorkingPlace(t *testing.T) {
	e := calltest.New(t, nil)
	jobs(e, func(id string) wire.JobView { return wire.JobView{ID: id, Known: true, State: wire.JRunning} })
	out := calltest.Must[run.StartJobOut](e, &run.RunJob, args{"project": alpha, "command": "sleep 9"})
	done := make(chan run.WaitJobsOut, 1)
	go func() {
		done <- calltest.Must[run.WaitJobsOut](e, &run.WaitForJobTerminal, args{"job_ids": []event.ExecutionID{out.JobID}})
	}()
	for deadline := time.Now().Add(10 * time.Second); e.Kernel.Waiters() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if n := e.Kernel.Waiters(); n != 1 {
		t.Errorf("%d wait", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := e.Kernel.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if end := <-done; end.WaitOutcome != "timeout" || end.PendingN != 1 || end.Items[0].Status != "running" {
		t.Errorf("%+v", end)
	}
}
