package call_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// dead leaves a call open as a killed server does: its start is in the log, its end is not.
func dead(t *testing.T, e *calltest.Env, id event.SessionID, spec *call.Spec) event.ExecutionID {
	t.Helper()
	started := make(chan event.ExecutionID, 1)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		started <- x.Offer.ID
		select {} // the server never sees the end
	}
	go func() { _, _ = e.Call(spec, in{Project: calltest.Alpha.String(), SessionID: string(id)}) }()
	x := <-started
	e.Reopen()
	return x
}

// Covers: EXE-39, RES-22
func TestRecoverClosesWithWhatTheJournalProves(t *testing.T) {
	one := 1
	for name, tc := range map[string]struct {
		reply  wire.QueryReply
		err    error
		state  event.ExecutionState
		status string
	}{
		"terminal": {reply: wire.QueryReply{State: wire.JTerminal, Result: &wire.Result{State: wire.JTerminal,
			Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)}}}, state: event.Completed, status: event.StatusSucceeded},
		"terminal with a bad status": {reply: wire.QueryReply{State: wire.JSettled, Result: &wire.Result{State: wire.JTerminal,
			Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &one}}}, state: event.Completed, status: event.StatusFailed},
		"never":                   {reply: wire.QueryReply{State: wire.JNever}, state: event.NotStarted, status: event.StatusFailed},
		"absent, same journal":    {reply: wire.QueryReply{State: wire.JAbsent, Generation: "g1", Boot: "b1"}, state: event.NotStarted, status: event.StatusFailed},
		"absent, new journal":     {reply: wire.QueryReply{State: wire.JAbsent, Generation: "g2", Boot: "b1"}, state: event.OutcomeUnknown, status: event.StatusFailed},
		"absent, after a boot":    {reply: wire.QueryReply{State: wire.JAbsent, Generation: "g1", Boot: "b2"}, state: event.OutcomeUnknown, status: event.StatusFailed},
		"lost":                    {reply: wire.QueryReply{State: wire.JLost}, state: event.OutcomeUnknown, status: event.StatusFailed},
		"the Runner is not there": {err: fault.New(fault.RunnerUnavailable, "gone"), state: event.OutcomeUnknown, status: event.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			e := calltest.New(t, nil)
			id := work(e, calltest.Alpha, "")
			x := dead(t, e, id, runs)
			asked := 0
			e.Fleet.OnQuery = func(q event.ExecutionID) (wire.QueryReply, error) {
				if asked++; q != x {
					t.Errorf("asked about %s", q)
				}
				return tc.reply, tc.err
			}
			for range 2 { // a second recovery finds nothing to close
				if _, err := e.Kernel.Recover(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			commits := e.Commits(id)
			f, ok := commits[len(commits)-1].Events[0].(event.ToolCallFinished)
			if !ok || len(commits) != 3 || asked != 1 {
				t.Fatalf("%d commits, asked %d times: %+v", len(commits), asked, commits[len(commits)-1].Events)
			}
			if f.Effect.State != tc.state || f.Status != tc.status || !f.Recovered || f.Execution != x {
				t.Errorf("finish %+v", f)
			}
			if n := len(e.Fleet.Starts()); n != 1 {
				t.Errorf("%d starts", n)
			}
		})
	}
}

// A change of files whose end only the journal knows is told as a change, with the paths that
// the call named.
func TestRecoverTellsAChangeOfFiles(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	spec := *runs
	spec.Class, spec.Evidence = call.Write, func(json.RawMessage) event.Input { return event.Input{Paths: []string{"a.go"}, PathCount: 1} }
	dead(t, e, id, &spec)
	e.Fleet.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) {
		return wire.QueryReply{State: wire.JTerminal, Result: &wire.Result{State: wire.JTerminal}}, nil
	}
	if _, err := e.Kernel.Recover(context.Background()); err != nil {
		t.Fatal(err)
	}
	events := e.Events(id)
	f := events[len(events)-1].(event.ToolCallFinished)
	if f.Status != event.StatusSucceeded || !f.Effect.StateChanged || len(f.Changed) != 1 || f.Changed[0] != "a.go" || f.ErrorSummary != "" {
		t.Errorf("%+v", f)
	}
	if core, _ := e.Store.Core(id); !core.Edited {
		t.Error("the Session does not know that it edited the repository")
	}
}

// Where nobody can tell how a change of files ended, it is taken to have changed them; which,
// is not invented.
func TestAnUnknownChangeOfFilesCountsAsOne(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	spec := *runs
	spec.Name, spec.Class = "edit_project_files", call.Write
	spec.Evidence = func(json.RawMessage) event.Input { return event.Input{Paths: []string{"a.go"}} }
	spec.Run = func(ctx context.Context, c *call.Call) (call.Result, error) {
		_, err := c.Effect(ctx, wire.OpEditFiles, wire.EditFilesIn{}, call.EffectOptions{Timeout: time.Minute})
		return call.Result{}, err
	}
	dead(t, e, id, &spec)
	if _, err := e.Kernel.Recover(context.Background()); err != nil { // the Runner is gone
		t.Fatal(err)
	}
	events := e.Events(id)
	f := events[len(events)-1].(event.ToolCallFinished)
	if core, _ := e.Store.Core(id); f.Effect.State != event.OutcomeUnknown || !f.Effect.StateChanged || len(f.Changed) != 0 || !core.Edited {
		t.Errorf("%+v", f)
	}
}

func TestAJobEndsWithOneMarker(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	var late func(context.Context, wire.Result) error
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		late = x.Late
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	if _, err := e.Call(runs, in{Project: calltest.Alpha.String(), SessionID: string(id)}); err != nil {
		t.Fatal(err)
	}
	core, _ := e.Store.Core(id)
	if len(core.Jobs) != 1 || len(core.Open) != 0 {
		t.Fatalf("%d Jobs, %d open calls", len(core.Jobs), len(core.Open))
	}
	r := wire.Result{ID: e.Fleet.Starts()[0], State: wire.JTerminal, DurationMS: 12, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)}}
	for range 3 { // the Runner repeats until it is acknowledged
		if err := late(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	events := e.Events(id)
	m, ok := events[len(events)-1].(event.ExecutionFinished)
	if !ok || m.Execution != r.ID || m.Effect.State != event.Completed || m.DurationMS != 12 || len(events) != 6 {
		t.Errorf("%d events, the last %+v", len(events), events[len(events)-1])
	}
}

func TestProofAfterAnUnknownOutcomeIsRecordedOnce(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	var late func(context.Context, wire.Result) error
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		late = x.Late
		return call.Outcome{Unknown: true}, e.Fleet.Grant(ctx, x)
	}
	if _, err := e.Call(runs, in{Project: calltest.Alpha.String(), SessionID: string(id)}); fault.KindOf(err) != fault.OutcomeUnknown {
		t.Fatal(err)
	}
	r := wire.Result{ID: e.Fleet.Starts()[0], State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)}}
	for range 2 {
		if err := late(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	reconciled := 0
	for _, ev := range e.Events(id) {
		if _, ok := ev.(event.ExecutionReconciled); ok {
			reconciled++
		}
	}
	if core, _ := e.Store.Core(id); reconciled != 1 || len(core.Unknown) != 0 {
		t.Errorf("%d reconciliations, %d unknown", reconciled, len(core.Unknown))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := e.Kernel.Close(ctx); err != nil {
		t.Error(err)
	}
}
