package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// in is the input of the tools of this test.
type in struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Text      string `json:"text,omitempty"`
}

// tool is a Project tool that does what run says.
func tool(class call.Class, run func(context.Context, *call.Call) (call.Result, error)) *call.Spec {
	return &call.Spec{Name: "some_tool", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: class, In: in{}, Run: run}
}

var reads = tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) {
	return call.Result{Output: map[string]any{"n": json.Number("9007199254740993")}, Facts: call.Facts{Observed: []string{"a.go", "/etc/passwd", "../x", "a.go"}}}, nil
})

var runs = tool(call.Execute, func(ctx context.Context, c *call.Call) (call.Result, error) {
	o, err := c.Effect(ctx, wire.OpProcess, wire.ProcessIn{Executable: "true"}, call.EffectOptions{Timeout: time.Minute, Grace: time.Second})
	if err != nil {
		return call.Result{}, err
	}
	if o.Promoted {
		return call.Result{Facts: call.Facts{Promoted: true, Execution: c.Execution(), Effect: event.Effect{CommandStarted: true, State: event.Started}}}, nil
	}
	facts := call.FactsOf(*o.Result)
	return call.Result{Facts: facts, Failed: facts.FailureKind != "", Error: "it failed"}, nil
})

// work starts a Session on a Project.
func work(e *calltest.Env, p event.ProjectRef, mode string) event.SessionID {
	e.T.Helper()
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject,
		map[string]string{"project": p.String(), "instruction": "do it", "session_mode": mode}).SessionID
}

type additions struct {
	Recorded *bool         `json:"session_recorded"`
	EventID  event.EventID `json:"session_event_id"`
	Hint     string        `json:"session_hint"`
	N        json.Number   `json:"n"`
}

// Covers: EVT-07, EVT-14, EVT-19, EVT-21
func TestReadLeavesOnePairInOneCommit(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	out := calltest.Must[additions](e, reads, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	commits := e.Commits(id)
	last := commits[len(commits)-1]
	if len(commits) != 2 || len(last.Events) != 2 {
		t.Fatalf("%d commits, %d events in the last", len(commits), len(last.Events))
	}
	s, ok1 := last.Events[0].(event.ToolCallStarted)
	f, ok2 := last.Events[1].(event.ToolCallFinished)
	if !ok1 || !ok2 || s.Call != f.Call || s.Call == "" || s.Role != event.RoleBusiness || f.Role != event.RoleBusiness {
		t.Fatalf("no pair: %+v", last.Events)
	}
	if f.Status != event.StatusSucceeded || f.Transport != "mcp" || f.Expectation != "none" || f.DurationMS < 0 || f.Effect != (event.Effect{}) {
		t.Errorf("finish %+v", f)
	}
	if len(f.Observed) != 1 || f.Observed[0] != "a.go" {
		t.Errorf("observed paths %q", f.Observed)
	}
	if out.Recorded == nil || !*out.Recorded || out.EventID != event.TailEventID(last.Aggregate, last.Version, 1) {
		t.Errorf("additions %+v", out)
	}
	if out.N != "9007199254740993" {
		t.Errorf("the number arrived as %s", out.N)
	}
}

// Covers: AUTH-09, EXE-23
func TestWithoutASessionNothingIsInferred(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	before := e.Seq()
	for _, spec := range []*call.Spec{reads, runs} {
		out := calltest.Must[additions](e, spec, in{Project: calltest.Alpha.String()})
		if out.Recorded == nil || *out.Recorded || !strings.Contains(out.Hint, "session_id") {
			t.Errorf("additions %+v", out)
		}
	}
	if got := len(e.Commits(id)); got != 1 || e.Seq() != before {
		t.Errorf("the Session has %d commits", got)
	}
	if len(e.Fleet.Starts()) != 1 {
		t.Errorf("%d starts", len(e.Fleet.Starts()))
	}
}

// Covers: AUTH-07, AUTH-12, AUTH-18, EXE-24
func TestAdmissionRefusesBeforeAnythingIsWrittenOrStarted(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	closed := work(e, calltest.Alpha, "")
	calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": closed})
	alpha, beta := calltest.Alpha.String(), calltest.Beta.String()
	nobody := calltest.Owner()
	nobody.Actor = event.Actor{}
	starts := len(e.Fleet.Starts())
	for name, tc := range map[string]struct {
		p    call.Principal
		args in
		kind fault.Kind
	}{
		"scope":                {calltest.Owner(call.ScopeProjectRead), in{Project: alpha}, fault.InsufficientScope},
		"no identity":          {nobody, in{Project: alpha}, fault.AuthorityUnavailable},
		"unknown project":      {calltest.Owner(), in{Project: "agent:local:none-00000000"}, fault.UnknownProject},
		"malformed project":    {calltest.Owner(), in{Project: "alpha"}, fault.UnknownProject},
		"project ref":          {calltest.Owner(), in{Project: "~p9"}, fault.UnknownProjectRef},
		"malformed session":    {calltest.Owner(), in{Project: alpha, SessionID: "wc_sess_ABC"}, fault.UnknownSessionID},
		"unknown session":      {calltest.Owner(), in{Project: alpha, SessionID: string(event.NewSessionID())}, fault.UnknownSessionID},
		"session ref":          {calltest.Owner(), in{Project: alpha, SessionID: "~s9"}, fault.UnknownSessionRef},
		"foreign session":      {calltest.Someone("b"), in{Project: alpha, SessionID: string(id)}, fault.SessionAuthorityDenied},
		"of another project":   {calltest.Owner(), in{Project: beta, SessionID: string(id)}, fault.SessionProjectMismatch},
		"closed":               {calltest.Owner(), in{Project: alpha, SessionID: string(closed)}, fault.SessionClosed},
		"a window's own words": {calltest.Owner(), in{Project: alpha, SessionID: "the last one"}, fault.UnknownSessionID},
	} {
		t.Run(name, func(t *testing.T) {
			f := e.Refused(tc.p, runs, tc.args, tc.kind)
			if f.StateChanged || f.CommandStarted {
				t.Errorf("says that something happened: %+v", f)
			}
		})
	}
	e.Fleet.Disconnect(calltest.Alpha)
	e.Refused(calltest.Owner(), runs, in{Project: alpha, SessionID: string(id)}, fault.RunnerUnavailable)
	if got := len(e.Fleet.Starts()); got != starts {
		t.Errorf("%d executions were started", got-starts)
	}
}

func TestClosedSessionAnswersReadsWithoutAPair(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": id})
	before := e.Seq()
	calltest.Must[additions](e, reads, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	if e.Seq() != before {
		t.Error("a read of a Closed Session wrote")
	}
}

// A guard's denial is evidence: one commit with start and finish (ruling 2). Nothing is
// offered to the Runner.
//
// Covers: SES-52
func TestGuardDenialIsRecorded(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "read_only")
	e.Fleet.OnRun = func(context.Context, call.Execution) (call.Outcome, error) {
		t.Error("a denied command was offered")
		return call.Outcome{}, fault.New(fault.Internal, "offered")
	}
	asks := len(e.Fleet.Asks())
	for spec, guard := range map[*call.Spec]string{
		runs: "deny_shell_tools",
		tool(call.Write, func(context.Context, *call.Call) (call.Result, error) {
			t.Error("a denied tool ran")
			return call.Result{}, nil
		}): "deny_write_tools",
	} {
		_, err := e.Call(spec, in{Project: calltest.Alpha.String(), SessionID: string(id)})
		if f := fault.As(err); f == nil || f.Kind != fault.SessionGuardDenied || f.Reason != guard || f.StateChanged || f.CommandStarted {
			t.Fatalf("%v", err)
		}
		commits := e.Commits(id)
		last := commits[len(commits)-1]
		f, ok := last.Events[len(last.Events)-1].(event.ToolCallFinished)
		if !ok || len(last.Events) != 2 || f.Status != event.StatusFailed || f.Effect != (event.Effect{State: event.NotStarted}) ||
			f.ErrorKind != "session_guard_denied" {
			t.Errorf("denial left %+v", last.Events)
		}
	}
	if n := len(e.Fleet.Asks()); n != asks {
		t.Errorf("the Runner was asked %d times", n-asks)
	}
}

// Covers: EVT-20, EVT-21
func TestFailureIsEvidenceWithoutOutput(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	three := 3
	for name, tc := range map[string]struct {
		p       wire.ProcessOutcome
		failure string
		state   event.ExecutionState
	}{
		"exit status": {wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &three}, "exit_status", event.Completed},
		"timed out":   {wire.ProcessOutcome{Started: true, TimedOut: true}, "timed_out", event.TimedOut},
		"cancelled":   {wire.ProcessOutcome{Started: true, Cancelled: true}, "cancelled", event.Cancelled},
		"signal":      {wire.ProcessOutcome{Started: true, Completed: true, Signal: "KILL"}, "signal", event.Completed},
	} {
		tc.p.Stderr.Text = "MARKER of the output"
		e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) { return e.Fleet.End(ctx, x, tc.p) }
		resp, err := e.Call(runs, in{Project: calltest.Alpha.String(), SessionID: string(id)})
		if err != nil || resp.Success {
			t.Fatalf("%s: %v %v", name, resp.Success, err)
		}
		events := e.Events(id)
		f := events[len(events)-1].(event.ToolCallFinished)
		if f.FailureKind != tc.failure || f.Effect.State != tc.state || !f.Effect.CommandStarted || f.Status != event.StatusFailed {
			t.Errorf("%s: %+v", name, f)
		}
		if len(f.ErrorSummary) > call.MaxErrorSummary || f.ErrorSummary != "it failed" {
			t.Errorf("%s: summary %q", name, f.ErrorSummary)
		}
	}
	for _, c := range e.Commits(id) {
		if body, _ := c.Encode(); strings.Contains(string(body), "MARKER") {
			t.Error("output is in the log")
		}
	}
}

// Covers: EXE-39
func TestUnknownOutcomeIsSaidAndNotReplayed(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		return call.Outcome{Unknown: true}, nil
	}
	_, err := e.Call(runs, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	f := fault.As(err)
	if f.Kind != fault.OutcomeUnknown || f.ExecutionState != "outcome_unknown" || !f.CommandStarted || f.Recovery != fault.None {
		t.Fatalf("%+v", f)
	}
	if n := len(e.Fleet.Starts()); n != 1 {
		t.Errorf("%d starts", n)
	}
	if core, _ := e.Store.Core(id); len(core.Unknown) != 1 || len(core.Open) != 0 {
		t.Errorf("core has %d unknown, %d open", len(core.Unknown), len(core.Open))
	}
}

func TestStartIsInTheLogBeforeTheGrant(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		events := e.Events(id)
		s, ok := events[len(events)-1].(event.ToolCallStarted)
		if !ok || s.Execution == nil || s.Execution.ID != x.Offer.ID || s.Execution.Digest != x.Offer.Digest || s.Execution.Generation != "g1" {
			t.Errorf("at the grant the log ends with %+v", events[len(events)-1])
		}
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)})
	}
	if _, err := e.Call(runs, in{Project: calltest.Alpha.String(), SessionID: string(id)}); err != nil {
		t.Fatal(err)
	}
}

func TestASessionClosedMeanwhileStartsNothing(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	spec := *runs
	spec.Run = func(ctx context.Context, c *call.Call) (call.Result, error) {
		calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": id})
		return runs.Run(ctx, c)
	}
	_, err := e.Call(&spec, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	if fault.KindOf(err) != fault.SessionClosed || len(e.Fleet.Starts()) != 0 {
		t.Errorf("%v, %d starts", err, len(e.Fleet.Starts()))
	}
}

func TestAPanicIsAnInternalFaultWithItsEvidence(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	spec := tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) { panic("secret /srv/path") })
	_, err := e.Call(spec, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	if f := fault.As(err); f.Kind != fault.Internal || strings.Contains(f.Message, "secret") {
		t.Errorf("%v", err)
	}
	if core, _ := e.Store.Core(id); len(core.Open) != 0 || core.Observed != 3 {
		t.Errorf("observed %d, open %d", core.Observed, len(core.Open))
	}
}

func TestTooManyCallsOfOnePrincipal(t *testing.T) {
	e := calltest.New(t, nil)
	inside, leave := make(chan struct{}, call.MaxCallsPerPrincipal), make(chan struct{})
	spec := tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) {
		inside <- struct{}{}
		<-leave
		return call.Result{}, nil
	})
	done := make(chan error, call.MaxCallsPerPrincipal)
	for range call.MaxCallsPerPrincipal {
		go func() {
			_, err := e.Call(spec, in{Project: calltest.Alpha.String()})
			done <- err
		}()
	}
	for range call.MaxCallsPerPrincipal {
		<-inside
	}
	e.Refused(calltest.Owner(), reads, in{Project: calltest.Alpha.String()}, fault.TooManyCalls)
	if _, err := e.CallAs(context.Background(), calltest.Someone("b"), reads, in{Project: calltest.Alpha.String()}); err != nil {
		t.Errorf("another principal: %v", err)
	}
	close(leave)
	for range call.MaxCallsPerPrincipal {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAForeignErrorIsInternal(t *testing.T) {
	e := calltest.New(t, nil)
	spec := tool(call.Observe, func(context.Context, *call.Call) (call.Result, error) {
		return call.Result{}, errors.New("open /srv/secret")
	})
	_, err := e.Call(spec, in{Project: calltest.Alpha.String()})
	if f := fault.As(err); f.Kind != fault.Internal || strings.Contains(f.Message, "/srv") {
		t.Errorf("%v", err)
	}
}

// What changed between admission and the start counts: a Session narrowed meanwhile starts
// nothing, and says so as a guard does.
func TestASessionNarrowedMeanwhileStartsNothing(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	spec := *runs
	spec.Run = func(ctx context.Context, c *call.Call) (call.Result, error) {
		calltest.Must[session.WorkOut](e, &session.WorkOnProject, map[string]any{"session_id": id, "instruction": "look only", "session_mode": "read_only"})
		return runs.Run(ctx, c)
	}
	_, err := e.Call(&spec, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	if f := fault.As(err); f == nil || f.Kind != fault.SessionGuardDenied || f.ExecutionState != "not_started" || len(e.Fleet.Starts()) != 0 {
		t.Errorf("%v, %d starts", err, len(e.Fleet.Starts()))
	}
}

func TestAReadOfASessionClosedMeanwhileLeavesNoPair(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	spec := *reads
	spec.Run = func(ctx context.Context, c *call.Call) (call.Result, error) {
		calltest.Must[session.CloseOut](e, &session.CloseSession, map[string]any{"session_id": id})
		return reads.Run(ctx, c)
	}
	out := calltest.Must[additions](e, &spec, in{Project: calltest.Alpha.String(), SessionID: string(id)})
	if out.Recorded == nil || *out.Recorded {
		t.Errorf("%+v", out)
	}
	events := e.Events(id)
	if _, ok := events[len(events)-1].(event.SessionClosed); !ok {
		t.Errorf("after the close came %+v", events[len(events)-1])
	}
}

// Calls that wait take no slot from calls that work.
func TestWaitersDoNotStarveWork(t *testing.T) {
	e := calltest.New(t, nil)
	inside, leave := make(chan struct{}, call.MaxWaitersPerPrincipal), make(chan struct{})
	spec := tool(call.Observe, func(_ context.Context, c *call.Call) (call.Result, error) {
		return call.Result{}, c.Waiting(func() error {
			inside <- struct{}{}
			<-leave
			return nil
		})
	})
	done := make(chan error, call.MaxWaitersPerPrincipal)
	for range call.MaxWaitersPerPrincipal {
		go func() {
			_, err := e.Call(spec, in{Project: calltest.Alpha.String()})
			done <- err
		}()
		<-inside // one after the other: until it waits, each needs a slot for work
	}
	for range 2 * call.MaxCallsPerPrincipal {
		calltest.Must[additions](e, reads, in{Project: calltest.Alpha.String()})
	}
	e.Refused(calltest.Owner(), spec, in{Project: calltest.Alpha.String()}, fault.TooManyCalls)
	close(leave)
	for range call.MaxWaitersPerPrincipal {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	calltest.Must[additions](e, reads, in{Project: calltest.Alpha.String()})
}

// Arguments that a tool refuses before any effect leave no pair, like the schema's refusals.
func TestRefusedArgumentsLeaveNoPair(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, calltest.Alpha, "")
	for _, kind := range []fault.Kind{fault.InvalidArguments, fault.InvalidPath} {
		spec := tool(call.Write, func(context.Context, *call.Call) (call.Result, error) {
			return call.Result{}, fault.New(kind, "no").WithField("path")
		})
		e.Refused(calltest.Owner(), spec, in{Project: calltest.Alpha.String(), SessionID: string(id)}, kind)
	}
}
