package files

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// EditIn is the input of edit_project_files.
type EditIn struct {
	Project   string   `json:"project"`
	SessionID string   `json:"session_id,omitempty"`
	Changes   []Change `json:"changes"`
	DryRun    bool     `json:"dry_run,omitempty"`
}

// Change is one file's change, in the form that the Runner takes.
type Change = wire.Change

// Edit changes several files, all or none.
var Edit = call.Spec{
	Name: "edit_project_files", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneProject, Class: call.Write,
	In: EditIn{}, Evidence: editEvidence, Run: edit,
}

func editEvidence(args json.RawMessage) event.Input {
	var in EditIn
	_ = json.Unmarshal(args, &in)
	e := event.Input{ChangeCount: len(in.Changes), DryRun: in.DryRun}
	for _, c := range in.Changes {
		e.Paths = append(e.Paths, c.Path)
		if c.ToPath != "" {
			e.Paths = append(e.Paths, c.ToPath)
		}
	}
	e.PathCount = len(e.Paths)
	return e
}

func edit(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[EditIn](c)
	if err != nil {
		return call.Result{}, err
	}
	ask := wire.EditFilesIn{Changes: in.Changes}
	if in.DryRun {
		out, err := call.Ask[wire.EditFilesOut](ctx, c, wire.OpPreviewEdit, ask)
		if err != nil {
			return call.Result{}, err
		}
		return call.Result{Output: out}, nil
	}
	out, facts, err := change(ctx, c, wire.OpEditFiles, ask, func(o wire.EditFilesOut) []string { return o.ChangedPaths })
	if err != nil {
		return call.Result{Facts: facts}, err
	}
	return call.Result{Output: out, Facts: facts}, nil
}
