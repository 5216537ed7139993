// Package navigate holds the tools that ask the language servers of a Project's Runner. What they
// answer is the server's truth of that moment (STA-13); of a call only the path is stored, never a
// symbol, a hover or a finding (NEG-23).
package navigate

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/relpath"
	"webcodex/runner/wire"
)

// Bounds of the navigation tools (peer-facts 1.7).
const (
	MaxPathBytes  = wire.MaxFilePath
	MaxQueryChars = wire.MaxSymbolQueryChars
	MaxLine       = wire.MaxLine
	MaxColumn     = wire.MaxColumn
	MaxDepth      = wire.MaxHierarchyDepth
	answerTime    = 75 * time.Second // a server may have to start, and read the Project, first
)

// Directions of call_hierarchy.
var Directions = []string{wire.CallsIncoming, wire.CallsOutgoing, wire.CallsBoth}

// StatusIn is the input of get_lsp_status.
type StatusIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
}

// FileIn is the input of document_symbols and document_diagnostics.
type FileIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Path      string `json:"path"`
	Limit     int    `json:"limit,omitempty"`
}

// QueryIn is the input of workspace_symbols.
type QueryIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Query     string `json:"query"`
	Limit     int    `json:"limit,omitempty"`
}

// PlaceIn is the input of hover.
type PlaceIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	Path      string `json:"path"`
	Line      int    `json:"line"`
	Column    int    `json:"column"`
}

// DefinitionIn is the input of goto_definition.
type DefinitionIn struct {
	PlaceIn
	Limit int `json:"limit,omitempty"`
}

// ReferencesIn is the input of find_references.
type ReferencesIn struct {
	PlaceIn
	IncludeDeclaration *bool `json:"include_declaration,omitempty"`
	Limit              int   `json:"limit,omitempty"`
}

// HierarchyIn is the input of call_hierarchy.
type HierarchyIn struct {
	PlaceIn
	Direction string `json:"direction,omitempty"`
	Depth     int    `json:"depth,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// Specs of the navigation tools. They read; where the Runner cannot keep a language server from
// writing they need the scope to run commands too (faults.md 4).
var (
	Status           = spec("get_lsp_status", StatusIn{}, status)
	DocumentSymbols  = spec("document_symbols", FileIn{}, documentSymbols)
	Diagnostics      = spec("document_diagnostics", FileIn{}, diagnostics)
	WorkspaceSymbols = spec("workspace_symbols", QueryIn{}, workspaceSymbols)
	Definition       = spec("goto_definition", DefinitionIn{}, definition)
	References       = spec("find_references", ReferencesIn{}, references)
	Hover            = spec("hover", PlaceIn{}, hover)
	CallHierarchy    = spec("call_hierarchy", HierarchyIn{}, callHierarchy)
)

func spec(name string, in any, run func(context.Context, *call.Call) (call.Result, error)) call.Spec {
	return call.Spec{Name: name, Scopes: []call.Scope{call.ScopeProjectRead}, Conditional: []call.Scope{call.ScopeJobRun},
		Plane: call.PlaneProject, Class: call.Observe, In: in, Evidence: evidence, Run: run}
}

func evidence(args json.RawMessage) event.Input {
	var in struct {
		Path  string  `json:"path"`
		Query *string `json:"query"`
		Limit int     `json:"limit"`
	}
	_ = json.Unmarshal(args, &in)
	e := event.Input{Limit: in.Limit}
	if in.Query != nil {
		e.QueryCount = 1
	}
	if parts, err := relpath.SplitFile(in.Path); err == nil && len(parts) > 0 {
		e.Paths, e.PathCount = []string{in.Path}, 1
	}
	return e
}

// ask refuses what only a sandbox makes a read of where there is none, and asks the Runner.
func ask[Out any](ctx context.Context, c *call.Call, op wire.Op, in any) (Out, error) {
	var none Out
	if c.Target == nil {
		return none, fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected").WithNext("call list_projects")
	}
	if op != wire.OpLSPStatus && !sandboxed(c) {
		if err := c.MayExecute("the Runner cannot keep a language server from writing"); err != nil {
			return none, err
		}
	}
	return call.AskTarget[Out](ctx, c, *c.Target, op, in, answerTime)
}

// sandboxed reports that the Runner keeps helpers from writing and from the network.
func sandboxed(c *call.Call) bool {
	return slices.ContainsFunc(c.Fleet().Runners(), func(r call.RunnerInfo) bool {
		return r.Client == c.Target.Ref.Client && !slices.ContainsFunc(wire.Features, func(f string) bool { return !slices.Contains(r.Capabilities, f) })
	})
}

func observed(out any, counts wire.Counts, paths ...string) call.Result {
	seen := map[string]bool{}
	var each []string
	for _, p := range paths {
		if p != "" && !seen[p] {
			seen[p] = true
			each = append(each, p)
		}
	}
	return call.Result{Output: out, Facts: call.Facts{Observed: each, Context: &event.ContextResult{Items: counts.Returned, Truncated: counts.Truncated}}}
}
