package board_test

import (
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Covers: MSG-05
func TestListFiltersAndPages(t *testing.T) {
	w := newWorld(t)
	q := w.post(args{"kind": "question"}).MessageID
	w.post(args{"kind": "answer", "reply_to": q})
	w.post(args{"kind": "answer", "reply_to": q})
	calltest.Must[board.ResolveOut](w.Env, &board.ResolveMessage, w.on(args{"message_id": q}))
	for range 117 {
		w.post(nil)
	}
	for _, tc := range []struct {
		a     args
		total int
	}{
		{nil, 120}, {args{"kind": "answer"}, 2}, {args{"reply_to": q}, 2}, {args{"status": "resolved"}, 1}, {args{"message_id": q}, 1},
		{args{"message_id": q, "status": "open"}, 0}, {args{"reply_to": q, "kind": "note"}, 0}, {args{"kind": "note", "status": "open"}, 117},
		{args{"message_id": event.NewMessageID()}, 0}, {args{"reply_to": "nothing"}, 0},
	} {
		if out := w.list(tc.a); out.Total != tc.total || out.Returned != min(tc.total, board.ListLimit) || out.Messages == nil {
			t.Errorf("%v: %d of %d", tc.a, out.Returned, out.Total)
		}
	}
	for limit, want := range map[int]int{0: 1, -5: 1, 7: 7, 100: 100, 101: 100} {
		// A hundred of the smallest messages there are do not fit into one answer.
		if out := w.list(args{"limit": limit}); out.Limit != want || out.Returned != min(want, 86) || !out.Truncated || *out.NextOffset != out.Returned {
			t.Errorf("limit %d: %d of %d", limit, out.Returned, out.Total)
		}
	}
	seen, offset := map[event.MessageID]bool{}, 0
	for {
		out := w.list(args{"limit": 50, "offset": offset})
		for _, m := range out.Messages {
			if seen[m.MessageID] {
				t.Errorf("%s is on two pages", m.MessageID)
			}
			seen[m.MessageID] = true
		}
		if out.NextOffset == nil {
			break
		}
		offset = *out.NextOffset
	}
	if len(seen) != 120 {
		t.Errorf("%d messages on all pages", len(seen))
	}
	if out := w.list(args{"offset": 500}); out.Returned != 0 || out.Truncated {
		t.Errorf("beyond the end: %+v", out)
	}
	if out := w.list(args{"kind": "question"}); out.Messages[0].MessageID != q || out.Messages[0].ResolvedAt == nil {
		t.Errorf("%+v", out.Messages)
	}
	if first, last := w.list(args{"limit": 1}), w.list(args{"offset": 119}); first.Messages[0].CreatedAt < last.Messages[0].CreatedAt || last.Messages[0].MessageID != q {
		t.Error("the newest is not first")
	}
	w.refuse(&board.ListMessages, args{"kind": "order"}, fault.InvalidArguments)
	w.refuse(&board.ListMessages, args{"status": "done"}, fault.InvalidArguments)
}

// The largest messages there are: a page is bounded, holds at least one, and leads to the next.
//
// Covers: MSG-05
func TestPagesOfLargeMessages(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	for range 5 {
		w.post(args{"message": strings.Repeat("🏴", board.MaxText)})
	}
	for offset := range 5 {
		out := w.list(args{"offset": offset})
		if raw, _ := json.Marshal(out.Messages); len(out.Messages) != 1 || len(raw) > board.MaxPageBytes || out.Truncated != (offset < 4) {
			t.Errorf("offset %d: %d messages, %d bytes", offset, len(out.Messages), len(raw))
		}
	}
	for n := range 5 {
		o := w.observe(token, nil)
		if len(o.Messages) != 1 || o.HasMore != (n < 4) || !o.Changed {
			t.Errorf("look %d: %d messages, more %v", n, len(o.Messages), o.HasMore)
		}
		token = o.Token
	}
}

// Covers: MSG-06, MSG-16, MSG-17, MSG-18
func TestResolveIsOneChange(t *testing.T) {
	w := newWorld(t)
	id := w.post(args{"kind": "risk"}).MessageID
	token := w.observe("", nil).Token
	resolve := func(a args) board.ResolveOut {
		a["message_id"] = id
		return calltest.Must[board.ResolveOut](w.Env, &board.ResolveMessage, w.on(a))
	}
	before := w.board().Revision
	if out := resolve(args{"resolution": "gone " + "ghp_0123456789abcdefghijABCDEFGHIJ012345"}); !out.Changed || out.Message.Status != view.MessageDone ||
		*out.Message.Resolution != "gone [redacted]" || out.Message.ResolvedAt == nil {
		t.Errorf("%+v", out)
	}
	for range 2 {
		if out := resolve(args{"resolution": "gone " + "ghp_0123456789abcdefghijABCDEFGHIJ012345"}); out.Changed || out.Message.Status != view.MessageDone {
			t.Errorf("again: %+v", out)
		}
		if out := resolve(args{}); out.Changed {
			t.Errorf("again: %+v", out)
		}
	}
	if now := w.board().Revision; now != before+1 {
		t.Errorf("the revision moved by %d", now-before)
	}
	if o := w.observe(token, nil); len(o.Messages) != 1 || o.Messages[0].Status != view.MessageDone || o.HistoryLost {
		t.Errorf("%+v", o)
	}
	w.refuse(&board.ResolveMessage, args{"message_id": id, "resolution": strings.Repeat("x", board.MaxText+1)}, fault.InvalidMessage)
	w.refuse(&board.ResolveMessage, args{"message_id": event.NewMessageID()}, fault.UnknownMessage)
	w.refuse(&board.ResolveMessage, args{"message_id": "x"}, fault.UnknownMessage)
}

// Covers: MSG-09, MSG-50, SES-24
func TestClosedBoardIsOnlyRead(t *testing.T) {
	w := newWorld(t)
	keyed := args{"kind": "note", "message": "x", "delivery_key": "k"}
	w.post(keyed)
	todo := w.todo()
	done := w.completion(todo, "c")
	first := calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, done)
	token := w.observe("", nil).Token
	open := w.todo()
	w.close()
	w.refuse(&board.PostMessage, args{"kind": "note", "message": "y"}, fault.SessionClosed)
	w.refuse(&board.PostMessage, keyed, fault.SessionClosed)
	w.refuse(&board.CompleteMessage, done, fault.SessionClosed)
	w.refuse(&board.ResolveMessage, args{"message_id": todo}, fault.SessionClosed)
	w.refuse(&board.ResolveMessage, args{"message_id": event.NewMessageID()}, fault.SessionClosed)
	if out := w.list(args{"message_id": first.AnswerMessageID}); out.Returned != 1 || out.Messages[0].Message != "done" {
		t.Errorf("the outcome is not readable: %+v", out)
	}
	if o := w.observe(token, nil); len(o.Messages) != 1 || o.Messages[0].MessageID != open {
		t.Errorf("%+v", o)
	}
	if a := w.assignment(open); a.Completable || a.Fence != nil || a.ReasonCode != "session_closed" {
		t.Errorf("%+v", a)
	}
}

// Who has no authority over the Session reads and writes nothing of its board, whatever he holds.
//
// Covers: MSG-12
func TestBoardOfAnotherAuthority(t *testing.T) {
	w := newWorld(t)
	id := w.todo()
	token := w.observe("", nil).Token
	fence := *w.assignment(id).Fence
	b := calltest.Someone("b")
	for spec, a := range map[*call.Spec]args{
		&board.ObserveMessages: {"after_observation_token": token},
		&board.ListMessages:    {},
		&board.ReadDiscussion:  {},
		&board.GetAssignment:   {"message_id": id},
		&board.ResolveMessage:  {"message_id": id},
		&board.PostMessage:     {"kind": "note", "message": "x"},
		&board.CompleteMessage: {"message_id": id, "answer": "x", "completion_key": "k", "expected_assignment_fence": fence},
	} {
		w.Refused(b, spec, w.on(a), fault.SessionAuthorityDenied)
	}
	for _, spec := range []*call.Spec{&board.PostMessage, &board.ResolveMessage, &board.CompleteMessage} {
		w.Refused(calltest.Owner("session:collaborate"), spec, w.on(nil), fault.InsufficientScope)
	}
}

// Covers: MSG-43
func TestDiscussionIsOfTheWholeBoard(t *testing.T) {
	w := newWorld(t)
	for n := range 7 {
		w.post(args{"kind": "todo", "message": strings.Repeat("x", 235+n), "priority": []string{"low", "high"}[n%2]})
	}
	d := calltest.Must[view.Discussion](w.Env, &board.ReadDiscussion, w.on(args{"limit": 9}))
	if d.Counts.Total != 7 || d.Todos.Total != 7 || d.Todos.Returned != view.MaxDiscussionItems || !d.Todos.Truncated || d.HighTodos.Total != 3 ||
		!d.Todos.Items[0].Truncated || d.Todos.Items[4].Truncated || d.SessionID != w.id {
		t.Errorf("%+v", d)
	}
}
