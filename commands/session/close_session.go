package session

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// CloseIn is the input of close_session.
type CloseIn struct {
	SessionID string `json:"session_id"`
}

// CloseOut is its output.
type CloseOut struct {
	SessionID     event.SessionID   `json:"session_id"`
	Lifecycle     session.Lifecycle `json:"lifecycle"`
	AlreadyClosed bool              `json:"already_closed"`
	UpdatedAt     string            `json:"updated_at"`
}

// CloseSession ends a Session for good; closing twice is one event (SES-22).
var CloseSession = call.Spec{
	Name: "close_session", Scopes: []call.Scope{call.ScopeCollaborate}, Plane: call.PlaneSession, Class: call.Mutate,
	ClosedOK: true, In: CloseIn{}, Run: closeSession,
}

func closeSession(ctx context.Context, c *call.Call) (call.Result, error) {
	id := c.Session.ID
	receipt, err := c.Settle(ctx, event.SessionAggregate(id), func(time.Time) ([]event.Event, error) {
		core, err := c.Current(id)
		if err != nil {
			return nil, err
		}
		return DecideClose(core)
	})
	if err != nil {
		return call.Result{}, err
	}
	core, err := c.Current(id)
	if err != nil {
		return call.Result{}, err
	}
	if receipt.Seq > 0 {
		// History is bounded again before the answer; at a limit of 0 this Session has gone by then.
		c.Closed(ctx, core)
	}
	return call.Result{Output: CloseOut{SessionID: id, Lifecycle: core.Lifecycle, AlreadyClosed: receipt.Seq == 0,
		UpdatedAt: event.FormatTime(core.UpdatedAt)}}, nil
}
