package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// HygieneIn is the input of check_workspace_hygiene.
type HygieneIn struct {
	Project        string `json:"project"`
	SessionID      string `json:"session_id,omitempty"`
	MaxFindings    int    `json:"max_findings,omitempty"`
	IncludeTracked bool   `json:"include_tracked,omitempty"`
}

// HygieneOut is its output, with the effective bound.
type HygieneOut struct {
	GitAvailable bool `json:"git_available"`
	wire.HygieneOut
	MaxFindings int `json:"max_findings"`
}

// Hygiene finds what should not be left in a working tree.
var Hygiene = call.Spec{
	Name: "check_workspace_hygiene", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: HygieneIn{}, Evidence: hygieneEvidence, Run: hygiene,
}

func hygieneEvidence(args json.RawMessage) event.Input {
	var in HygieneIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Limit: clamp(in.MaxFindings, DefaultFindings, MaxFindings)}
}

func hygiene(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[HygieneIn](c)
	if err != nil {
		return call.Result{}, err
	}
	most := clamp(in.MaxFindings, DefaultFindings, MaxFindings)
	out, err := call.Ask[wire.HygieneOut](ctx, c, wire.OpHygiene, wire.HygieneIn{MaxFindings: most, IncludeTracked: in.IncludeTracked})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: HygieneOut{true, out, most}}, nil
}
