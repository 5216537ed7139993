package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// DiffIn is the input of read_git_diff.
type DiffIn struct {
	Project      string   `json:"project"`
	SessionID    string   `json:"session_id,omitempty"`
	Paths        []string `json:"paths,omitempty"`
	Cached       bool     `json:"cached,omitempty"`
	BaseCommit   string   `json:"base_commit,omitempty"`
	HeadCommit   string   `json:"head_commit,omitempty"`
	Continuation string   `json:"continuation,omitempty"`
}

// Diff shows unified diff text, page by page.
var Diff = call.Spec{
	Name: "read_git_diff", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: DiffIn{}, Evidence: diffEvidence, Run: diff,
}

func diffEvidence(args json.RawMessage) event.Input {
	var in DiffIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Paths: in.Paths, PathCount: len(in.Paths)}
}

func diff(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DiffIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := call.Ask[wire.GitDiffOut](ctx, c, wire.OpGitDiff, wire.GitDiffIn{Continuation: in.Continuation,
		DiffScope: wire.DiffScope{Paths: in.Paths, Cached: in.Cached, Base: in.BaseCommit, Head: in.HeadCommit}})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out}, nil
}
