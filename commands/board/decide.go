// Package board holds the commands on a Session's message board, one file each, and the pure
// decisions behind them.
package board

import (
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// Post is a message as it is to be stored: redacted, within bounds, its key and payload hashed.
type Post struct {
	ID          event.MessageID
	Kind        event.MessageKind
	Text        string
	Tags        []string
	Priority    event.Priority
	ReplyTo     event.MessageID
	Supersedes  event.MessageID
	RequiresAck bool
	Author      event.SessionID
	Key         string // hash; empty: none was given
	Payload     string
}

// DecidePost puts a message on the board of an Active Session, or finds the retained one that
// the delivery key stands for (MSG-27). The lifecycle comes first: on a Closed Session nothing
// is replayed (MSG-50).
func DecidePost(core session.Core, b session.Board, p Post) (first *session.Message, _ []event.Event, err error) {
	if core.Lifecycle != session.Active {
		return nil, nil, closed()
	}
	if m, ok := b.Delivered(p.Key); ok {
		if m.Payload != p.Payload {
			return nil, nil, fault.New(fault.IdempotencyConflict, "this delivery_key was used for another message").
				WithField("delivery_key").WithNext("take a new delivery_key for a new message")
		}
		return m, nil, nil
	}
	if p.ReplyTo != "" {
		if _, ok := b.Find(p.ReplyTo); !ok {
			return nil, nil, unknownMessage("reply_to")
		}
	}
	if err := supersedes(b, p); err != nil {
		return nil, nil, err
	}
	return nil, []event.Event{event.MessagePosted{Message: p.ID, Kind: p.Kind, Text: p.Text, Tags: p.Tags, Priority: p.Priority,
		ReplyTo: p.ReplyTo, Supersedes: p.Supersedes, RequiresAck: p.RequiresAck, Author: p.Author, Key: p.Key, Payload: p.Payload}}, nil
}

// supersedes checks that a message takes the place of one like it that none has replaced yet
// (MSG-49).
func supersedes(b session.Board, p Post) error {
	if p.Supersedes == "" {
		return nil
	}
	old, ok := b.Find(p.Supersedes)
	switch {
	case !ok:
		return unknownMessage("supersedes")
	case old.Kind != p.Kind:
		return fault.New(fault.InvalidMessage, "a message supersedes one of its own kind").WithField("supersedes").WithReason("other_kind").
			WithNext("name a message of this kind, or leave supersedes out")
	case old.SupersededBy != "":
		return fault.New(fault.InvalidMessage, "another message has superseded that one already").WithField("supersedes").
			WithReason("superseded").WithNext("name the newest one: list_session_messages shows superseded_by")
	}
	return nil
}

// DecideResolve is the processed state of a message of an Active Session. Without a resolution
// the one that is there stays; what is so already changes nothing (MSG-06).
func DecideResolve(core session.Core, b session.Board, id event.MessageID, resolution *string) ([]event.Event, error) {
	if core.Lifecycle != session.Active {
		return nil, closed()
	}
	m, ok := b.Find(id)
	if !ok {
		return nil, unknownMessage("message_id")
	}
	text := m.Resolution
	if resolution != nil {
		text = *resolution
	}
	if m.Status == session.MessageDone && m.Resolution == text {
		return nil, nil
	}
	return []event.Event{event.MessageResolved{Message: id, Resolution: text}}, nil
}

// Complete is an answer to a todo as it is to be stored, under the fence of the assignment that
// it was made on.
type Complete struct {
	Todo       event.MessageID
	Answer     event.MessageID
	Completion event.CompletionID
	Text       string
	Tags       []string
	Priority   event.Priority
	Author     event.SessionID
	Key        string // hash
	Payload    string
	Fence      string
}

// DecideComplete answers and resolves a todo of an Active Session in one event, or finds the
// todo that was completed under the same key before: then the fence, outdated by that very
// completion, is not looked at (MSG-36). now gives the assignment as it is; where the fence is
// of another one nothing changes, and the refusal carries it (MSG-32, MSG-34).
func DecideComplete(core session.Core, b session.Board, c Complete, now func(*session.Message) Assignment) (first *session.Message, _ []event.Event, err error) {
	if core.Lifecycle != session.Active {
		return nil, nil, closed()
	}
	if m, ok := b.CompletedUnder(c.Key); ok {
		if m.ID != c.Todo || m.DonePayload != c.Payload {
			return nil, nil, fault.New(fault.IdempotencyConflict, "this completion_key was used for another answer").
				WithField("completion_key").WithNext("read the board: list_session_messages shows what was completed")
		}
		return m, nil, nil
	}
	todo, ok := b.Find(c.Todo)
	switch {
	case !ok:
		return nil, nil, unknownMessage("message_id")
	case todo.Kind != event.MessageTodo:
		return nil, nil, fault.New(fault.NotTodo, "only a todo can be completed").WithField("message_id").
			WithNext("answer it with post_session_message and reply_to, or close it with resolve_session_message")
	case todo.Status != session.MessageOpen:
		return nil, nil, fault.New(fault.AlreadyCompleted, "this todo is resolved already; nothing was changed").
			With("todo", todo.Show(core.ID)).WithNext("do not do the work again; get_session_assignment shows how it ended, with what was answered")
	}
	if a := now(todo); !a.takes(c.Fence) {
		return nil, nil, stale(a)
	}
	return nil, []event.Event{event.MessageCompleted{Todo: c.Todo, Answer: c.Answer, Completion: c.Completion, Text: c.Text, Tags: c.Tags,
		Priority: c.Priority, Author: c.Author, Key: c.Key, Payload: c.Payload}}, nil
}

// Look is what an observer at a cursor gets.
type Look struct {
	Messages []*session.Message
	// Next is the cursor behind what is returned; More tells that the board goes on behind it.
	Next uint64
	More bool
	// Lost tells that what changed after the cursor cannot be told whole any more (MSG-20).
	Lost bool
}

// Changed reports whether the board is, or may be, another one than at the cursor.
func (l Look) Changed() bool { return len(l.Messages) > 0 || l.Lost }

// DecideObserve gives what changed after a cursor, at most limit messages in the order of
// their changes, each as it is now (MSG-18). fits says how many of them an answer holds, of a
// page that is not empty at least one. A cursor beyond the board's end is none that this board
// has given (MSG-13).
func DecideObserve(b session.Board, after uint64, limit int, fits func([]*session.Message) int) (Look, error) {
	if after > b.Revision {
		return Look{}, invalidToken(tokenFuture)
	}
	l := Look{Messages: b.Since(after), Next: b.Revision, Lost: after < b.Low}
	n := len(l.Messages)
	if l.Messages = l.Messages[:min(n, limit)]; n > 0 {
		l.Messages = l.Messages[:fits(l.Messages)]
	}
	// The page's end, not the board's: what changes between two pages has a later revision.
	if l.More = len(l.Messages) < n; l.More {
		l.Next = l.Messages[len(l.Messages)-1].Rev
	}
	return l, nil
}

func closed() error {
	return fault.New(fault.SessionClosed, "this Session is closed; its board is only read").
		WithNext("read it with list_session_messages; call work_on_project with the project to start a new Session")
}

func unknownMessage(field string) error {
	return fault.New(fault.UnknownMessage, "no such message is retained on this Session's board").WithField(field).
		WithNext("call list_session_messages to see what is there")
}

// Why a text is no token of a board (MSG-13).
const (
	tokenMalformed = "malformed"
	tokenOversized = "oversized"
	tokenForeign   = "wrong_session"   // of another one, or of an earlier or later one with the same id
	tokenFuture    = "future_revision" // of changes that this board has not seen
)

func invalidToken(reason string) *fault.Error {
	return fault.New(fault.InvalidObservation, "this is no observation token of this Session").WithField("after_observation_token").
		WithReason(reason).WithNext("call observe_session_messages without a token for a new one")
}

// waitOf is a wait in whole seconds.
func waitOf(secs int) time.Duration { return time.Duration(secs) * time.Second }
