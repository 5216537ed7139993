package board

import (
	"encoding/json"
	"strconv"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/token"
	"webcodex/projections/session"
)

// Assignment is a todo with all that was said to it, from one snapshot of the board (MSG-30).
type Assignment struct {
	Todo session.MessageView `json:"todo"`
	// Replies are the direct ones, oldest first; where they do not fit, the newest that do.
	Replies      []session.MessageView `json:"replies"`
	RepliesTotal int                   `json:"replies_total"`
	// Fence proves this very assignment; null where none can be completed.
	Fence       *string `json:"assignment_fence"`
	Completable bool    `json:"completable"`
	ReasonCode  string  `json:"reason_code,omitempty"`
}

// Reasons why an assignment cannot be completed.
const (
	reasonClosed   = "session_closed"
	reasonNoTodo   = "not_a_todo"
	reasonResolved = "todo_resolved"
	reasonLost     = "replies_lost"      // retention took one of the replies (MSG-35)
	reasonMany     = "too_many_replies"  // more than MaxReplies
	reasonLarge    = "replies_too_large" // more than MaxReplyBytes
)

const (
	fenceUse    = "webcodex.assignment-fence.v1"
	fencePrefix = "wsa1_"
)

// fencing makes the fences of one principal in one history of the log. A history whose tail was
// lost counts its revisions again, so a fence holds in its own alone.
type fencing struct {
	keys             *token.Keys
	principal, epoch string
}

func fencingOf(c *call.Call) fencing {
	return fencing{keys: c.Tokens(), principal: c.Principal.Actor.Principal, epoch: c.Epoch()}
}

// assign gives the assignment of a retained message.
func (f fencing) assign(core session.Core, b session.Board, todo *session.Message) Assignment {
	replies := b.Replies(todo.ID)
	a := Assignment{Todo: todo.Show(core.ID), RepliesTotal: len(replies)}
	shown := replies[len(replies)-min(len(replies), MaxReplies):]
	views := make([]session.MessageView, len(shown))
	for i, m := range shown {
		views[i] = m.Show(core.ID)
	}
	a.Replies = newest(views, MaxReplyBytes)
	switch {
	case core.Lifecycle != session.Active:
		a.ReasonCode = reasonClosed
	case todo.Kind != event.MessageTodo:
		a.ReasonCode = reasonNoTodo
	case todo.Status != session.MessageOpen:
		a.ReasonCode = reasonResolved
	case todo.RepliesLost:
		a.ReasonCode = reasonLost
	case len(replies) > MaxReplies:
		a.ReasonCode = reasonMany
	case len(a.Replies) < len(replies):
		a.ReasonCode = reasonLarge
	default:
		fence := f.fence(core, todo, replies)
		a.Fence, a.Completable = &fence, true
	}
	return a
}

// fence covers what an assignment means: the todo and each direct reply, at their last change
// that was no ACK. Other messages, calls and ACKs leave it as it is (MSG-33).
func (f fencing) fence(core session.Core, todo *session.Message, replies []*session.Message) string {
	parts := []string{string(core.ID), core.Nonce, f.epoch, f.principal, string(todo.ID), strconv.FormatUint(todo.Duty, 10)}
	for _, m := range replies {
		parts = append(parts, string(m.ID), strconv.FormatUint(m.Duty, 10))
	}
	return fencePrefix + f.keys.Fingerprint(fenceUse, parts...)
}

// takes reports whether the fence is of this assignment.
func (a Assignment) takes(fence string) bool { return a.Fence != nil && token.Equal(*a.Fence, fence) }

func stale(a Assignment) error {
	e := fault.New(fault.FenceStale, "the assignment is not the one that the fence stands for; nothing was changed").
		WithField("expected_assignment_fence").With("assignment", a)
	if !a.Completable {
		return e.WithReason(a.ReasonCode).WithNext("it cannot be completed any more: post an answer with reply_to, or a new todo")
	}
	return e.WithNext("read the assignment as it is now: it is in this refusal's output, or call get_session_assignment; if your answer still holds, call again with its assignment_fence")
}

// newest are as many of the last as fit into n bytes of JSON.
func newest(views []session.MessageView, n int) []session.MessageView {
	first := len(views)
	for ; first > 0; first-- {
		if n -= sizeOf(views[first-1]); n < 0 {
			break
		}
	}
	return views[first:]
}

// sizeOf a value as JSON in a list.
func sizeOf(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return MaxReplyBytes + 1 // what cannot be shown does not fit
	}
	return len(b) + 1
}
