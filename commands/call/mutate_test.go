package call_test

import (
	"context"
	"encoding/json"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

func mutation(t *testing.T, slot, kind string, spec *call.Spec, args any, keep ...string) call.Mutation {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return call.Mutation{Slot: slot, Kind: kind, At: "_wc.control." + slot + "." + kind, Spec: spec, Args: raw, Keep: keep}
}

type obj = map[string]any

// defaults is the control mutation that sets a Session's default directory.
func defaults(t *testing.T, id event.SessionID, cwd string) call.Mutation {
	return mutation(t, "before", "session_context_update", &session.UpdateContext, obj{"project": calltest.Alpha.String(), "session_id": id,
		"execution_context": obj{"default_cwd": cwd}}, "session_id", "changed")
}

func closing(t *testing.T, id event.SessionID) call.Mutation {
	return mutation(t, "after_success", "session_close", &session.CloseSession, obj{"session_id": id}, "lifecycle", "already_closed")
}

// slot is what an answer or a refusal says of one mutation.
type slot struct {
	Kind    string                     `json:"kind"`
	Success bool                       `json:"success"`
	Output  map[string]json.RawMessage `json:"output"`
	Error   string                     `json:"error_kind"`
	Field   string                     `json:"field"`
	Skipped string                     `json:"skipped"`
}

func controlOf(t *testing.T, resp call.Response, err error) map[string]slot {
	t.Helper()
	var out struct {
		Control map[string]slot `json:"control"`
	}
	raw := []byte(resp.Output)
	if f := fault.As(err); f != nil {
		raw, _ = json.Marshal(f.Details)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out.Control
}

// Covers: CTL-05, CTL-06
func TestMutationsOfBothPhases(t *testing.T) {
	e := calltest.New(t, nil)
	target := work(e, calltest.Alpha, "")
	fail := tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) {
		return call.Result{Failed: true, Error: "a test failed"}, nil
	})
	refuse := tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) {
		return call.Result{}, fault.New(fault.EditConflict, "no")
	})
	args := in{Project: calltest.Alpha.String()}
	do := func(spec *call.Spec, env call.Envelope) (call.Response, error) {
		return e.CallWith(context.Background(), calltest.Owner(), spec, args, env)
	}
	open := func() bool {
		core, err := e.Store.LoadCore(target)
		return err == nil && core.Lifecycle == view.Active
	}

	resp, err := do(reads, call.Envelope{Before: []call.Mutation{defaults(t, target, "pkg")}})
	if got := controlOf(t, resp, err)["before"]; err != nil || !got.Success || string(got.Output["changed"]) != "true" || len(got.Output) != 2 {
		t.Errorf("%+v %v", got, err)
	}
	if core, _ := e.Store.Core(target); core.Context.DefaultCwd != "pkg" {
		t.Errorf("%+v", core.Context)
	}
	ran := false
	stopped := tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) { ran = true; return call.Result{}, nil })
	resp, err = do(stopped, call.Envelope{Before: []call.Mutation{defaults(t, target, "/etc")}, After: []call.Mutation{closing(t, target)}})
	f := fault.As(err)
	if got := controlOf(t, resp, err); ran || f.Kind != fault.InvalidContext || f.StateChanged || got["before"].Success || got["after_success"].Skipped != "main_failed" ||
		got["before"].Field != "_wc.control.before.session_context_update.execution_context.default_cwd" || f.Field != got["before"].Field {
		t.Errorf("ran %v, %+v, %+v", ran, f, got)
	}
	// What came before the one that stopped it stands, and the refusal says so.
	_, err = do(stopped, call.Envelope{Before: []call.Mutation{defaults(t, target, "cmd"), closing(t, "wc_sess_none")}})
	if f := fault.As(err); ran || f.Kind != fault.UnknownSessionID || !f.StateChanged {
		t.Errorf("%+v", f)
	}
	for spec, skipped := range map[*call.Spec]string{fail: "main_failed", refuse: "main_failed"} {
		resp, err := do(spec, call.Envelope{After: []call.Mutation{closing(t, target)}})
		if got := controlOf(t, resp, err)["after_success"]; got.Skipped != skipped || got.Success || !open() {
			t.Errorf("%+v", got)
		}
	}
	resp, err = do(reads, call.Envelope{After: []call.Mutation{closing(t, event.NewSessionID())}})
	if got := controlOf(t, resp, err)["after_success"]; err != nil || !resp.Success || got.Error != "unknown_session_id" || got.Success {
		t.Errorf("a mutation after it changed the result: %+v %v %+v", resp, err, got)
	}
	for range 2 { // repeated, it changes nothing more
		resp, err = do(reads, call.Envelope{After: []call.Mutation{closing(t, target)}})
		if got := controlOf(t, resp, err)["after_success"]; err != nil || !got.Success || open() {
			t.Errorf("%+v %v", got, err)
		}
	}
	updates, closes := 0, 0
	for _, ev := range e.Events(target) {
		switch ev.(type) {
		case event.ContextUpdated:
			updates++
		case event.SessionClosed:
			closes++
		}
	}
	if updates != 2 || closes != 1 {
		t.Errorf("%d changes of defaults, %d closes", updates, closes)
	}
}

// A command that lives on as a Job has not succeeded yet.
//
// Covers: CTL-05
func TestNoMutationAfterAJob(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	resp, err := e.CallWith(context.Background(), calltest.Owner(), runs, in{Project: calltest.Alpha.String()}, call.Envelope{After: []call.Mutation{closing(t, id)}})
	if got := controlOf(t, resp, err)["after_success"]; err != nil || got.Skipped != "main_still_running" {
		t.Errorf("%+v %v", got, err)
	}
	if core, _ := e.Store.Core(id); core.Lifecycle != view.Active {
		t.Error("it was closed")
	}
}

// A mutation passes the checks of the tool that it stands for: scopes, authority, Project,
// lifecycle, and the recorder's scope.
//
// Covers: CTL-03
func TestAMutationIsAuthorisedLikeItsTool(t *testing.T) {
	e := calltest.New(t, nil)
	s := everyScope(e)
	for name, tc := range map[string]struct {
		p    call.Principal
		m    call.Mutation
		w    event.SessionID
		kind fault.Kind
	}{
		"scope":          {calltest.Owner(call.ScopeProjectWrite), defaults(t, s.alpha, "x"), "", fault.InsufficientScope},
		"foreign":        {calltest.Owner(), defaults(t, s.foreign, "x"), "", fault.SessionAuthorityDenied},
		"other project":  {calltest.Owner(), defaults(t, s.beta, "x"), "", fault.SessionProjectMismatch},
		"closed":         {calltest.Owner(), defaults(t, s.closed, "x"), "", fault.SessionClosed},
		"no plane":       {calltest.Owner(), call.Mutation{Slot: "before", Kind: "goal_progress"}, "", fault.Unavailable},
		"recorder scope": {calltest.Owner(), closing(t, s.alpha), s.none, fault.SessionProjectMismatch},
		"allowed":        {calltest.Owner(), defaults(t, s.alpha, "x"), s.alpha, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := e.Seq()
			_, err := e.CallWith(context.Background(), tc.p, runtimeTool, `{}`, call.Envelope{Before: []call.Mutation{tc.m}, Record: string(tc.w), Field: recordField})
			if fault.KindOf(err) != tc.kind {
				t.Errorf("%v, want %q", err, tc.kind)
			}
			if tc.w == "" && e.Seq() != before {
				t.Error("a refused mutation wrote")
			}
		})
	}
}

// The end of the recorder may be the mutation: its pair is whole by then.
func TestTheRecorderIsClosedAfterItsPair(t *testing.T) {
	e := calltest.New(t, nil)
	w := work(e, calltest.Alpha, "")
	resp, err := e.CallWith(context.Background(), calltest.Owner(), runs, in{Project: calltest.Alpha.String()},
		call.Envelope{Record: string(w), Field: recordField, After: []call.Mutation{closing(t, w)}})
	if got := controlOf(t, resp, err)["after_success"]; err != nil || !got.Success {
		t.Fatalf("%+v %v", got, err)
	}
	events, _ := since(e, w, 1)
	pairOf(t, events, event.RoleRecorder)
	if _, last := events[len(events)-1].(event.SessionClosed); !last || len(events) != 3 {
		t.Errorf("%+v", events)
	}
}
