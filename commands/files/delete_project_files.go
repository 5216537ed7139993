package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// DeleteIn is the input of delete_project_files.
type DeleteIn struct {
	Project   string   `json:"project"`
	SessionID string   `json:"session_id,omitempty"`
	Paths     []string `json:"paths"`
}

// DeleteOut is its output.
type DeleteOut struct {
	OK bool `json:"ok"`
	wire.DeleteFilesOut
}

// Delete removes files; one refused path refuses all.
var Delete = call.Spec{
	Name: "delete_project_files", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: DeleteIn{}, Evidence: deleteEvidence, Run: remove,
}

func deleteEvidence(args json.RawMessage) event.Input {
	var in DeleteIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Paths: in.Paths, PathCount: len(in.Paths), ChangeCount: len(in.Paths)}
}

func remove(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DeleteIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, facts, err := change(ctx, c, wire.OpDeleteFiles, wire.DeleteFilesIn{Paths: in.Paths},
		func(o wire.DeleteFilesOut) []string { return o.Deleted })
	if err != nil {
		return call.Result{Facts: facts}, err
	}
	return call.Result{Output: DeleteOut{true, out}, Facts: facts}, nil
}
