package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/projections/session"
)

// ValidationIn is the input of read_validation_summary.
type ValidationIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id"`
	Limit     *int   `json:"limit,omitempty"`
}

// ReadValidation shows what the validations of a Session prove. It runs none; the ends of Jobs
// that a Runner has and has not told are recorded first (VAL-04, VAL-11).
var ReadValidation = call.Spec{
	Name: "read_validation_summary", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: ValidationIn{}, Run: readValidation,
}

func readValidation(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ValidationIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	v, s, err := snapshot(ctx, c, session.Snapshot{IncludeWorkspace: true, IncludeValidation: true})
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: session.NewValidationSummary(v, s, in.Limit)}, nil
}
