package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ChangesIn is the input of read_workspace_changes.
type ChangesIn struct {
	Project      string `json:"project"`
	SessionID    string `json:"session_id,omitempty"`
	IncludeDiff  bool   `json:"include_diff,omitempty"`
	MaxHunks     int    `json:"max_hunks,omitempty"`
	MaxHunkLines int    `json:"max_hunk_lines,omitempty"`
}

// WorkspaceChanges shows everything that is not committed, in one answer.
var WorkspaceChanges = call.Spec{
	Name: "read_workspace_changes", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ChangesIn{}, Evidence: changesEvidence, Run: workspaceChanges,
}

func changesEvidence(args json.RawMessage) event.Input {
	var in ChangesIn
	_ = json.Unmarshal(args, &in)
	if !in.IncludeDiff {
		return event.Input{}
	}
	return event.Input{Limit: clamp(in.MaxHunks, DefaultChangeHunks, MaxHunks)}
}

func workspaceChanges(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ChangesIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := call.Ask[wire.WorkspaceChangesOut](ctx, c, wire.OpWorkspaceChanges, wire.WorkspaceChangesIn{IncludeDiff: in.IncludeDiff,
		MaxHunks:     clamp(in.MaxHunks, DefaultChangeHunks, MaxHunks),
		MaxHunkLines: clamp(in.MaxHunkLines, DefaultChangeHunkLines, MaxChangeHunkLines)})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out}, nil
}
