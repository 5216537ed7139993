package run_test

import (
	"context"
	"encoding/json"
	"regexp"
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

func exits(e *calltest.Env, code int) {
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &code,
			Stdout: wire.Stream{Text: "out\n", Bytes: 4}, Bound: &event.Binding{Tree: strings.Repeat("a", 64)}})
	}
}

func lastFinish(e *calltest.Env, id string) event.ToolCallFinished {
	var f event.ToolCallFinished
	for _, x := range e.Events(event.SessionID(id)) {
		if got, ok := x.(event.ToolCallFinished); ok {
			f = got
		}
	}
	return f
}

// An expectation classifies: all else of the answer and of the evidence is what it is without.
//
// Covers: EXE-29, EXE-30, EXE-32, EXE-33
func TestAnExpectationChangesOnlyTheClassification(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	volatile := regexp.MustCompile(`"(execution_id|session_event_id|duration_ms|expectation)":("[^"]*"|[0-9]+|\{[^}]*\}),?`)
	for _, spec := range []*call.Spec{&run.RunProcess, &run.RunScript, &run.RunShell} {
		for code := range 2 {
			exits(e, code)
			plain := ""
			for _, c := range []struct {
				extra    args
				declared string
				want     [2]string // by exit code
			}{
				{args{}, "", [2]string{event.ExpectationNone, event.UnexpectedFailure}},
				{args{"result_expectation": "success"}, "success", [2]string{event.ExpectationNone, event.UnexpectedFailure}},
				{args{"result_expectation": "failure"}, "failure", [2]string{event.UnexpectedSuccess, event.ExpectationMatched}},
				{args{"result_expectation": "observe"}, "observe", [2]string{event.ExpectationNone, event.ExpectationMatched}},
				{args{"accepted_exit_codes": []int{1}}, "", [2]string{event.ExpectationNone, event.ExpectationMatched}},
			} {
				a := args{"project": alpha, "session_id": id, "executable": "git", "script": "x", "language": "sh", "command": "x"}
				for k, v := range c.extra {
					a[k] = v
				}
				if _, codes := c.extra["accepted_exit_codes"]; codes && spec != &run.RunProcess {
					continue
				}
				resp, err := e.Call(spec, a)
				if err != nil {
					t.Fatal(err)
				}
				var out run.Output
				if err := json.Unmarshal(resp.Output, &out); err != nil {
					t.Fatal(err)
				}
				f := lastFinish(e, id)
				if out.Expectation.Result != c.want[code] || f.Expectation != c.want[code] || (out.Expectation.Declared == nil) != (c.declared == "") ||
					c.declared != "" && *out.Expectation.Declared != c.declared {
					t.Errorf("%s %v, exit %d: %+v, recorded %s", spec.Name, c.extra, code, out.Expectation, f.Expectation)
				}
				if resp.Success != (code == 0) || *out.ExitCode != code || *f.ExitCode != code || f.Effect.State != event.Completed ||
					(f.Status == event.StatusSucceeded) != (code == 0) || f.Validation != nil {
					t.Errorf("%s %v, exit %d: %v %+v", spec.Name, c.extra, code, resp.Success, f)
				}
				rest := volatile.ReplaceAllString(string(resp.Output), "") + resp.Error
				if plain == "" {
					plain = rest
				}
				if rest != plain {
					t.Errorf("%s %v:\n%s\n%s", spec.Name, c.extra, rest, plain)
				}
			}
		}
	}
}

// Refusals, denials and faults meet no expectation and stay what they are.
//
// Covers: EXE-33, EXE-34
func TestARefusalMeetsNoExpectation(t *testing.T) {
	e := calltest.New(t, nil)
	a := args{"project": alpha, "session_id": work(e, args{"session_mode": "read_only"}), "command": "x", "result_expectation": "failure"}
	if _, err := e.Call(&run.RunShell, a); fault.KindOf(err) != fault.SessionGuardDenied {
		t.Fatalf("%v", err)
	}
	if f := lastFinish(e, a["session_id"].(string)); f.Expectation != event.ExpectationMismatch || f.Effect.State != event.NotStarted {
		t.Errorf("denied: %+v", f)
	}
	id := work(e, nil)
	a["session_id"] = id
	for name, run_ := range map[string]func(context.Context, call.Execution) (call.Outcome, error){
		"lost": func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Unknown: true}, e.Fleet.Grant(ctx, x)
		},
		"not started": func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Result: &wire.Result{State: wire.JNever}}, e.Fleet.Grant(ctx, x)
		},
		"no such program": func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Result: &wire.Result{State: wire.JStartFailed, Fault: fault.New(fault.CommandSpawnFailed, "no")}}, e.Fleet.Grant(ctx, x)
		},
		"timed out": func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, TimedOut: true})
		},
		"cancelled": func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Cancelled: true})
		},
	} {
		e.Fleet.OnRun = run_
		_, _ = e.Call(&run.RunShell, a)
		if f := lastFinish(e, id); f.Expectation != event.ExpectationMismatch {
			t.Errorf("%s: %s", name, f.Expectation)
		}
	}
	before := e.Seq()
	_, err := e.Call(&run.RunProcess, args{"project": alpha, "session_id": id, "executable": "x", "accepted_exit_codes": []int{256}})
	if f := fault.As(err); f.Kind != fault.InvalidArguments || f.Field != "accepted_exit_codes" || e.Seq() != before {
		t.Errorf("%+v", f)
	}
}

// A command with a validating purpose is evidence, with an identity of its command that says
// nothing about it; other purposes leave none. Its pass resolves its failure and no other's.
//
// Covers: EXE-27, VAL-22, VAL-23
func TestCommandsThatValidate(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	shell := func(command, purpose string, code int) event.ToolCallFinished {
		t.Helper()
		exits(e, code)
		if _, err := e.Call(&run.RunShell, args{"project": alpha, "session_id": id, "command": command, "purpose": purpose, "cwd": "sub"}); err != nil {
			t.Fatal(err)
		}
		return lastFinish(e, id)
	}
	for _, purpose := range []string{"build", "format", "release", "diagnostic", "operation", "other"} {
		if f := shell("x", purpose, 1); f.Validation != nil || f.Expectation != event.UnexpectedFailure {
			t.Errorf("%s: %+v", purpose, f)
		}
	}
	a := shell("make CMDMARK", "test", 2)
	b := shell("make check", "validation", 1)
	if a.Validation == nil || *a.Validation.Passed || a.Validation.Parser != "none" || a.Validation.Kind != "run_shell" || a.Validation.Bound == nil ||
		a.Validation.TargetID == b.Validation.TargetID || a.Validation.ZeroTests {
		t.Fatalf("%+v", a.Validation)
	}
	read := func() view.ValidationSummary {
		return calltest.Must[view.ValidationSummary](e, &session.ReadValidation, args{"project": alpha, "session_id": id})
	}
	if s := read(); s.Unresolved.Total != 2 || s.Status != "failed" || s.Unresolved.Items[0].Kind != "unknown" {
		t.Errorf("%+v", s)
	}
	e.Reopen() // identities outlive the server
	again := shell("make CMDMARK", "test", 0)
	if again.Validation.TargetID != a.Validation.TargetID || again.Validation.Scope != a.Validation.Scope {
		t.Errorf("%+v, was %+v", again.Validation, a.Validation)
	}
	s := read()
	if s.Unresolved.Total != 1 || s.Unresolved.Items[0].TargetID != b.Validation.TargetID || s.Delta.ReasonCode != "test_identity_unavailable" || s.Resolved.Total != 1 {
		t.Errorf("%+v", s)
	}
	shown, _ := json.Marshal(s)
	for _, mark := range []string{"CMDMARK", "make"} {
		if strings.Contains(stored(t, e, id), mark) || strings.Contains(string(shown), mark) {
			t.Errorf("%s is in the log or in the summary", mark)
		}
	}
}
