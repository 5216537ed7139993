package session

import (
	"errors"
	"slices"
	"time"

	"webcodex/eventlog/event"
)

// messageForm is a message as its row and carried state have it. New members go with omitempty
// or omitzero.
type messageForm struct {
	ID           event.MessageID    `json:"id"`
	Kind         event.MessageKind  `json:"kind"`
	Status       MessageStatus      `json:"status"`
	Priority     event.Priority     `json:"priority"`
	Text         string             `json:"text"`
	Tags         []string           `json:"tags,omitempty"`
	ReplyTo      event.MessageID    `json:"reply_to,omitempty"`
	RequiresAck  bool               `json:"requires_ack,omitempty"`
	Acked        *int64             `json:"acked,omitempty"`
	Supersedes   event.MessageID    `json:"supersedes,omitempty"`
	SupersededBy event.MessageID    `json:"superseded_by,omitempty"`
	Author       event.SessionID    `json:"author,omitempty"`
	Created      int64              `json:"created"`
	Resolved     *int64             `json:"resolved,omitempty"`
	Resolution   string             `json:"resolution,omitempty"`
	ResolvedBy   event.MessageID    `json:"resolved_by,omitempty"`
	Completion   event.CompletionID `json:"completion,omitempty"`
	Key          string             `json:"key,omitempty"`
	Payload      string             `json:"payload,omitempty"`
	DoneKey      string             `json:"done_key,omitempty"`
	DonePayload  string             `json:"done_payload,omitempty"`
	// Tracking: a message without it is not admitted (MSG-42).
	Place       uint64 `json:"place,omitempty"`
	Rev         uint64 `json:"rev,omitempty"`
	Duty        uint64 `json:"duty,omitempty"`
	RepliesLost bool   `json:"replies_lost,omitempty"`
}

var messageForms = event.NewForm[messageForm]()

var errMessage = errors.New("a message row has not the form of one")

// appendMessage writes the bytes of one message.
func appendMessage(b []byte, m *Message) []byte {
	f := formOfMessage(m)
	return messageForms.Append(b, &f)
}

// decodeMessage reads what appendMessage wrote, from text that is known to be UTF-8.
func decodeMessage(s string) (*Message, error) {
	var f messageForm
	if err := messageForms.ReadString(s, &f); err != nil {
		return nil, errors.Join(errMessage, err)
	}
	return f.message(), nil
}

func formOfMessage(m *Message) messageForm {
	return messageForm{m.ID, m.Kind, m.Status, m.Priority, m.Text, m.Tags, m.ReplyTo, m.RequiresAck, stamp(m.Acked),
		m.Supersedes, m.SupersededBy, m.Author, m.Created.UnixMilli(), stamp(m.Resolved), m.Resolution, m.ResolvedBy, m.Completion,
		m.Key, m.Payload, m.DoneKey, m.DonePayload, m.Place, m.Rev, m.Duty, m.RepliesLost}
}

func (f *messageForm) message() *Message {
	return &Message{f.ID, f.Kind, f.Status, f.Priority, f.Text, f.Tags, f.ReplyTo, f.RequiresAck, unstamp(f.Acked),
		f.Supersedes, f.SupersededBy, f.Author, timeOf(f.Created), unstamp(f.Resolved), f.Resolution, f.ResolvedBy, f.Completion,
		f.Key, f.Payload, f.DoneKey, f.DonePayload, f.Place, f.Rev, f.Duty, f.RepliesLost}
}

// stamp is a time that may not have come.
func stamp(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}

func unstamp(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return timeOf(*ms)
}

// provable reports whether a message holds what its observation, its assignment and its
// completion are proven by on a board of that revision (MSG-42, RES-08).
func (m *Message) provable(revision uint64) bool {
	if m.ID == "" || m.Place == 0 || m.Place > m.Duty || m.Duty > m.Rev || m.Rev > revision ||
		m.Status != MessageOpen && m.Status != MessageDone {
		return false
	}
	switch {
	case m.ResolvedBy != "":
		return m.Kind == event.MessageTodo && m.Status == MessageDone && m.Completion != "" && m.DoneKey != "" && m.DonePayload != ""
	case m.Completion != "":
		return m.Kind == event.MessageAnswer && m.ReplyTo != "" && m.DoneKey == "" && m.DonePayload == ""
	default:
		return m.DoneKey == "" && m.DonePayload == ""
	}
}

// newBoard makes a board of retained messages, oldest first; it owns the slice from now on.
// What is not provable, or stands twice, is dropped and not repaired: nobody who has seen less
// than all can be told what it was, and its assignment is not whole (MSG-42, RES-08).
func newBoard(revision, low uint64, list []*Message) (b Board, dropped int) {
	b = Board{Revision: revision, Low: min(low, revision), list: make([]*Message, 0, len(list))}
	ids, revs := make(map[event.MessageID]bool, len(list)), make(map[uint64]bool, len(list))
	var parents []event.MessageID // of what was dropped
	place := uint64(0)
	for _, m := range list {
		if !m.provable(revision) || m.Place <= place || revs[m.Rev] || ids[m.ID] {
			parents = append(parents, m.ReplyTo)
			continue
		}
		place, revs[m.Rev], ids[m.ID] = m.Place, true, true
		b.list = append(b.list, m)
	}
	if dropped = len(parents); dropped > 0 {
		b.Low = revision
	}
	for _, id := range parents {
		b = b.lost(id)
	}
	for len(b.list) > MaxMessages {
		b = b.evict(0)
	}
	return b, dropped
}

// sanitised is a message that carried state gives (RES-13).
func (m *Message) sanitised() *Message {
	var s sanitiser
	out := *m
	if !slices.Contains(event.MessageKinds(), out.Kind) {
		put(&s, &out.Kind, event.MessageNote)
	}
	s.said(&out.Text, &out.Tags, &out.Priority)
	s.text(&out.Resolution, MaxMessageChars)
	for _, id := range []*event.MessageID{&out.ID, &out.ReplyTo, &out.Supersedes, &out.SupersededBy, &out.ResolvedBy} {
		ident(&s, id)
	}
	ident(&s, &out.Author)
	ident(&s, &out.Completion)
	opaque(&s, &out.Key, &out.Payload, &out.DoneKey, &out.DonePayload)
	if !s.changed {
		return m
	}
	return &out
}

func formsOfBoard(b Board) []messageForm {
	forms := make([]messageForm, len(b.list))
	for i, m := range b.list {
		forms[i] = formOfMessage(m)
	}
	return forms
}

// carriedBoard is the board of carried state.
func carriedBoard(revision, low uint64, forms []messageForm) Board {
	list := make([]*Message, len(forms))
	for i := range forms {
		list[i] = forms[i].message().sanitised()
	}
	b, _ := newBoard(revision, low, list)
	return b
}
