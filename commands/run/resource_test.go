package run_test

import (
	"context"
	"encoding/json"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// A Session with a named resource reaches it through a Runner that can, and through no other
// kind of run; where the Runner cannot, nothing is offered to it in its place. Only the name of
// the resource and of the Session travel.
// Covers: SSH-02, SSH-10, NEG-18
func TestAResourceNeedsItsCapability(t *testing.T) {
	for name, capabilities := range map[string][]string{
		"none": nil, "others": {"shell", "process", "persistent_shell", "ssh_persistent_shell"},
	} {
		e := calltest.New(t, nil)
		e.Fleet.Capabilities = capabilities
		id := work(e, args{"execution_context": args{"resource": "build", "default_cwd": "/srv"}})
		_, err := e.Call(&run.RunShell, args{"project": alpha, "session_id": id, "command": "true"})
		f := fault.As(err)
		if f == nil || f.Kind != fault.CapabilityUnavailable || f.ExecutionState != string(event.NotStarted) || f.CommandStarted || len(e.Fleet.Starts()) != 0 {
			t.Errorf("%s: %+v, %d starts", name, f, len(e.Fleet.Starts()))
		}
	}
	e := calltest.New(t, nil)
	e.Fleet.Capabilities = []string{"ssh_shell"}
	var op wire.Op
	var sent map[string]any
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		op = x.Offer.Op
		if err := json.Unmarshal(x.Offer.Body, &sent); err != nil {
			t.Error(err)
		}
		return e.Fleet.Succeed(ctx, x)
	}
	id := work(e, args{"execution_context": args{"resource": "build", "default_cwd": "/srv", "default_shell": "bash"}})
	for _, spec := range []*call.Spec{&run.RunShell, &run.RunJob} { // it has no terminal there, and gets none here instead
		_, err := e.Call(spec, args{"project": alpha, "session_id": id, "command": "true", "interactive": true})
		if f := fault.As(err); f == nil || f.Kind != fault.Unavailable || f.Reason != "unsupported_resource" || len(e.Fleet.Starts()) != 0 {
			t.Errorf("%s: %+v, %d starts", spec.Name, f, len(e.Fleet.Starts()))
		}
	}
	calltest.Must[run.ShellOut](e, &run.RunShell, args{"project": alpha, "session_id": id, "command": "true"})
	want := map[string]any{"session": id, "resource": "build", "command": "true", "shell": "bash", "cwd": "/srv"}
	if len(sent) != len(want) || op != wire.OpSSHShell {
		t.Errorf("%s %v", op, sent)
	}
	for k, v := range want {
		if sent[k] != v {
			t.Errorf("%s is %v", k, sent[k])
		}
	}
}
