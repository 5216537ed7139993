package shell

import (
	"context"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// AtIn is the input of get_session_shell_status and close_session_shell.
type AtIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id"`
	ShellID   string `json:"shell_id"`
}

// Status tells how a shell stands.
var Status = call.Spec{
	Name: "get_session_shell_status", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: AtIn{}, Evidence: atEvidence, Run: status,
}

func status(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[AtIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needs(c, wire.OpShellStatus); err != nil {
		return call.Result{}, err
	}
	at, err := shellAt(c, in.ShellID)
	if err != nil {
		return call.Result{}, err
	}
	v, err := call.Ask[wire.ShellView](ctx, c, wire.OpShellStatus, at)
	if f := fault.As(err); f != nil && f.Kind == fault.ShellNotFound {
		// Nothing of an earlier life is taken up again, but what became of it is known (SHL-27).
		if last, when, found := lived(c, at.ID); found {
			return call.Result{Output: gone(c, last, when)}, nil
		}
	}
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: viewOf(c, v)}, nil
}

// Gone is how a shell stands of which only the Session's record is left.
type Gone struct {
	ShellID event.ShellID   `json:"shell_id"`
	State   wire.ShellState `json:"shell_state"`
	Reason  string          `json:"close_reason"`
	Busy    bool            `json:"busy"`
	Project string          `json:"project"`
	Session event.SessionID `json:"session_id"`
	Used    string          `json:"last_used_at"`
}

func gone(c *call.Call, last event.ShellFacts, when string) Gone {
	g := Gone{ShellID: last.ID, State: wire.ShellState(last.State), Reason: last.Reason, Project: c.Target.Ref.String(), Session: c.Session.ID, Used: when}
	if g.State == wire.ShellRunning {
		g.State, g.Reason = wire.ShellLost, wire.ShellByRestart
	}
	return g
}
