package shell

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// CloseOut is the output of close_session_shell.
type CloseOut struct {
	ShellID       event.ShellID   `json:"shell_id"`
	State         wire.ShellState `json:"shell_state"`
	Reason        string          `json:"close_reason"`
	AlreadyClosed bool            `json:"already_closed"`
	Remote        string          `json:"remote_process,omitempty"`
}

// Close ends a shell with everything that it started. A read-only Session may close what is left
// of another time (SHL-06, SHL-17), so it is no Execute.
var Close = call.Spec{
	Name: "close_session_shell", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Mutate,
	In: AtIn{}, Evidence: atEvidence, Run: closeShell,
}

func atEvidence(args json.RawMessage) event.Input {
	var in AtIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Target: targetOf(in.ShellID)}
}

func closeShell(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[AtIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needs(c, wire.OpShellClose); err != nil {
		return call.Result{}, err
	}
	at, err := shellAt(c, in.ShellID)
	if err != nil {
		return call.Result{}, err
	}
	o, err := c.Effect(ctx, wire.OpShellClose, at, call.EffectOptions{Timeout: closeTime, Facts: closeFacts})
	if f := fault.As(err); f != nil && f.Kind == fault.ShellNotFound {
		if last, _, found := lived(c, at.ID); found {
			g := gone(c, last, "")
			return call.Result{Output: CloseOut{ShellID: g.ShellID, State: g.State, Reason: g.Reason, AlreadyClosed: true},
				Facts: call.Facts{Execution: c.Execution(), Effect: event.Effect{State: event.NotStarted}}}, nil
		}
	}
	if err != nil {
		return call.Result{}, err
	}
	r, err := read[wire.ShellCloseOut](o.Result)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: CloseOut{ShellID: r.Shell.ID, State: r.Shell.State, Reason: r.Shell.Reason, AlreadyClosed: r.AlreadyClosed, Remote: r.Shell.RemoteProcess},
		Facts: closeFacts(*o.Result)}, nil
}

func closeFacts(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	if out, err := read[wire.ShellCloseOut](&r); err == nil {
		f.Shell = factsOf(actionClose, out.Shell)
	}
	return f
}
