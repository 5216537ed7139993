package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// offered makes a run and gives what its offer said of the key.
func offered(t *testing.T, e *calltest.Env, p call.Principal, spec *call.Spec, a args) (key, payload string) {
	t.Helper()
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		key, payload = x.Offer.Key, x.Offer.Payload
		return e.Fleet.Succeed(ctx, x)
	}
	if _, err := e.CallAs(t.Context(), p, spec, a); err != nil {
		t.Fatal(err)
	}
	return key, payload
}

// A key is of one principal and one Project, and stands for what would run: not for how long the
// answer waits for it, nor for the Session that it is noted in.
func TestWhatAKeyStandsFor(t *testing.T) {
	e := calltest.New(t, nil)
	base := func(extra args) args {
		a := args{"project": alpha, "executable": "true", "idempotency_key": "KEYMARK"}
		for k, v := range extra {
			a[k] = v
		}
		return a
	}
	key, payload := offered(t, e, calltest.Owner(), &run.RunProcess, base(nil))
	if len(key) != 32 || len(payload) != 32 || key == payload {
		t.Fatalf("%q %q", key, payload)
	}
	for name, c := range map[string]struct {
		who               call.Principal
		a                 args
		sameKey, sameLoad bool
	}{
		"again":        {calltest.Owner(), base(args{"sync_wait_secs": 3, "purpose": "diagnostic"}), true, true},
		"in a Session": {calltest.Owner(), base(args{"session_id": work(e, nil)}), true, true},
		"arguments":    {calltest.Owner(), base(args{"args": []string{"x"}}), true, false},
		"limit":        {calltest.Owner(), base(args{"timeout_secs": 59}), true, false},
		"Project":      {calltest.Owner(), base(args{"project": calltest.Beta.String()}), false, false},
		"principal":    {calltest.Someone("b"), base(nil), false, true},
		"key":          {calltest.Owner(), base(args{"idempotency_key": "k2"}), false, true},
	} {
		k, p := offered(t, e, c.who, &run.RunProcess, c.a)
		if (k == key) != c.sameKey || (p == payload) != c.sameLoad {
			t.Errorf("%s: %s %s, the first had %s %s", name, k, p, key, payload)
		}
	}
	k, p := offered(t, e, calltest.Owner(), &run.RunShell, args{"project": alpha, "command": "true", "idempotency_key": "KEYMARK"})
	if k != key || p == payload {
		t.Errorf("another tool: %s %s", k, p)
	}
	if k, p := offered(t, e, calltest.Owner(), &run.RunProcess, args{"project": alpha, "executable": "true"}); k != "" || p != "" {
		t.Errorf("without a key: %q %q", k, p)
	}
}

// A repeat answers with the first execution as the Runner's journal has it, and its own evidence
// says that it started nothing, proved nothing and failed at nothing.
//
// Covers: EXE-38, EVT-19
func TestARepeatStartsNothingAndClaimsNothing(t *testing.T) {
	first := event.NewExecutionID()
	three := 3
	for name, c := range map[string]struct {
		reply   wire.QueryReply
		kind    fault.Kind
		success bool
		check   func(run.Output) bool
	}{
		"ended": {wire.QueryReply{State: wire.JSettled, Result: &wire.Result{ID: first, State: wire.JTerminal,
			Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &three}}}, "", false,
			func(o run.Output) bool {
				return *o.ExitCode == 3 && o.CommandStarted && o.JobID == nil && o.FailureKind == "exit_status"
			}},
		"running": {wire.QueryReply{State: wire.JRunning}, "", true,
			func(o run.Output) bool { return o.Promoted && *o.JobID == first && o.State == event.Started }},
		"lost":  {wire.QueryReply{State: wire.JLost, Result: &wire.Result{ID: first, State: wire.JLost}}, fault.OutcomeUnknown, false, nil},
		"never": {wire.QueryReply{State: wire.JNever, Result: &wire.Result{ID: first, State: wire.JNever}}, fault.RunnerUnavailable, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := calltest.New(t, nil)
			id := work(e, nil)
			e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
				return call.Outcome{First: first}, x.Ready(ctx)
			}
			e.Fleet.OnQuery = func(asked event.ExecutionID) (wire.QueryReply, error) {
				if asked != first {
					t.Errorf("asked about %s", asked)
				}
				return c.reply, nil
			}
			a := args{"project": alpha, "session_id": id, "executable": "true", "idempotency_key": "KEYMARK", "purpose": "test", "sync_wait_secs": 0}
			resp, err := e.Call(&run.RunProcess, a)
			switch {
			case c.kind != "":
				if f := fault.As(err); f.Kind != c.kind || f.Details["replayed"] != true || f.Details["execution_id"] != first {
					t.Errorf("%+v", f)
				}
			case err != nil:
				t.Fatal(err)
			default:
				var out run.Output
				if err := json.Unmarshal(resp.Output, &out); err != nil {
					t.Fatal(err)
				}
				if resp.Success != c.success || !out.Replayed || out.ExecutionID != first || !c.check(out) {
					t.Errorf("success %v: %s", resp.Success, resp.Output)
				}
			}
			var last event.ToolCallFinished
			for _, ev := range e.Events(event.SessionID(id)) {
				if f, ok := ev.(event.ToolCallFinished); ok {
					last = f
				}
			}
			if last.Replays != first || last.Execution == first || last.Status != event.StatusSucceeded || last.Promoted || last.Validation != nil ||
				last.ExitCode != nil || last.ErrorKind != "" || last.Effect != (event.Effect{State: event.NotStarted}) {
				t.Errorf("the evidence is %+v", last)
			}
			if text := stored(t, e, id); len(text) == 0 || strings.Contains(text, "KEYMARK") {
				t.Error("the key is in the log")
			}
		})
	}
}
