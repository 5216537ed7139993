package navigate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/navigate"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

// asking are the tools that need a language server, with a call of each.
var asking = map[*call.Spec]args{
	&navigate.DocumentSymbols:  {"path": "a.go"},
	&navigate.Diagnostics:      {"path": "a.go"},
	&navigate.WorkspaceSymbols: {"query": "MARKER"},
	&navigate.Definition:       {"path": "a.go", "line": 1, "column": 1},
	&navigate.References:       {"path": "a.go", "line": 1, "column": 1},
	&navigate.Hover:            {"path": "a.go", "line": 1, "column": 1},
	&navigate.CallHierarchy:    {"path": "a.go", "line": 1, "column": 1},
}

func on(extra args, more args) args {
	a := args{"project": alpha}
	for _, m := range []args{extra, more} {
		for k, v := range m {
			a[k] = v
		}
	}
	return a
}

// Where the Runner cannot keep a language server from writing, asking one needs what running a
// command does; where it can, reading the Project is enough.
func TestAServerWithoutASandboxNeedsMore(t *testing.T) {
	e := calltest.New(t, nil)
	e.Fleet.OnAsk = func(wire.Op, json.RawMessage) (any, error) { return struct{}{}, nil }
	readOnly := calltest.Must[session.WorkOut](e, &session.WorkOnProject, args{"project": alpha, "instruction": "look", "session_mode": "read_only"}).SessionID
	for spec, a := range asking {
		e.Refused(calltest.Owner(call.ScopeProjectRead), spec, on(a, nil), fault.InsufficientScope)
		e.Fleet.Capabilities = []string{wire.Features[0]}
		e.Refused(calltest.Owner(call.ScopeJobRun), spec, on(a, nil), fault.InsufficientScope)
		if _, err := e.Call(spec, on(a, args{"session_id": readOnly})); fault.KindOf(err) != fault.SessionGuardDenied {
			t.Errorf("%s: %v", spec.Name, err)
		}
		e.Fleet.Capabilities = slices.Clone(wire.Features)
		for _, p := range []call.Principal{calltest.Owner(call.ScopeJobRun), calltest.Owner()} {
			if _, err := e.CallAs(t.Context(), p, spec, on(a, args{"session_id": readOnly})); err != nil {
				t.Errorf("%s: %v", spec.Name, err)
			}
		}
	}
	// Whether there are servers is told in any case.
	e.Fleet.Capabilities = nil
	if _, err := e.CallAs(t.Context(), calltest.Owner(call.ScopeJobRun), &navigate.Status, on(nil, nil)); err != nil {
		t.Error(err)
	}
}

// What is stored of a question are paths and counts: no symbol, no text, no finding.
//
// Covers: NEG-23
func TestKeepsPathsAlone(t *testing.T) {
	e := calltest.New(t, nil)
	id := calltest.Must[session.WorkOut](e, &session.WorkOnProject, args{"project": alpha, "instruction": "look"}).SessionID
	e.Fleet.Capabilities = slices.Clone(wire.Features)
	symbols := []wire.Symbol{{Name: "MARKER", Kind: "function", Detail: "MARKER", Path: "b.go"}}
	place := wire.FoundPlace{Path: "b.go", Preview: "MARKER"}
	e.Fleet.OnAsk = func(op wire.Op, _ json.RawMessage) (any, error) {
		switch op {
		case wire.OpDocumentSymbols, wire.OpWorkspaceSymbols:
			return wire.SymbolsOut{Path: "a.go", Symbols: symbols, Counts: wire.Counts{Total: 1, Returned: 1}}, nil
		case wire.OpHover:
			return wire.HoverOut{Path: "a.go", Hover: &wire.HoverText{Value: "MARKER"}}, nil
		case wire.OpDiagnostics:
			return wire.DiagnosticsOut{Path: "a.go", Diagnostics: []wire.FileDiagnostic{{Message: "MARKER"}}}, nil
		case wire.OpCallHierarchy:
			return wire.HierarchyOut{Edges: []wire.CallEdge{{From: wire.Function{Name: "MARKER", Path: "b.go"}, To: wire.Function{Name: "MARKER", Path: "a.go"}}}}, nil
		}
		return wire.PlacesOut{Locations: []wire.FoundPlace{place, place}}, nil
	}
	for spec, a := range asking {
		if _, err := e.Call(spec, on(a, args{"session_id": id})); err != nil {
			t.Fatalf("%s: %v", spec.Name, err)
		}
	}
	pairs := 0
	for _, ev := range e.Events(id) {
		raw, err := json.Marshal(ev)
		if err != nil || strings.Contains(string(raw), "MARKER") {
			t.Errorf("%v %s", err, raw)
		}
		f, ok := ev.(event.ToolCallFinished)
		if !ok {
			continue
		}
		pairs++
		want := []string{"a.go"}
		switch f.Tool {
		case "workspace_symbols":
			want = nil
		case "goto_definition", "find_references", "call_hierarchy":
			want = []string{"a.go", "b.go"}
		}
		if !slices.Equal(f.Observed, want) || f.Effect.StateChanged || f.Effect.CommandStarted {
			t.Errorf("%+v", f)
		}
	}
	if pairs != len(asking) {
		t.Errorf("%d pairs", pairs)
	}
}
