package board

import (
	"context"

	"webcodex/commands/call"
	"webcodex/projections/session"
)

// DiscussionIn is the input of read_session_discussion.
type DiscussionIn struct {
	SessionID string `json:"session_id"`
	Limit     *int   `json:"limit,omitempty"`
}

// ReadDiscussion sums up a Session's board.
var ReadDiscussion = call.Spec{
	Name: "read_session_discussion", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: DiscussionIn{}, Run: readDiscussion,
}

func readDiscussion(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[DiscussionIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	v, err := read(c)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: session.NewDiscussion(v.Core.ID, v.Board, in.Limit)}, nil
}
