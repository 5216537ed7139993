package git

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// ReviewIn is the input of read_git_review_summary.
type ReviewIn struct {
	Project    string `json:"project"`
	SessionID  string `json:"session_id,omitempty"`
	BaseCommit string `json:"base_commit,omitempty"`
	HeadCommit string `json:"head_commit,omitempty"`
}

// ReviewSummary sums up a change from names and counts: two commits, or what is not committed.
var ReviewSummary = call.Spec{
	Name: "read_git_review_summary", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
	In: ReviewIn{}, Evidence: func(json.RawMessage) event.Input { return event.Input{} }, Run: reviewSummary,
}

func reviewSummary(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ReviewIn](c)
	if err != nil {
		return call.Result{}, err
	}
	out, err := call.Ask[wire.GitReviewOut](ctx, c, wire.OpGitReview, wire.GitReviewIn{Base: in.BaseCommit, Head: in.HeadCommit})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: out}, nil
}
