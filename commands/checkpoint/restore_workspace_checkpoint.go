package checkpoint

import (
	"context"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

// RestoreIn is the input of restore_workspace_checkpoint.
type RestoreIn struct {
	Project    string `json:"project"`
	SessionID  string `json:"session_id,omitempty"`
	Checkpoint string `json:"checkpoint_id"`
	Expected   string `json:"expected_state"`
}

// RestoreOut is its output.
type RestoreOut struct {
	wire.RestoreCheckpointOut
	StateChanged bool `json:"state_changed"`
}

// Restore puts the files of a checkpoint back; what was in them is kept as another one first.
var Restore = call.Spec{
	Name: "restore_workspace_checkpoint", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: RestoreIn{}, Evidence: evidence, Run: restore,
}

func restore(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[RestoreIn](c)
	if err != nil {
		return call.Result{}, err
	}
	req := wire.RestoreCheckpointIn{ID: in.Checkpoint, Expected: in.Expected, Before: newID()}
	if err := req.Check(); err != nil {
		return call.Result{}, err
	}
	out, facts, err := change(ctx, c, wire.OpRestoreCheckpoint, req, func(o wire.RestoreCheckpointOut) []string {
		if !o.Restored {
			return nil
		}
		var paths []string
		for _, ch := range o.Changes {
			paths = append(paths, ch.Path)
		}
		return paths
	})
	return call.Result{Output: RestoreOut{out, facts.Effect.StateChanged}, Facts: facts}, err
}
