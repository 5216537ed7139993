package checkpoint

import (
	"context"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

// ListIn is the input of list_workspace_checkpoints.
type ListIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// ListOut is its output, newest first.
type ListOut struct {
	Checkpoints []wire.CheckpointInfo `json:"checkpoints"`
	Total       int                   `json:"total"`
	Returned    int                   `json:"returned"`
	Truncated   bool                  `json:"truncated"`
}

// List shows the checkpoints of a Project.
var List = call.Spec{
	Name: "list_workspace_checkpoints", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ListIn{}, Run: list,
}

func list(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListIn](c)
	if err != nil {
		return call.Result{}, err
	}
	got, err := call.Ask[wire.ListCheckpointsOut](ctx, c, wire.OpListCheckpoints, wire.ListCheckpointsIn{Limit: clamp(in.Limit, DefaultLimit, MaxLimit)})
	if err != nil {
		return call.Result{}, err
	}
	out := ListOut{Checkpoints: got.Checkpoints, Total: got.Total, Returned: len(got.Checkpoints)}
	if out.Checkpoints == nil {
		out.Checkpoints = []wire.CheckpointInfo{}
	}
	out.Truncated = out.Returned < out.Total
	return call.Result{Output: out}, nil
}

func clamp(n, absent, most int) int {
	if n <= 0 {
		return absent
	}
	return min(n, most)
}
