package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// HunksIn is the input of read_git_diff_hunks.
type HunksIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Paths        []string `json:"paths,omitempty"`
	MaxHunks     int      `json:"max_hunks,omitempty"`
	MaxHunkLines int      `json:"max_hunk_lines,omitempty"`
	Cached       bool     `json:"cached,omitempty"`
	BaseCommit   string   `json:"base_commit,omitempty"`
	HeadCommit   string   `json:"head_commit,omitempty"`
	Continuation string   `json:"continuation,omitempty"`
}

// HunksOut is its output, with the effective bounds.
type HunksOut struct {
	wire.DiffHunksOut
	MaxHunks     int `json:"max_hunks"`
	MaxHunkLines int `json:"max_hunk_lines"`
}

// DiffHunks shows a diff as hunks by file, page by page.
var DiffHunks = call.Spec{
	Name: "read_git_diff_hunks", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: HunksIn{}, Evidence: hunksEvidence, Run: diffHunks,
}

func hunksEvidence(args json.RawMessage) event.Input {
	var in HunksIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Paths: in.Paths, PathCount: len(in.Paths), Limit: clamp(in.MaxHunks, DefaultHunks, MaxHunks)}
}

func diffHunks(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[HunksIn](c)
	if err != nil {
		return call.Result{}, err
	}
	hunks, lines := clamp(in.MaxHunks, DefaultHunks, MaxHunks), clamp(in.MaxHunkLines, DefaultHunkLines, MaxHunkLines)
	out, err := call.Ask[wire.DiffHunksOut](ctx, c, wire.OpGitDiffHunks, wire.DiffHunksIn{MaxHunks: hunks, MaxHunkLines: lines,
		Continuation: in.Continuation,
		DiffScope:    wire.DiffScope{Paths: in.Paths, Cached: in.Cached, Base: in.BaseCommit, Head: in.HeadCommit}})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: HunksOut{DiffHunksOut: out, MaxHunks: hunks, MaxHunkLines: lines}}, nil
}
