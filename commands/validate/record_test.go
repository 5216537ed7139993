package validate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/commands/validate"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

func work(e *calltest.Env, extra args) event.SessionID {
	a := args{"project": alpha, "instruction": "do it"}
	for k, v := range extra {
		a[k] = v
	}
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, a).SessionID
}

func failing(e *calltest.Env) func(context.Context, call.Execution) (call.Outcome, error) {
	one := 1
	return func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &one,
			Stdout: wire.Stream{Text: `{"Action":"output","Output":"OUTMARK\n"}` + "\n", Bytes: 40},
			Tests: &wire.TestReport{Parser: "go-json", Version: 1, Detected: true, Run: 2, Passed: 1, Failed: 1,
				FailedTests: []wire.FailedTest{{Name: "NAMEMARK", Package: "p", Message: "MESSAGEMARK"}}}})
	}
}

// A failing test is a result, recorded with counts, identities and the name of what failed, and
// without a word that it said.
//
// Covers: EXE-27, EVT-17, VAL-23, VAL-24, VAL-25
func TestFailingTestIsAResult(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	e.Fleet.OnRun = failing(e)
	resp, err := e.Call(&validate.GoTest, args{"project": alpha, "session_id": id, "packages": []string{"./x"}, "purpose": "diagnostic"})
	if err != nil {
		t.Fatal(err)
	}
	var out validate.Output
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		t.Fatal(err)
	}
	if resp.Success || resp.Error != "1 of 2 tests failed" || *out.Passed || out.TestsFailed != 1 || out.Failed[0].Name != "NAMEMARK" || out.Stdout != "OUTMARK\n" || out.EffectiveTimeout != 1800 {
		t.Errorf("%v %q %+v", resp.Success, resp.Error, out)
	}
	var started event.ToolCallStarted
	var finished event.ToolCallFinished
	for _, ev := range e.Events(id) {
		switch ev := ev.(type) {
		case event.ToolCallStarted:
			started = ev
		case event.ToolCallFinished:
			finished = ev
		}
	}
	if in := started.Input; in.Executable != "go" || in.Purpose != "diagnostic" || in.TimeoutSecs != 1800 || len(in.Packages) != 1 {
		t.Errorf("%+v", in)
	}
	v := finished.Validation
	if finished.Status != event.StatusFailed || finished.FailureKind != "test_failure" || v == nil || *v.Passed || v.TestsFailed != 1 ||
		v.Kind != "go_test" || v.TargetID != out.Validation.Target || v.Scope != out.Validation.Scope || v.ParserVer != 1 {
		t.Errorf("%+v %+v", finished, v)
	}
	if want := []event.FailedCase{{Kind: event.FailureTest, Name: "p.NAMEMARK"}}; !slices.Equal(v.Failures, want) {
		t.Errorf("%+v", v.Failures)
	}
	for _, c := range e.Commits(id) {
		body, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range []string{"OUTMARK", "MESSAGEMARK"} {
			if strings.Contains(string(body), mark) {
				t.Errorf("%s is in the log", mark)
			}
		}
	}
}

// A run that became a Job proves nothing until its end, which is judged in the same way.
func TestJobIsJudgedAtItsEnd(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	late := make(chan error, 1)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		go func() {
			zero := 0
			late <- x.Late(context.Background(), wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Process: &wire.ProcessOutcome{
				Started: true, Completed: true, ExitCode: &zero, Tests: &wire.TestReport{Detected: true, Run: 3, Passed: 3}}})
		}()
		return call.Outcome{Promoted: true}, nil
	}
	out := calltest.Must[validate.Output](e, &validate.CargoTest, args{"project": alpha, "session_id": id, "min_tests": 4})
	if out.Passed != nil || !out.Promoted || out.JobID == nil || out.Validation.Target == "" || out.ZeroTests {
		t.Errorf("%+v", out)
	}
	select {
	case err := <-late:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no end")
	}
	var end *event.ExecutionFinished
	for _, ev := range e.Events(id) {
		if f, ok := ev.(event.ExecutionFinished); ok {
			end = &f
		}
	}
	if end == nil || end.FailureKind != "insufficient_tests" || end.Validation == nil || end.Validation.Passed != nil || end.Validation.TestsRun != 3 ||
		end.Validation.TargetID != out.Validation.Target {
		t.Errorf("%+v", end)
	}
}

// Covers: EXE-14, EXE-23, EXE-24
func TestSessionDefaultsDoNotReachTests(t *testing.T) {
	e := calltest.New(t, nil)
	var got wire.ProcessIn
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := json.Unmarshal(x.Offer.Body, &got); err != nil {
			t.Error(err)
		}
		return e.Fleet.Succeed(ctx, x)
	}
	plain := work(e, args{"execution_context": args{"default_cwd": "elsewhere"}})
	if _, err := e.Call(&validate.GoTest, args{"project": alpha, "session_id": plain}); err != nil || got.Cwd != "" {
		t.Errorf("%v, cwd %q", err, got.Cwd)
	}
	if _, err := e.Call(&validate.GoTest, args{"project": alpha}); err != nil || strings.Join(got.Args, " ") != "test -json ./..." {
		t.Errorf("without a Session: %v %q", err, got.Args)
	}
	started := len(e.Fleet.Starts())
	e.Refused(calltest.Owner(), &validate.GoTest, args{"project": calltest.Beta.String(), "session_id": plain}, fault.SessionProjectMismatch)
	e.Refused(calltest.Owner(call.ScopeJobRun), &validate.CargoTest, args{"project": alpha}, fault.InsufficientScope)
	if len(e.Fleet.Starts()) != started {
		t.Error("a refused call started something")
	}
	// No tool of this server names a resource yet; a log may.
	remote := work(e, nil)
	writer := aggregate.NewWriter(e.Log, time.Now)
	if _, err := writer.Do(t.Context(), aggregate.Command{Aggregate: event.SessionAggregate(remote), Actor: calltest.Owner().Actor},
		func(time.Time) ([]event.Event, error) {
			return []event.Event{event.ContextUpdated{Context: event.ExecutionContext{Resource: "gpu-box"}}}, nil
		}); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []*call.Spec{&validate.GoTest, &validate.CargoTest} {
		_, err := e.Call(spec, args{"project": alpha, "session_id": remote})
		if f := fault.As(err); f == nil || f.Reason != "unsupported_resource" || f.ExecutionState != string(event.NotStarted) || len(e.Fleet.Starts()) != started {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
}

// What the handoff offers after a failure is the same validation: followed, its pass resolves
// the failure. Where a filter narrowed the run, which is never stored, it says so.
func TestAFailureIsRepeatedWithItsArguments(t *testing.T) {
	for name, a := range map[string]args{
		"plain":    {},
		"package":  {"package": "core", "cwd": "./crates/"},
		"features": {"features": []string{"b", "a"}, "all_targets": true, "no_run": true, "purpose": "test"},
		"filter":   {"filter": "FILTERMARK"},
	} {
		t.Run(name, func(t *testing.T) {
			e := calltest.New(t, nil)
			id := work(e, nil)
			e.Fleet.OnRun = failing(e)
			a["project"], a["session_id"] = alpha, id
			if _, err := e.Call(&validate.CargoTest, a); err != nil {
				t.Fatal(err)
			}
			brief := func() view.Brief {
				return calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id, "include_workspace": false}).Brief
			}
			i := slices.IndexFunc(brief().NextActions.Items, func(n view.Action) bool { return n.Tool == "cargo_test" })
			if i < 0 {
				t.Fatalf("%+v", brief().NextActions)
			}
			next := brief().NextActions.Items[i]
			if partial := strings.Contains(next.Why, "not stored"); partial != (name == "filter") {
				t.Errorf("%q", next.Why)
			}
			if name == "filter" {
				next.Arguments["filter"] = "FILTERMARK"
			}
			next.Arguments["session_id"] = id
			e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
				return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int),
					Tests: &wire.TestReport{Parser: "cargo", Version: 1, Detected: true, Run: 2, Passed: 2}})
			}
			if _, err := e.Call(&validate.CargoTest, next.Arguments); err != nil {
				t.Fatal(err)
			}
			if got := brief().Validation; len(got.Failures.Items) != 0 {
				t.Errorf("after %v: %+v", next.Arguments, got)
			}
		})
	}
}
