package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// OverviewIn is the input of read_project_overview.
type OverviewIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Path      string `json:"path,omitempty"`
	MaxDepth  int    `json:"max_depth,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// Overview shows the shape of a Project by its names.
var Overview = call.Spec{
	Name: "read_project_overview", Status: true, Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: OverviewIn{}, Evidence: overviewEvidence, Run: overview,
}

func overviewEvidence(args json.RawMessage) event.Input {
	var in OverviewIn
	_ = json.Unmarshal(args, &in)
	return onePath(in.Path)
}

func overview(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[OverviewIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := call.Ask[wire.OverviewOut](ctx, c, wire.OpOverview, wire.OverviewIn{Path: in.Path,
		MaxDepth: clamp(in.MaxDepth, wire.OverviewDepth, 1, wire.MaxOverviewDepth),
		Limit:    clamp(in.Limit, wire.OverviewLimit, wire.MinOverviewLimit, wire.MaxOverviewLimit)})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out}, nil
}
