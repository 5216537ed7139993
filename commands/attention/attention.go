package attention

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// Sources of an answer's attention.
const (
	SourceRecorder = "recorder"
	SourceAffinity = "window_affinity"
)

// Attention is what an answer shows of one Session.
type Attention struct {
	SessionID event.SessionID `json:"session_id"`
	// SessionRef is the caller's own number of it; left out where it has none. None is given here
	// (SES-06).
	SessionRef string    `json:"session_ref,omitempty"`
	Source     string    `json:"source"`
	Messages   []Message `json:"messages"`
	// Open are the messages that ask for an ACK; Acknowledged of them were, by this request, and
	// Remaining did not fit.
	Open         int    `json:"open_ack_required"`
	Acknowledged int    `json:"acknowledged"`
	Remaining    int    `json:"remaining"`
	AckRef       string `json:"ack_ref"`
}

// Affine gives the one Session whose window, principal and exact Project are those of the call,
// Active and open to the caller; false: there is none (ACK-20). It is asked only for a tool on
// a Project that names no recorder.
type Affine func(ctx context.Context, c *call.Call) (session.Core, bool)

// New gives the addition session_attention. affine may be nil: then only a recorder has any.
func New(affine Affine) call.Ambient {
	return func(ctx context.Context, c *call.Call, _ bool) []call.Addition {
		id, source, ok := sessionOf(ctx, c, affine)
		if !ok || !c.HasScope(call.ScopeRuntimeRead) {
			return nil // whoever may not read messages is shown none
		}
		core, board, err := c.Sessions().LoadBoard(id)
		if err != nil || core.Lifecycle != session.Active {
			return nil // it was closed by this very call
		}
		members := pending(board)
		if len(members) == 0 {
			return nil
		}
		env, who := c.Envelope(), c.Principal.Actor.Principal
		acked := evidence(members, env.Ack)
		for m := range readRef(c.Tokens(), who, core, members, env.AckRef) {
			acked[m] = true
		}
		s := pick(members, acked)
		observe(ctx, c, id, members, acked)
		return []call.Addition{{Name: "session_attention", Value: Attention{SessionID: id, SessionRef: c.NumberedRef(ctx, core), Source: source,
			Messages: append([]Message{}, s.shown...), Open: len(members), Acknowledged: s.acknowledged, Remaining: s.left,
			AckRef: makeRef(c.Tokens(), who, core, members, s.set)}}}
	}
}

// sessionOf is the one Session whose messages are shown: the explicit recorder always, and only
// without one the Session of the caller's window (REC-14).
func sessionOf(ctx context.Context, c *call.Call, affine Affine) (event.SessionID, string, bool) {
	if c.Recorder != nil {
		return c.Recorder.ID, SourceRecorder, true
	}
	if affine == nil || c.Spec().Plane != call.PlaneProject || c.Project == nil || c.Window() == "" {
		return "", "", false
	}
	core, ok := affine(ctx, c)
	return core.ID, SourceAffinity, ok
}

// evidence are the members among the ids; every other id is left alone (ACK-28).
func evidence(members []*session.Message, ids []event.MessageID) map[event.MessageID]bool {
	acked := map[event.MessageID]bool{}
	for _, m := range members {
		for _, id := range ids {
			if id == m.ID {
				acked[id] = true
			}
		}
	}
	return acked
}

// observe keeps when a message was first acknowledged; an echo leaves nothing (ACK-16). What
// cannot be written is left away: the answer does not depend on it (ACK-11). A caller that may
// not take part in the collaboration leaves no trace in it.
func observe(ctx context.Context, c *call.Call, id event.SessionID, members []*session.Message, acked map[event.MessageID]bool) {
	if !c.HasScope(call.ScopeCollaborate) || len(fresh(members, acked)) == 0 {
		return
	}
	_, _ = c.Note(ctx, event.SessionAggregate(id), func(time.Time) ([]event.Event, error) {
		core, board, err := c.Sessions().LoadBoard(id)
		if err != nil || core.Lifecycle != session.Active {
			return nil, err
		}
		if ids := fresh(pending(board), acked); len(ids) > 0 {
			return []event.Event{event.MessagesAcknowledged{Messages: ids}}, nil
		}
		return nil, nil
	})
}

// fresh are the acknowledged members without an ACK so far.
func fresh(members []*session.Message, acked map[event.MessageID]bool) (ids []event.MessageID) {
	for _, m := range members {
		if acked[m.ID] && m.Acked.IsZero() {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
