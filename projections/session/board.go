package session

import (
	"slices"
	"time"

	"webcodex/eventlog/event"
)

// MessageStatus of a message (MSG-01).
type MessageStatus string

// Message statuses.
const (
	MessageOpen MessageStatus = "open"
	MessageDone MessageStatus = "resolved"
)

// Message is one message of a board as it is now. It is immutable: a change makes a new one.
type Message struct {
	ID          event.MessageID
	Kind        event.MessageKind
	Status      MessageStatus
	Priority    event.Priority
	Text        string
	Tags        []string
	ReplyTo     event.MessageID
	RequiresAck bool
	// Acked is when the first ACK was observed; no receipt of anything (ACK-18).
	Acked        time.Time
	Supersedes   event.MessageID
	SupersededBy event.MessageID
	Author       event.SessionID
	Created      time.Time
	Resolved     time.Time
	Resolution   string
	ResolvedBy   event.MessageID
	Completion   event.CompletionID
	// Key and Payload are hashes of the delivery key and of what came under it.
	Key, Payload string
	// DoneKey and DonePayload are hashes of the completion key and of the answer under it, at
	// the todo.
	DoneKey, DonePayload string
	// Place is the board's revision when it was posted: messages lie in that order.
	Place uint64
	// Rev is the board's revision at the message's newest visible change (MSG-19).
	Rev uint64
	// Duty is that of its newest change that matters to an assignment: no ACK (MSG-33).
	Duty uint64
	// RepliesLost tells that a direct reply has left the board (MSG-35).
	RepliesLost bool
}

// Board is a Session's messages, oldest first, and what observation needs (MSG-10, MSG-19).
// It is immutable.
type Board struct {
	// Revision counts observable changes, one for each message changed.
	Revision uint64
	// Low is the highest revision of a message that has left: who has seen less cannot be told
	// all any more (MSG-20).
	Low  uint64
	list []*Message
	// unread messages lie in rows; where there are any, list is empty and nothing is folded.
	unread int
}

// Len is how many messages are retained.
func (b Board) Len() int { return len(b.list) }

// Messages are the retained ones, oldest first. Callers must not change them.
func (b Board) Messages() []*Message { return b.list }

// Find gives a retained message.
func (b Board) Find(id event.MessageID) (*Message, bool) {
	i := b.index(id)
	if i < 0 {
		return nil, false
	}
	return b.list[i], true
}

func (b Board) index(id event.MessageID) int {
	if id == "" {
		return -1
	}
	return slices.IndexFunc(b.list, func(m *Message) bool { return m.ID == id })
}

// Delivered gives the retained message that a delivery key's hash stands for (MSG-27).
func (b Board) Delivered(key string) (*Message, bool) {
	return b.first(func(m *Message) bool { return key != "" && m.Key == key })
}

// CompletedUnder gives the retained todo that was completed under a completion key's hash.
func (b Board) CompletedUnder(key string) (*Message, bool) {
	return b.first(func(m *Message) bool { return key != "" && m.DoneKey == key })
}

func (b Board) first(want func(*Message) bool) (*Message, bool) {
	i := slices.IndexFunc(b.list, want)
	if i < 0 {
		return nil, false
	}
	return b.list[i], true
}

// Replies are the retained direct replies to a message, oldest first.
func (b Board) Replies(id event.MessageID) []*Message {
	var out []*Message
	for _, m := range b.list {
		if m.ReplyTo == id && id != "" {
			out = append(out, m)
		}
	}
	return out
}

// Since gives what changed after a revision, in the order of the changes.
func (b Board) Since(rev uint64) []*Message {
	var out []*Message
	for _, m := range b.list {
		if m.Rev > rev {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y *Message) int {
		if x.Rev < y.Rev {
			return -1
		}
		return 1
	})
	return out
}

// Apply folds the board's events of one commit. What a decision refuses changes nothing here
// either, should a log hold it: a message without an id or posted twice, a change of one that
// has left, a second completion, a second ACK.
func (b Board) Apply(c event.Commit) Board {
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.MessagePosted:
			b = b.posted(c.At, e)
		case event.MessageResolved:
			b = b.change(e.Message, true, func(m *Message) bool { return m.resolve(c.At, e.Resolution) })
		case event.MessageCompleted:
			b = b.completed(c.At, e)
		case event.MessagesAcknowledged:
			for _, id := range e.Messages {
				b = b.change(id, false, func(m *Message) bool { return m.acknowledge(c.At) })
			}
		default: // not of the board
		}
	}
	return b
}

// resolve reports whether a status or a field changed (MSG-16); the time is that of the status.
func (m *Message) resolve(at time.Time, resolution string) bool {
	if m.Status == MessageDone && m.Resolution == resolution {
		return false
	}
	if m.Status != MessageDone {
		m.Status, m.Resolved = MessageDone, at
	}
	m.Resolution = resolution
	return true
}

// acknowledge takes the first ACK of a message that asks for one (ACK-16, ACK-28).
func (m *Message) acknowledge(at time.Time) bool {
	if !m.RequiresAck || !m.Acked.IsZero() {
		return false
	}
	m.Acked = at
	return true
}

func (b Board) posted(at time.Time, e event.MessagePosted) Board {
	if e.Message == "" || b.index(e.Message) >= 0 {
		return b
	}
	if old, ok := b.Find(e.Supersedes); ok && (old.Kind != e.Kind || old.SupersededBy != "") {
		e.Supersedes = "" // MSG-49
	}
	// Room first: a message that leaves with this post was not changed by it, so nobody who has
	// seen all of the board loses history.
	b = b.room()
	b = b.change(e.Supersedes, true, func(m *Message) bool {
		m.SupersededBy = e.Message
		return true
	})
	return b.add(Message{ID: e.Message, Kind: e.Kind, Status: MessageOpen, Priority: e.Priority, Text: e.Text, Tags: e.Tags,
		ReplyTo: e.ReplyTo, Supersedes: e.Supersedes, RequiresAck: e.RequiresAck, Author: e.Author, Created: at,
		Key: e.Key, Payload: e.Payload})
}

// completed answers and resolves an open todo. An event that lacks what its replay is proven by
// is no completion (MSG-42).
func (b Board) completed(at time.Time, e event.MessageCompleted) Board {
	todo, ok := b.Find(e.Todo)
	if !ok || todo.Kind != event.MessageTodo || todo.Status != MessageOpen || b.index(e.Answer) >= 0 ||
		e.Answer == "" || e.Completion == "" || e.Key == "" || e.Payload == "" {
		return b
	}
	b = b.room(e.Todo)
	b = b.change(e.Todo, true, func(m *Message) bool {
		m.Status, m.Resolved, m.ResolvedBy, m.Completion = MessageDone, at, e.Answer, e.Completion
		m.DoneKey, m.DonePayload = e.Key, e.Payload
		return true
	})
	return b.add(Message{ID: e.Answer, Kind: event.MessageAnswer, Status: MessageOpen, Priority: e.Priority, Text: e.Text,
		Tags: e.Tags, ReplyTo: e.Todo, Author: e.Author, Created: at, Completion: e.Completion})
}

// change replaces one message if with changes it; one that has left stays away.
func (b Board) change(id event.MessageID, duty bool, with func(*Message) bool) Board {
	i := b.index(id)
	if i < 0 {
		return b
	}
	m := *b.list[i]
	if !with(&m) {
		return b
	}
	b.Revision++
	m.Rev = b.Revision
	if duty {
		m.Duty = b.Revision
	}
	b.list = slices.Clone(b.list)
	b.list[i] = &m
	return b
}

// add appends a message where there is room.
func (b Board) add(m Message) Board {
	b.Revision++
	m.Place, m.Rev, m.Duty = b.Revision, b.Revision, b.Revision
	b.list = append(append(make([]*Message, 0, len(b.list)+1), b.list...), &m)
	return b
}

// room lets the oldest leave until one more fits, but none of those to keep (MSG-04).
func (b Board) room(keep ...event.MessageID) Board {
	for len(b.list) >= MaxMessages {
		b = b.evict(slices.IndexFunc(b.list, func(m *Message) bool { return !slices.Contains(keep, m.ID) }))
	}
	return b
}

// evict lets one message leave. What was said about an assignment is not whole any more.
func (b Board) evict(i int) Board {
	gone := b.list[i]
	b.Low = max(b.Low, gone.Rev)
	if i == 0 {
		b.list = b.list[1:] // the next change copies it
	} else {
		b.list = slices.Delete(slices.Clone(b.list), i, i+1)
	}
	return b.lost(gone.ReplyTo)
}

// lost marks the message that one of its replies has left.
func (b Board) lost(parent event.MessageID) Board {
	i := b.index(parent)
	if i < 0 || b.list[i].RepliesLost {
		return b
	}
	m := *b.list[i]
	m.RepliesLost = true
	b.list = slices.Clone(b.list)
	b.list[i] = &m
	return b
}
