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

// Apply folds the board's events of one commit.
func (b Board) Apply(c event.Commit) Board {
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.MessagePosted:
			b = b.posted(c.At, e)
		case event.MessageResolved:
			b = b.change(e.Message, func(m *Message) { m.Status, m.Resolved, m.Resolution = MessageDone, c.At, e.Resolution }, true)
		case event.MessageCompleted:
			b = b.completed(c.At, e)
		case event.MessagesAcknowledged:
			for _, id := range e.Messages {
				if m, ok := b.Find(id); ok && m.Acked.IsZero() {
					b = b.change(id, func(m *Message) { m.Acked = c.At }, false)
				}
			}
		default: // not of the board
		}
	}
	return b
}

func (b Board) posted(at time.Time, e event.MessagePosted) Board {
	if b.index(e.Message) >= 0 {
		return b
	}
	b = b.change(e.Supersedes, func(m *Message) { m.SupersededBy = e.Message }, true)
	return b.add(Message{ID: e.Message, Kind: e.Kind, Status: MessageOpen, Priority: e.Priority, Text: e.Text, Tags: e.Tags,
		ReplyTo: e.ReplyTo, Supersedes: e.Supersedes, RequiresAck: e.RequiresAck, Author: e.Author, Created: at,
		Key: e.Key, Payload: e.Payload})
}

func (b Board) completed(at time.Time, e event.MessageCompleted) Board {
	if b.index(e.Todo) < 0 || b.index(e.Answer) >= 0 {
		return b
	}
	b = b.change(e.Todo, func(m *Message) {
		m.Status, m.Resolved, m.ResolvedBy, m.Completion = MessageDone, at, e.Answer, e.Completion
		m.DoneKey, m.DonePayload = e.Key, e.Payload
	}, true)
	return b.add(Message{ID: e.Answer, Kind: event.MessageAnswer, Status: MessageOpen, Priority: e.Priority, Text: e.Text,
		Tags: e.Tags, ReplyTo: e.Todo, Author: e.Author, Created: at, Completion: e.Completion}, e.Todo)
}

// change replaces one message; one that has left stays away.
func (b Board) change(id event.MessageID, with func(*Message), duty bool) Board {
	i := b.index(id)
	if i < 0 {
		return b
	}
	m := *b.list[i]
	with(&m)
	b.Revision++
	m.Rev = b.Revision
	if duty {
		m.Duty = b.Revision
	}
	b.list = slices.Clone(b.list)
	b.list[i] = &m
	return b
}

// add appends a message and lets the oldest leave, but none of those to keep (MSG-04).
func (b Board) add(m Message, keep ...event.MessageID) Board {
	b.Revision++
	m.Rev, m.Duty = b.Revision, b.Revision
	b.list = append(slices.Clip(b.list), &m)
	for len(b.list) > MaxMessages {
		i := slices.IndexFunc(b.list, func(x *Message) bool { return x.ID != m.ID && !slices.Contains(keep, x.ID) })
		b = b.evict(i)
	}
	return b
}

// evict lets one message leave. What was said about an assignment is not whole any more.
func (b Board) evict(i int) Board {
	gone := b.list[i]
	b.Low = max(b.Low, gone.Rev)
	b.list = slices.Delete(slices.Clone(b.list), i, i+1)
	if j := b.index(gone.ReplyTo); j >= 0 && !b.list[j].RepliesLost {
		m := *b.list[j]
		m.RepliesLost = true
		b.list[j] = &m
	}
	return b
}
