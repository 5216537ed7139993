package call_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// A recorder that is closed while a call is on its way takes no effect any more; the end of a
// call that it admitted still comes.
//
// Covers: REC-15
func TestARecorderClosedMeanwhile(t *testing.T) {
	e := calltest.New(t, nil)
	w := work(e, calltest.Alpha, "")
	closing := *runs
	closing.Run = func(ctx context.Context, c *call.Call) (call.Result, error) {
		calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": w})
		return runs.Run(ctx, c)
	}
	if _, err := recorded(e, &closing, in{Project: calltest.Alpha.String()}, w); fault.KindOf(err) != fault.SessionClosed || len(e.Fleet.Starts()) != 0 {
		t.Errorf("%v, %d starts", err, len(e.Fleet.Starts()))
	}
	// The same with a business Session: its start stands, and its end says that nothing started.
	w, c := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "")
	if _, err := recorded(e, &closing, in{Project: calltest.Alpha.String(), SessionID: string(c)}, w); fault.KindOf(err) != fault.SessionClosed || len(e.Fleet.Starts()) != 0 {
		t.Errorf("%v, %d starts", err, len(e.Fleet.Starts()))
	}
	events, _ := since(e, c, 1)
	if _, f := pairOf(t, events, event.RoleBusiness); f.Status != event.StatusFailed || f.Effect.CommandStarted {
		t.Errorf("%+v", f)
	}
	// Admitted before the close.
	w = work(e, calltest.Alpha, "")
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": w})
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)})
	}
	mustRecord(e, runs, in{Project: calltest.Alpha.String()}, w)
	events, _ = since(e, w, 1)
	pairOf(t, events, event.RoleRecorder)
	if core, _ := e.Store.Core(w); core.Lifecycle != view.Closed || len(core.Open) != 0 {
		t.Errorf("%s, %d open", core.Lifecycle, len(core.Open))
	}
}

// Covers: REC-15, SES-24
func TestClosingTheRecorderItselfEndsWithAPair(t *testing.T) {
	for name, limit := range map[string]int{"kept": 10, "removed at once": 0} {
		t.Run(name, func(t *testing.T) {
			e := calltest.New(t, nil)
			e.Limit = limit
			e.Reopen()
			w := work(e, calltest.Alpha, "")
			mustRecord(e, &session.CloseSession, map[string]any{"session_id": w}, w)
			events, _ := since(e, w, 1)
			order := []string{}
			for _, ev := range events {
				switch ev := ev.(type) {
				case event.ToolCallStarted:
					order = append(order, "start "+string(ev.Role))
				case event.SessionClosed:
					order = append(order, "closed")
				case event.ToolCallFinished:
					order = append(order, "end "+string(ev.Role))
				}
			}
			if got := strings.Join(order, ", "); got != "start recorder, closed, end recorder" {
				t.Error(got)
			}
			if _, err := e.Store.LoadCore(w); (err != nil) != (limit == 0) {
				t.Errorf("with a limit of %d: %v", limit, err)
			}
		})
	}
}

// Covers: SES-52
func TestADenialIsRecordedInBoth(t *testing.T) {
	e := calltest.New(t, nil)
	w, c := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "read_only")
	if _, err := recorded(e, runs, in{Project: calltest.Alpha.String(), SessionID: string(c)}, w); fault.KindOf(err) != fault.SessionGuardDenied {
		t.Fatal(err)
	}
	for id, role := range map[event.SessionID]event.Role{w: event.RoleRecorder, c: event.RoleBusiness} {
		events, commits := since(e, id, 1)
		if _, f := pairOf(t, events, role); len(commits) != 1 || f.Effect.State != event.NotStarted || f.ErrorKind != "session_guard_denied" {
			t.Errorf("%s: %+v", role, events)
		}
	}
}

// A server that died left the recorder's pair open too; what the journal proves ends it.
func TestRecoverEndsTheRecordersPair(t *testing.T) {
	e := calltest.New(t, nil)
	w, c := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "")
	started := make(chan struct{})
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		close(started)
		select {} // the server never sees the end
	}
	go func() { _, _ = recorded(e, runs, in{Project: calltest.Alpha.String(), SessionID: string(c)}, w) }()
	<-started
	// Another call has begun a decision and none has come of it.
	e.Append(w, event.ToolCallStarted{Call: event.NewCallID(), Role: event.RoleRecorder, Tool: "post_session_message", Transport: "mcp"})
	e.Reopen()
	e.Fleet.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) {
		return wire.QueryReply{State: wire.JTerminal, Result: &wire.Result{State: wire.JTerminal,
			Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)}}}, nil
	}
	got, err := e.Kernel.Recover(context.Background())
	if err != nil || got.Calls != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	for _, id := range []event.SessionID{w, c} {
		core, _ := e.Store.Core(id)
		if len(core.Open) != 0 || len(core.Unknown) != 0 {
			t.Errorf("%d open, %d unknown", len(core.Open), len(core.Unknown))
		}
	}
	ends := map[string]event.ToolCallFinished{}
	for _, ev := range e.Events(w) {
		if f, ok := ev.(event.ToolCallFinished); ok {
			ends[f.Tool] = f
		}
	}
	if f := ends["some_tool"]; !f.Recovered || f.Effect.State != event.Completed || f.Role != event.RoleRecorder {
		t.Errorf("%+v", f)
	}
	if f := ends["post_session_message"]; !f.Recovered || f.Effect.State != event.OutcomeUnknown || f.Effect.CommandStarted {
		t.Errorf("%+v", f)
	}
}

// Two requests with both pairs at once: every one leaves its four events, and no decision is
// lost between the two Sessions.
func TestRecordedCallsAtOnce(t *testing.T) {
	e := calltest.New(t, nil)
	w, c := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "")
	const n = 8
	done := make(chan error, 2*n)
	for range n {
		for _, p := range [][2]event.SessionID{{w, c}, {c, w}} {
			go func() {
				_, err := recorded(e, runs, in{Project: calltest.Alpha.String(), SessionID: string(p[0])}, p[1])
				done <- err
			}()
		}
	}
	for range 2 * n {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("two calls wait for each other")
		}
	}
	for _, id := range []event.SessionID{w, c} {
		core, _ := e.Store.Core(id)
		if s := summary(e, id); s.Counts.ToolCalls != 2*n || s.EventsTotal != 4*n+1 || len(core.Open) != 0 {
			t.Errorf("%d calls, %d events, %d open", s.Counts.ToolCalls, s.EventsTotal, len(core.Open))
		}
	}
}

// A Job that a call names by its id brings its Project with it.
//
// Covers: REC-09
func TestARecorderIsOfTheJobsProject(t *testing.T) {
	e := calltest.New(t, nil)
	a, b := work(e, calltest.Alpha, ""), work(e, calltest.Beta, "")
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	if _, err := e.Call(runs, in{Project: calltest.Beta.String()}); err != nil {
		t.Fatal(err)
	}
	stops := &call.Spec{Name: "stop_job", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: call.Mutate,
		Run: func(_ context.Context, c *call.Call) (call.Result, error) {
			_, err := c.Job(string(e.Fleet.Starts()[0]))
			return call.Result{}, err
		}}
	if _, err := recorded(e, stops, `{}`, a); fault.KindOf(err) != fault.SessionProjectMismatch {
		t.Errorf("of another Project: %v", err)
	}
	mustRecord(e, stops, `{}`, b)
}
