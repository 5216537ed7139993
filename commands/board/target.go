package board

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// needSession refuses a call that names no Session: none is ever inferred (HND-02).
func needSession(c *call.Call) error {
	if c.Session != nil {
		return nil
	}
	return fault.New(fault.InvalidArguments, "name the Session whose board is meant").WithField("session_id").
		WithNext("use the session_id that work_on_project gave, or call list_sessions with the project")
}

// view is what the board's tools see of a Session.
type view struct {
	Core  session.Core
	Board session.Board
}

// read is the Session as it is, for a tool that only looks. What is folded is durable: a reader
// never sees further than the log's horizon.
func read(c *call.Call) (v view, err error) {
	v.Core, v.Board, err = c.Sessions().LoadBoard(c.Session.ID)
	return v, err
}

// decide makes one decision on the call's Session and gives its board as it left it; changed
// tells whether it changed anything. What others do to the board afterwards is not in it.
func decide(ctx context.Context, c *call.Call, on func(view) ([]event.Event, error)) (b session.Board, changed bool, err error) {
	receipt, err := c.Decide(ctx, event.SessionAggregate(c.Session.ID), func(time.Time) ([]event.Event, error) {
		if _, err := c.Current(c.Session.ID); err != nil {
			return nil, err
		}
		v, err := read(c)
		if err != nil {
			return nil, err
		}
		b = v.Board
		return on(v)
	})
	if err != nil || receipt.Seq == 0 {
		return b, false, err
	}
	return b.Apply(receipt.Commit), true, nil
}

// standing shows a message of a decision's board.
func standing(c *call.Call, b session.Board, id event.MessageID) (session.MessageView, error) {
	m, ok := b.Find(id)
	if !ok {
		return session.MessageView{}, unfolded()
	}
	return m.Show(c.Session.ID), nil
}

// unfolded is a decision whose message its own fold does not show.
func unfolded() error { return fault.New(fault.Internal, "the board does not show what was decided") }

// decoded reads arguments for evidence; what cannot be read has none.
func decoded[In any](args json.RawMessage) (in In) {
	_ = json.Unmarshal(args, &in)
	return in
}

// evidence of a message call: an id that a server minted, and counts. No text, no key (MSG-44).
func evidence(id, text string, tags []string) event.Input {
	in := event.Input{TextBytes: len(text), TagCount: len(tags)}
	if m := event.MessageID(id); m.Valid() {
		in.Target = string(m)
	}
	return in
}
