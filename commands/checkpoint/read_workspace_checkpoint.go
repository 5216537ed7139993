package checkpoint

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ReadIn is the input of read_workspace_checkpoint.
type ReadIn struct {
	Project    string `json:"project"`
	SessionID  string `json:"session_id,omitempty"`
	Checkpoint string `json:"checkpoint_id"`
	Offset     int    `json:"offset,omitempty"`
	Limit      int    `json:"limit,omitempty"`
}

// Read shows one checkpoint, and what a restore would change now.
var Read = call.Spec{
	Name: "read_workspace_checkpoint", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ReadIn{}, Evidence: evidence, Run: read,
}

// evidence names the checkpoint, whose id is the server's own; anything else is not stored.
func evidence(args json.RawMessage) event.Input {
	var in ReadIn
	_ = json.Unmarshal(args, &in)
	if wire.CheckCheckpoint(in.Checkpoint) != nil {
		return event.Input{}
	}
	return event.Input{Target: in.Checkpoint}
}

func read(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ReadIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := wire.CheckCheckpoint(in.Checkpoint); err != nil {
		return call.Result{}, err
	}
	out, err := call.Ask[wire.ReadCheckpointOut](ctx, c, wire.OpReadCheckpoint,
		wire.ReadCheckpointIn{ID: in.Checkpoint, Offset: max(0, in.Offset), Limit: clamp(in.Limit, DefaultFiles, MaxFiles)})
	return call.Result{Output: out}, err
}
