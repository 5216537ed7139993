package checkpoint

import (
	"context"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

// DeleteIn is the input of delete_workspace_checkpoint.
type DeleteIn struct {
	Project    string `json:"project"`
	SessionID  string `json:"session_id,omitempty"`
	Checkpoint string `json:"checkpoint_id"`
}

// Delete forgets a checkpoint.
var Delete = call.Spec{
	Name: "delete_workspace_checkpoint", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Mutate,
	In: DeleteIn{}, Evidence: evidence, Run: remove,
}

func remove(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DeleteIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := wire.CheckCheckpoint(in.Checkpoint); err != nil {
		return call.Result{}, err
	}
	out, facts, err := change[wire.DeleteCheckpointOut](ctx, c, wire.OpDeleteCheckpoint, wire.DeleteCheckpointIn{ID: in.Checkpoint}, nil)
	return call.Result{Output: out, Facts: facts}, err
}
