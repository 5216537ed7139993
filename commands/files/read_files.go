package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ReadIn is the input of read_files.
type ReadIn struct {
	Project     string     `json:"project"`
	SessionID   string     `json:"session_id,omitempty"`
	Items       []ReadItem `json:"items"`
	LineNumbers bool       `json:"with_line_numbers,omitempty"`
}

// ReadItem is one range of one file.
type ReadItem struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// Read reads line ranges of several files; a bad item does not spoil the others.
var Read = call.Spec{
	Name: "read_files", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ReadIn{}, Evidence: readEvidence, Run: read,
}

func readEvidence(args json.RawMessage) event.Input {
	var in ReadIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{PathCount: len(in.Items)}
	for _, item := range in.Items {
		e.Paths = append(e.Paths, item.Path)
	}
	return e
}

func read(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ReadIn](c)
	if err != nil {
		return call.Result{}, err
	}
	ask := wire.ReadFilesIn{LineNumbers: in.LineNumbers}
	for _, item := range in.Items {
		ask.Items = append(ask.Items, wire.ReadItem{Path: item.Path, StartLine: max(1, item.StartLine),
			Limit: clamp(item.Limit, MaxReadLines, 1, MaxReadLines)})
	}
	out, err := call.Ask[wire.ReadFilesOut](ctx, c, wire.OpReadFiles, ask)
	if err != nil {
		return call.Result{}, err
	}
	facts := call.Facts{Context: &event.ContextResult{Items: out.Returned, Failed: len(out.Items) - out.Returned, Truncated: out.Truncated}}
	for _, f := range out.Items {
		if f.Success {
			facts.Observed = append(facts.Observed, f.Path)
		}
	}
	return call.Result{Output: out, Facts: facts}, nil
}
