package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// SummaryIn is the input of read_session_summary.
type SummaryIn struct {
	SessionID string `json:"session_id"`
	Limit     *int   `json:"limit,omitempty"`
}

// ReadSummary shows the retained events of a Session and what they count to.
var ReadSummary = call.Spec{
	Name: "read_session_summary", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: SummaryIn{}, Run: readSummary,
}

func readSummary(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[SummaryIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	v, err := c.Sessions().Load(c.Session.ID)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: session.NewSummary(v, in.Limit)}, nil
}

// needSession refuses a call that names no Session: none is ever inferred (HND-02).
func needSession(c *call.Call) error {
	if c.Session != nil {
		return nil
	}
	return fault.New(fault.InvalidArguments, "name the Session: none is picked for you").WithField("session_id").
		WithNext("use the session_id that work_on_project gave, or call list_sessions with the project")
}
