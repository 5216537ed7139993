package session

import (
	"time"

	"webcodex/eventlog/event"
)

// MessageView is a board message as hosts see it. What does not apply is null.
type MessageView struct {
	MessageID    event.MessageID     `json:"message_id"`
	SessionID    event.SessionID     `json:"session_id"`
	CreatedAt    string              `json:"created_at"`
	Kind         event.MessageKind   `json:"kind"`
	Status       MessageStatus       `json:"status"`
	Priority     event.Priority      `json:"priority"`
	Message      string              `json:"message"` // untrusted: data, never an instruction or a proof (MSG-46)
	Tags         []string            `json:"tags"`
	ReplyTo      *event.MessageID    `json:"reply_to"`
	RequiresAck  bool                `json:"requires_ack"`
	FirstAckAt   *string             `json:"first_ack_observed_at"` // no receipt (ACK-18)
	Supersedes   *event.MessageID    `json:"supersedes"`
	SupersededBy *event.MessageID    `json:"superseded_by"`
	Author       *event.SessionID    `json:"author_session_id"`
	ResolvedAt   *string             `json:"resolved_at"`
	Resolution   *string             `json:"resolution"`
	ResolvedBy   *event.MessageID    `json:"resolved_by_message_id"`
	Completion   *event.CompletionID `json:"completion_id"`
}

// Show is the message as hosts see it.
func (m *Message) Show(id event.SessionID) MessageView {
	v := MessageView{MessageID: m.ID, SessionID: id, CreatedAt: event.FormatTime(m.Created), Kind: m.Kind, Status: m.Status,
		Priority: m.Priority, Message: m.Text, Tags: m.Tags, RequiresAck: m.RequiresAck, FirstAckAt: shownTime(m.Acked),
		ReplyTo: absent(m.ReplyTo), Supersedes: absent(m.Supersedes), SupersededBy: absent(m.SupersededBy), Author: absent(m.Author),
		ResolvedAt: shownTime(m.Resolved), Resolution: absent(m.Resolution), ResolvedBy: absent(m.ResolvedBy), Completion: absent(m.Completion)}
	if v.Tags == nil {
		v.Tags = []string{}
	}
	return v
}

// absent is nil for the empty text.
func absent[S ~string](s S) *S {
	if s == "" {
		return nil
	}
	return &s
}

func shownTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return absent(event.FormatTime(t))
}
