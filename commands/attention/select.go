// Package attention shows the open messages of a Session that ask for acknowledgement beside
// the answers of other calls, and takes the acknowledgements that requests carry. It resolves
// nothing, grants nothing and holds up nothing.
package attention

import (
	"cmp"
	"encoding/json"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
	"webcodex/projections/session"
)

// Message is one message as attention shows it.
type Message struct {
	MessageID event.MessageID   `json:"message_id"`
	Kind      event.MessageKind `json:"kind"`
	Priority  event.Priority    `json:"priority"`
	CreatedAt string            `json:"created_at"`
	ReplyTo   event.MessageID   `json:"reply_to,omitempty"`
	Author    event.SessionID   `json:"author_session_id,omitempty"`
	Message   string            `json:"message"`
	// Truncated: the text is longer; list_session_messages has all of it.
	Truncated bool `json:"truncated,omitempty"`
}

// selection is what an answer shows of the open messages that ask for an ACK, and the set that
// its ref stands for: what was acknowledged with the request, and what is shown.
type selection struct {
	shown        []Message
	set          map[event.MessageID]bool
	acknowledged int
	left         int
}

// pending are the open messages that ask for an ACK, oldest first. That is the membership: ACKs
// do not change it, so a ref may be sent again and again (ACK-09).
func pending(b session.Board) []*session.Message {
	var out []*session.Message
	for _, m := range b.Messages() {
		if m.RequiresAck && m.Status == session.MessageOpen {
			out = append(out, m)
		}
	}
	return out
}

// pick chooses what to show: the urgent ones first, then the oldest, without those that the
// request acknowledged. What was acknowledged before plays no part: nobody knows what a model
// still has (ACK-15).
func pick(members []*session.Message, acked map[event.MessageID]bool) selection {
	s := selection{set: map[event.MessageID]bool{}}
	order := slices.Clone(members)
	slices.SortStableFunc(order, func(a, b *session.Message) int { return cmp.Compare(rank(b.Priority), rank(a.Priority)) })
	room := MaxBytes
	for _, m := range order {
		if acked[m.ID] {
			s.acknowledged++
			s.set[m.ID] = true
			continue
		}
		shown, size, ok := fit(m, room)
		if !ok || len(s.shown) == MaxMessages || len(s.shown) > 0 && shown.Truncated {
			s.left++
			continue
		}
		room -= size
		s.shown = append(s.shown, shown)
		s.set[m.ID] = true
	}
	return s
}

func rank(p event.Priority) int {
	switch p {
	case event.PriorityHigh:
		return 2
	case event.PriorityLow:
		return 0
	default:
		return 1
	}
}

// fit shows a message in at most room bytes of JSON, its text cut where it must be.
func fit(m *session.Message, room int) (Message, int, bool) {
	out := Message{MessageID: m.ID, Kind: m.Kind, Priority: m.Priority, CreatedAt: event.FormatTime(m.Created), ReplyTo: m.ReplyTo, Author: m.Author}
	chars := session.MaxMessageChars
	for {
		var lost bool
		out.Message, lost = redact.Cut(m.Text, chars)
		out.Truncated = lost
		size := jsonSize(out) + 1
		if size <= room {
			return out, size, true
		}
		// The longest form of a character is an escape of six bytes, or twelve for a pair.
		if chars = min(chars, len([]rune(out.Message))) / 2; chars < minChars {
			return out, 0, false
		}
	}
}

// minChars is the least of a text that is worth showing.
const minChars = 40

// jsonSize is the longest form that an edge sends a value in.
func jsonSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return MaxBytes + 1
	}
	return len(b)
}
