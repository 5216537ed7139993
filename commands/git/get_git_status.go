package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// StatusIn is the input of get_git_status.
type StatusIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Offset    int    `json:"offset,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// StatusOut is its output; Limit is the effective one.
type StatusOut struct {
	wire.GitStatusOut
	Limit int `json:"limit"`
}

// Status shows branch, head and every changed, conflicted and untracked file.
var Status = call.Spec{
	Name: "get_git_status", Status: true, Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: StatusIn{}, Evidence: statusEvidence, Run: status,
}

func statusEvidence(args json.RawMessage) event.Input {
	var in StatusIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Limit: clamp(in.Limit, DefaultStatusLimit, MaxStatusLimit)}
}

func status(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[StatusIn](c)
	if err != nil {
		return call.Result{}, err
	}
	limit := clamp(in.Limit, DefaultStatusLimit, MaxStatusLimit)
	out, err := call.Ask[wire.GitStatusOut](ctx, c, wire.OpGitStatus, wire.GitStatusIn{Offset: max(0, in.Offset), Limit: limit})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: StatusOut{GitStatusOut: out, Limit: limit}}, nil
}
