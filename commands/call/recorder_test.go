package call_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/run"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

const recordField = "_wc.record"

// recorded makes a call of the owner that names a recorder.
func recorded(e *calltest.Env, spec *call.Spec, args any, w event.SessionID) (call.Response, error) {
	e.T.Helper()
	return e.CallWith(context.Background(), calltest.Owner(), spec, args, call.Envelope{Record: string(w), Field: recordField})
}

func mustRecord(e *calltest.Env, spec *call.Spec, args any, w event.SessionID) map[string]any {
	e.T.Helper()
	resp, err := recorded(e, spec, args, w)
	if err != nil {
		e.T.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		e.T.Fatal(err)
	}
	return out
}

// pairOf gives the start and the end of the role in events, each once.
func pairOf(t *testing.T, events []event.Event, role event.Role) (s event.ToolCallStarted, f event.ToolCallFinished) {
	t.Helper()
	starts, ends := 0, 0
	for _, e := range events {
		switch e := e.(type) {
		case event.ToolCallStarted:
			if e.Role == role {
				s, starts = e, starts+1
			}
		case event.ToolCallFinished:
			if e.Role == role {
				f, ends = e, ends+1
			}
		}
	}
	if starts != 1 || ends != 1 || s.Call != f.Call || s.Call == "" {
		t.Fatalf("%d starts and %d ends of %s: %+v", starts, ends, role, events)
	}
	return s, f
}

// since is what came into a Session after its first n commits.
func since(e *calltest.Env, id event.SessionID, n int) (out []event.Event, commits []event.Commit) {
	commits = e.Commits(id)[n:]
	for _, c := range commits {
		out = append(out, c.Events...)
	}
	return out, commits
}

func summary(e *calltest.Env, id event.SessionID) view.Summary {
	e.T.Helper()
	return calltest.Must[view.Summary](e, &session.ReadSummary, map[string]any{"session_id": id})
}

// A recorder gets one pair of any call, business Session or not; the next call without one
// leaves nothing.
//
// Covers: EVT-27, REC-07, REC-18, REC-19
func TestARecorderKeepsAReadAsOnePair(t *testing.T) {
	e := calltest.New(t, nil)
	w, c := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "")
	out := mustRecord(e, &session.ReadSummary, map[string]any{"session_id": c}, w)
	events, commits := since(e, w, 1)
	s, f := pairOf(t, events, event.RoleRecorder)
	if len(commits) != 1 || len(events) != 2 || s.Tool != "read_session_summary" || f.Status != event.StatusSucceeded {
		t.Errorf("%d commits: %+v", len(commits), events)
	}
	if len(e.Commits(c)) != 1 || out["session_id"] != string(c) {
		t.Errorf("the Session read has %d commits and is told as %v", len(e.Commits(c)), out["session_id"])
	}
	if out["session_recorded"] != true || out["session_event_id"] != string(event.TailEventID(commits[0].Aggregate, commits[0].Version, 1)) {
		t.Errorf("%v", out)
	}
	before := e.Seq()
	again := calltest.Must[map[string]any](e, &session.ReadSummary, map[string]any{"session_id": c})
	if e.Seq() != before || again["session_recorded"] != nil {
		t.Errorf("a call without a recorder wrote: %v", again["session_recorded"])
	}
	e.Refused(calltest.Owner(), reads, in{Project: "agent:local:none-00000000"}, fault.UnknownProject)
	if _, err := recorded(e, reads, in{Project: "agent:local:none-00000000"}, w); fault.KindOf(err) != fault.UnknownProject || e.Seq() != before {
		t.Errorf("a refusal with a recorder: %v, %d commits", err, e.Seq()-before)
	}
}

// Both pairs in one Session: one invocation, two call ids, one request in every count; the
// events stay as they are.
//
// Covers: EVT-08, EVT-09, EVT-10
func TestBothPairsInOneSessionCountOnce(t *testing.T) {
	e := calltest.New(t, nil)
	w := work(e, calltest.Alpha, "")
	mustRecord(e, reads, in{Project: calltest.Alpha.String(), SessionID: string(w)}, w)
	mustRecord(e, runs, in{Project: calltest.Alpha.String(), SessionID: string(w)}, w)
	events, commits := since(e, w, 1)
	if len(commits) != 3 || len(events) != 8 {
		t.Fatalf("%d commits, %d events", len(commits), len(events))
	}
	for _, part := range [][]event.Event{events[:4], events[4:]} {
		rs, rf := pairOf(t, part, event.RoleRecorder)
		bs, bf := pairOf(t, part, event.RoleBusiness)
		if rs.Call == bs.Call || rf.Execution != bf.Execution || (rs.Execution == nil) != (bs.Execution == nil) {
			t.Errorf("%+v %+v", rs, bs)
		}
	}
	if commits[0].Invocation == "" || commits[1].Invocation != commits[2].Invocation || commits[0].Invocation == commits[1].Invocation {
		t.Errorf("invocations %s %s %s", commits[0].Invocation, commits[1].Invocation, commits[2].Invocation)
	}
	s := summary(e, w)
	if s.Counts.ToolCalls != 2 || s.EventsTotal != 9 || len(s.Events) != 9 || s.EventsObserved != 9 {
		t.Errorf("%d calls of %d events", s.Counts.ToolCalls, s.EventsTotal)
	}
	if s.Events[1].Role != event.RoleRecorder || s.Events[1].Invocation != s.Events[2].Invocation || s.Events[1].Call == s.Events[2].Call {
		t.Errorf("%+v %+v", s.Events[1], s.Events[2])
	}
}

// Covers: EVT-11, REC-06
func TestTwoSessionsKeepTheirOwnEvidence(t *testing.T) {
	e := calltest.New(t, nil)
	w, c := work(e, calltest.Alpha, ""), work(e, calltest.Alpha, "")
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		for id, role := range map[event.SessionID]event.Role{w: event.RoleRecorder, c: event.RoleBusiness} {
			events := e.Events(id)
			s, ok := events[len(events)-1].(event.ToolCallStarted)
			if !ok || s.Role != role || s.Execution == nil || s.Execution.ID != x.Offer.ID {
				t.Errorf("at the grant %s ends with %+v", role, events[len(events)-1])
			}
		}
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)})
	}
	out := mustRecord(e, runs, in{Project: calltest.Alpha.String(), SessionID: string(c)}, w)
	inW, commitsW := since(e, w, 1)
	inC, commitsC := since(e, c, 1)
	_, fw := pairOf(t, inW, event.RoleRecorder)
	_, fc := pairOf(t, inC, event.RoleBusiness)
	if len(inW) != 2 || len(inC) != 2 || fw.Call == fc.Call || fw.Execution != fc.Execution || commitsW[0].Invocation != commitsC[0].Invocation {
		t.Errorf("%+v\n%+v", inW, inC)
	}
	if out["session_event_id"] != string(event.TailEventID(commitsC[1].Aggregate, commitsC[1].Version, 0)) {
		t.Errorf("the answer names %v", out["session_event_id"])
	}
	for _, id := range []event.SessionID{w, c} {
		if n := summary(e, id).Counts.ToolCalls; n != 1 {
			t.Errorf("%s counts %d calls", id, n)
		}
	}
}

// A Job that is recorded twice gets its end in each Session, once.
//
// Covers: EVT-10
func TestAJobEndsOnceInEachSession(t *testing.T) {
	for _, same := range []bool{true, false} {
		e := calltest.New(t, nil)
		w := work(e, calltest.Alpha, "")
		c := w
		if !same {
			c = work(e, calltest.Alpha, "")
		}
		late := make(chan func(context.Context, wire.Result) error, 1)
		e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			late <- x.Late
			return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
		}
		mustRecord(e, runs, in{Project: calltest.Alpha.String(), SessionID: string(c)}, w)
		for _, id := range []event.SessionID{w, c} {
			core, _ := e.Store.Core(id)
			if len(core.Jobs) != 1 || len(core.Open) != 0 {
				t.Fatalf("%d Jobs, %d open calls", len(core.Jobs), len(core.Open))
			}
			if _, job := only(core.Jobs); same && job.Call != firstBusiness(e.Events(id)) {
				t.Error("the Job is that of the recorder's pair")
			}
		}
		end := <-late
		for range 2 { // the Runner repeats what was not acknowledged
			if err := end(context.Background(), wire.Result{State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)}}); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []event.SessionID{w, c} {
			ends := 0
			for _, ev := range e.Events(id) {
				if _, is := ev.(event.ExecutionFinished); is {
					ends++
				}
			}
			if core, _ := e.Store.Core(id); ends != 1 || len(core.Jobs) != 0 {
				t.Errorf("%d ends, %d Jobs", ends, len(core.Jobs))
			}
		}
	}
}

func only[K comparable, V any](m map[K]V) (k K, v V) {
	for k, v = range m {
	}
	return k, v
}

func firstBusiness(events []event.Event) event.CallID {
	for _, e := range events {
		if s, ok := e.(event.ToolCallStarted); ok && s.Role == event.RoleBusiness {
			return s.Call
		}
	}
	return ""
}

// scopes is one Session of each kind that a call may name.
type scopes struct{ alpha, beta, none, closed, foreign, unknown event.SessionID }

func everyScope(e *calltest.Env) scopes {
	e.T.Helper()
	start := func(p call.Principal, args any) event.SessionID {
		resp, err := e.CallAs(context.Background(), p, &session.StartSession, args)
		if err != nil {
			e.T.Fatal(err)
		}
		var out struct {
			ID event.SessionID `json:"session_id"`
		}
		if err := json.Unmarshal(resp.Output, &out); err != nil {
			e.T.Fatal(err)
		}
		return out.ID
	}
	s := scopes{alpha: work(e, calltest.Alpha, ""), beta: work(e, calltest.Beta, ""), none: start(calltest.Owner(), `{}`),
		closed: work(e, calltest.Alpha, ""), unknown: event.NewSessionID(),
		foreign: start(calltest.Someone("b"), map[string]any{"project": calltest.Alpha.String()})}
	calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": s.closed})
	return s
}

// The recorder and what the call works on are authorised each on its own: the recorder first,
// before anything is looked up, written or run.
//
// Covers: REC-03, REC-06, REC-09, REC-10, REC-15
func TestRecorderAndTargetAreAuthorisedEachOnItsOwn(t *testing.T) {
	e := calltest.New(t, nil)
	s := everyScope(e)
	alpha, beta := calltest.Alpha.String(), calltest.Beta.String()
	const ok = fault.Kind("")
	for name, tc := range map[string]struct {
		spec *call.Spec
		w    event.SessionID
		args any
		kind fault.Kind
		of   string // the field at fault
	}{
		"same project":                           {runs, s.alpha, in{Project: alpha}, ok, ""},
		"no project beside a project":            {runs, s.none, in{Project: alpha}, ok, ""},
		"a runtime tool":                         {runtimeTool, s.alpha, `{}`, ok, ""},
		"closed":                                 {runs, s.closed, in{Project: alpha}, fault.SessionClosed, recordField},
		"closed, for a read":                     {reads, s.closed, in{Project: alpha}, fault.SessionClosed, recordField},
		"foreign":                                {runs, s.foreign, in{Project: alpha}, fault.SessionAuthorityDenied, recordField},
		"unknown":                                {runs, s.unknown, in{Project: alpha}, fault.UnknownSessionID, recordField},
		"unknown ref":                            {runs, "~s99", in{Project: alpha}, fault.UnknownSessionRef, recordField},
		"malformed":                              {runs, "the last one", in{Project: alpha}, fault.UnknownSessionID, recordField},
		"of another project":                     {runs, s.beta, in{Project: alpha}, fault.SessionProjectMismatch, recordField},
		"of another project than a read":         {reads, s.alpha, in{Project: beta}, fault.SessionProjectMismatch, recordField},
		"foreign, and the project unknown":       {runs, s.foreign, in{Project: "agent:local:none-00000000"}, fault.SessionAuthorityDenied, recordField},
		"foreign, and the target too":            {runs, s.foreign, in{Project: alpha, SessionID: string(s.foreign)}, fault.SessionAuthorityDenied, recordField},
		"allowed, and the target foreign":        {runs, s.alpha, in{Project: alpha, SessionID: string(s.foreign)}, fault.SessionAuthorityDenied, "session_id"},
		"allowed, and the target closed":         {runs, s.alpha, in{Project: alpha, SessionID: string(s.closed)}, fault.SessionClosed, ""},
		"foreign for a read of an allowed":       {&session.ReadSummary, s.foreign, map[string]any{"session_id": s.alpha}, fault.SessionAuthorityDenied, recordField},
		"closed for a read of it":                {&session.ReadSummary, s.closed, map[string]any{"session_id": s.closed}, fault.SessionClosed, recordField},
		"read of a closed":                       {&session.ReadSummary, s.alpha, map[string]any{"session_id": s.closed}, ok, ""},
		"between Sessions, both of the Project":  {&session.ReadSummary, s.alpha, map[string]any{"session_id": s.alpha}, ok, ""},
		"between Sessions, two Projects":         {&session.ReadSummary, s.alpha, map[string]any{"session_id": s.beta}, fault.SessionProjectMismatch, recordField},
		"between Sessions, recorder without one": {&session.ReadSummary, s.none, map[string]any{"session_id": s.alpha}, fault.SessionProjectMismatch, recordField},
		"between Sessions, target without one":   {&session.ReadSummary, s.alpha, map[string]any{"session_id": s.none}, fault.SessionProjectMismatch, recordField},
		"between Sessions, neither has one":      {&session.ReadSummary, s.none, map[string]any{"session_id": s.none}, ok, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before, starts, asks := e.Seq(), len(e.Fleet.Starts()), len(e.Fleet.Asks())
			_, err := recorded(e, tc.spec, tc.args, tc.w)
			if fault.KindOf(err) != tc.kind {
				t.Fatalf("%v, want %q", err, tc.kind)
			}
			if tc.kind == ok {
				if e.Seq() == before {
					t.Error("nothing was recorded")
				}
				return
			}
			if f := fault.As(err); f.Field != tc.of || f.StateChanged || f.CommandStarted {
				t.Errorf("%+v", f)
			}
			if e.Seq() != before || len(e.Fleet.Starts()) != starts || len(e.Fleet.Asks()) != asks {
				t.Error("something was written, asked or started")
			}
		})
	}
}

var runtimeTool = &call.Spec{Name: "get_runtime_status", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime,
	Run: func(context.Context, *call.Call) (call.Result, error) { return call.Result{}, nil }}

// A recorder neither narrows nor feeds the call: its guards, its default directory and its
// Project stay its own.
//
// Covers: REC-08, REC-11
func TestARecorderGivesTheCallNothing(t *testing.T) {
	e := calltest.New(t, nil)
	w := work(e, calltest.Alpha, "read_only")
	calltest.Must[session.UpdateContextOut](e, &session.UpdateContext, map[string]any{"project": calltest.Alpha.String(), "session_id": w,
		"execution_context": map[string]string{"default_cwd": "pkg"}})
	var got wire.ProcessIn
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := json.Unmarshal(x.Offer.Body, &got); err != nil {
			t.Error(err)
		}
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)})
	}
	args := map[string]any{"project": calltest.Alpha.String(), "executable": "true"}
	mustRecord(e, &run.RunProcess, args, w)
	if len(e.Fleet.Starts()) != 1 || got.Cwd != "" {
		t.Errorf("%d starts, in %q", len(e.Fleet.Starts()), got.Cwd)
	}
	args["session_id"] = w
	if _, err := recorded(e, &run.RunProcess, args, w); fault.KindOf(err) != fault.SessionGuardDenied {
		t.Errorf("as the target it has guards: %v", err)
	}
	if _, err := recorded(e, &run.RunProcess, map[string]any{"executable": "true"}, w); fault.KindOf(err) == "" {
		t.Error("the recorder's Project was taken for the call's")
	}
}

// Covers: REC-02
func TestARecorderRefIsItsCanonicalId(t *testing.T) {
	e := calltest.New(t, nil)
	out := calltest.Must[session.WorkOut](e, &session.WorkOnProject, map[string]string{"project": calltest.Alpha.String(), "instruction": "x"})
	mustRecord(e, reads, in{Project: calltest.Alpha.String()}, event.SessionID(out.SessionRef))
	events, commits := since(e, out.SessionID, 1)
	pairOf(t, events, event.RoleRecorder)
	for _, c := range commits {
		if body, _ := c.Encode(); strings.Contains(string(body), "~s") {
			t.Errorf("a ref is stored: %s", body)
		}
	}
	_, err := e.CallWith(context.Background(), calltest.Someone("b"), reads, in{Project: calltest.Alpha.String()},
		call.Envelope{Record: out.SessionRef, Field: recordField})
	if fault.KindOf(err) != fault.UnknownSessionRef {
		t.Errorf("somebody else's ref: %v", err)
	}
}
