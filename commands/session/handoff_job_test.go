package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/commands/validate"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// endsMeanwhile makes each run a Job, whose end the Runner has in its journal when over is set.
func endsMeanwhile(e *calltest.Env, over *bool) {
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	e.Fleet.OnQuery = func(id event.ExecutionID) (wire.QueryReply, error) {
		if !*over {
			return wire.QueryReply{State: wire.JRunning}, nil
		}
		code := 1
		r := wire.Result{ID: id, State: wire.JTerminal, DurationMS: 7, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &code,
			Tests: &wire.TestReport{Parser: "go-json", Version: 1, Detected: true, Run: 2, Passed: 1, Failed: 1,
				FailedTests: []wire.FailedTest{{Name: "TestX", Package: "p", File: "x_test.go", Line: 9}}}}}
		return wire.QueryReply{State: wire.JTerminal, Result: &r}, nil
	}
}

// handedOff reads a handoff, which a Session may record.
func handedOff(e *calltest.Env, id, recorder event.SessionID, a args) view.Brief {
	e.T.Helper()
	env := call.Envelope{}
	if recorder != "" {
		env = call.Envelope{Record: string(recorder), Field: "record"}
	}
	a["session_id"] = id
	resp, err := e.CallWith(context.Background(), calltest.Owner(), &session.ReadHandoff, a, env)
	if err != nil {
		e.T.Fatal(err)
	}
	var out view.Handoff
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		e.T.Fatal(err)
	}
	return out.Brief
}

// given a Session whose Job has ended and nobody has recorded it, when a quiet handoff materialises
// its evidence, and records itself in that Session or in another or nowhere, then the end is in the
// brief and the handoff does not say that the Session moved. The next one leaves no end again.
//
// Covers: HND-12, HND-40, VAL-04, VAL-05
func TestAQuietHandoffWithAFreshlyTerminalJob(t *testing.T) {
	for name, recorder := range map[string]func(*calltest.Env, event.SessionID) event.SessionID{
		"not recorded":              func(*calltest.Env, event.SessionID) event.SessionID { return "" },
		"recorded in itself":        func(_ *calltest.Env, id event.SessionID) event.SessionID { return id },
		"recorded in another":       func(e *calltest.Env, _ event.SessionID) event.SessionID { return begun(e) },
		"recorded, after a restart": func(e *calltest.Env, id event.SessionID) event.SessionID { e.Reopen(); return id },
	} {
		t.Run(name, func(t *testing.T) {
			e := calltest.New(t, nil)
			id, over := begun(e), false
			endsMeanwhile(e, &over)
			calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id})
			record := recorder(e, id)
			if b := handedOff(e, id, record, args{}); b.Attention.Jobs.Active != 1 || b.Validation.Status != "not_run" || len(raced(b)) > 0 {
				t.Fatalf("while it runs: %+v %v", b.Attention.Jobs, b.Basis)
			}
			before := len(e.Events(id))
			over = true
			b := handedOff(e, id, record, args{})
			if len(raced(b)) > 0 || b.Progress.State != view.StateBlocked || b.NextActions.Items[0].Tool == "read_session_handoff" {
				t.Errorf("the handoff tripped its own fence: %v, %s, %+v", b.Basis, b.Progress.State, b.NextActions.Items[0])
			}
			if b.Attention.Jobs.Active != 0 || b.Validation.Status != "failed" || b.Task.Context.Locations.Items[0] != (view.Location{File: "x_test.go", Line: 9, Name: "p.TestX"}) {
				t.Errorf("the end is not in it: %+v %+v", b.Attention.Jobs, b.Validation)
			}
			want := 1 // the end
			if record == id {
				want += 2
			}
			if n := len(e.Events(id)) - before; n != want {
				t.Errorf("it left %d events, not %d", n, want)
			}
			if again := handedOff(e, id, record, args{}); len(raced(again)) > 0 || again.Validation.Status != "failed" {
				t.Errorf("again: %v", again.Basis)
			}
			ends := 0
			for _, x := range e.Events(id) {
				if _, is := x.(event.ExecutionFinished); is {
					ends++
				}
			}
			if ends != 1 {
				t.Errorf("%d ends", ends)
			}
		})
	}
}

// A handoff without validation looks at no Job's end; without checkpoints it does not speak of
// them, and where they are asked for it says that there is no list.
//
// Covers: HND-05, HND-30, HND-47
func TestWhatAHandoffWasNotAskedFor(t *testing.T) {
	e := calltest.New(t, nil)
	id, over := begun(e), true
	endsMeanwhile(e, &over)
	calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id})
	b := handedOff(e, id, "", args{"include_validation": false, "include_checkpoints": false})
	if b.Validation.Status != "not_requested" || b.Attention.Jobs.Active != 1 || b.Checkpoints.Status != "not_requested" || b.Checkpoints.ReasonCode != "" {
		t.Errorf("%+v %+v %+v", b.Validation, b.Attention.Jobs, b.Checkpoints)
	}
	if codes := strings.Join(b.Basis.ReasonCodes, " "); codes != "validation_not_requested" {
		t.Errorf("%s", codes)
	}
	for _, a := range []args{{}, {"include_checkpoints": true}} {
		if b := handedOff(e, id, "", a); b.Checkpoints.Status != "unavailable" || b.Checkpoints.ReasonCode != "checkpoints_unavailable" || b.Basis.Complete {
			t.Errorf("%+v %+v", b.Checkpoints, b.Basis)
		}
	}
}

// A handoff that somebody read, and recorded, and did nothing about shows the next reader the same:
// what is asked, what fails, what is open, and how to go on.
//
// Covers: HND-06, HND-41, HND-42, HND-48
func TestAHandoffThatWasReadIsNotEmptyToTheNext(t *testing.T) {
	e := calltest.New(t, nil)
	id, over := begun(e), true
	endsMeanwhile(e, &over)
	calltest.Must[validate.Output](e, &validate.GoTest, args{"project": alpha, "session_id": id})
	calltest.Must[board.PostOut](e, &board.PostMessage, args{"session_id": id, "kind": "risk", "message": "it may break", "requires_ack": true})
	calltest.Must[board.PostOut](e, &board.PostMessage, args{"session_id": id, "kind": "todo", "message": "ask the owner"})
	first := handedOff(e, id, id, args{})
	for range 3 {
		next := handedOff(e, id, id, args{})
		next.Session.UpdatedAt = first.Session.UpdatedAt // the pair of the one before
		a, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(next)
		if err != nil || string(a) != string(b) {
			t.Fatalf("%v\n%s\n%s", err, a, b)
		}
	}
	var said []string
	for _, s := range first.Task.Context.Steps.Items {
		said = append(said, s.Step+": "+s.Text)
	}
	if got := strings.Join(said, "; "); got != "fix_failure: p.TestX at x_test.go:9; settle_risk: it may break; do_todo: ask the owner" {
		t.Errorf("%s", got)
	}
	if first.Continuation.Tool != "work_on_project" || first.Continuation.Arguments["session_id"] != string(id) || len(first.NextActions.Items) < 3 {
		t.Errorf("%+v %+v", first.Continuation, first.NextActions)
	}
}
