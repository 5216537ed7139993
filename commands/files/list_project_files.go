package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ListIn is the input of list_project_files.
type ListIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Path      string `json:"path,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// ListOut is its output; Limit is the effective one.
type ListOut struct {
	wire.ListFilesOut
	Limit int `json:"limit"`
}

// List lists one directory.
var List = call.Spec{
	Name: "list_project_files", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ListIn{}, Evidence: listEvidence, Run: list,
}

func listEvidence(args json.RawMessage) event.Input {
	var in ListIn
	_ = json.Unmarshal(args, &in)
	return onePath(in.Path)
}

// onePath is the evidence of a tool that names at most one path.
func onePath(path string) event.Input {
	if path == "" {
		return event.Input{}
	}
	return event.Input{Paths: []string{path}, PathCount: 1}
}

func list(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListIn](c)
	if err != nil {
		return call.Result{}, err
	}
	limit := clamp(in.Limit, DefaultListLimit, 1, MaxListLimit)
	out, err := call.Ask[wire.ListFilesOut](ctx, c, wire.OpListFiles, wire.ListFilesIn{Path: in.Path, Limit: limit})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: ListOut{out, limit}}, nil
}
