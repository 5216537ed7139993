package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// TrackedIn is the input of list_project_tracked_files.
type TrackedIn struct {
	Project   string   `json:"project"`
	SessionID string   `json:"session_id,omitempty"`
	Path      string   `json:"path,omitempty"`
	Globs     []string `json:"globs,omitempty"`
	Depth     int      `json:"depth,omitempty"`
	Limit     int      `json:"limit,omitempty"`
	Offset    int      `json:"offset,omitempty"`
}

// TrackedOut is its output; Limit is the effective one, Depth null where nothing is folded.
type TrackedOut struct {
	wire.TrackedFilesOut
	Depth  *int   `json:"depth"`
	Limit  int    `json:"limit"`
	Offset int    `json:"offset"`
	Source string `json:"source"`
}

// Tracked lists what git tracks.
var Tracked = call.Spec{
	Name: "list_project_tracked_files", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject,
	Class: call.Observe, In: TrackedIn{}, Evidence: trackedEvidence, Run: tracked,
}

func trackedEvidence(args json.RawMessage) event.Input {
	var in TrackedIn
	_ = json.Unmarshal(args, &in)
	return onePath(in.Path)
}

func tracked(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[TrackedIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out := TrackedOut{Limit: clamp(in.Limit, DefaultTrackedLimit, 1, MaxTrackedLimit), Offset: max(0, in.Offset), Source: "git_index"}
	if in.Depth != 0 {
		out.Depth = &in.Depth
	}
	out.TrackedFilesOut, err = call.Ask[wire.TrackedFilesOut](ctx, c, wire.OpTrackedFiles, wire.TrackedFilesIn{Path: in.Path,
		Globs: in.Globs, Depth: in.Depth, Offset: out.Offset, Limit: out.Limit})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out}, nil
}
