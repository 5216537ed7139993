package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// ContextIn is the input of search_file_context.
type ContextIn struct {
	Project       string `json:"project"`
	SessionID     string `json:"session_id,omitempty"`
	Path          string `json:"path"`
	Pattern       string `json:"pattern"`
	ContextBefore *int   `json:"context_before,omitempty"`
	ContextAfter  *int   `json:"context_after,omitempty"`
	Limit         int    `json:"limit,omitempty"`
}

// ContextOut is its output; Limit is the effective one.
type ContextOut struct {
	wire.SearchFileOut
	Limit int `json:"limit"`
}

// FileContext shows the matches of one file with their surroundings.
var FileContext = call.Spec{
	Name: "search_file_context", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ContextIn{}, Evidence: contextEvidence, Run: fileContext,
}

func contextEvidence(args json.RawMessage) event.Input {
	var in ContextIn
	_ = json.Unmarshal(args, &in)
	e := onePath(in.Path)
	e.QueryCount = 1
	return e
}

func fileContext(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ContextIn](c)
	if err != nil {
		return call.Result{}, err
	}
	lines := func(n *int) int {
		if n == nil {
			return wire.FileContext
		}
		return clamp(*n, 0, 0, MaxContextLines)
	}
	limit := clamp(in.Limit, wire.SearchLimit, 1, MaxSearchLimit)
	out, err := call.Ask[wire.SearchFileOut](ctx, c, wire.OpSearchFile, wire.SearchFileIn{Path: in.Path, Pattern: in.Pattern,
		Before: lines(in.ContextBefore), After: lines(in.ContextAfter), Limit: limit})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: ContextOut{out, limit}, Facts: call.Facts{Observed: []string{out.Path},
		Context: &event.ContextResult{Items: len(out.Matches), Truncated: out.Truncated}}}, nil
}

func noRunner() error {
	return fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected").WithNext("call list_projects")
}
