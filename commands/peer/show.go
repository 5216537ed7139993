package peer

import (
	"encoding/json"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/token"
	"webcodex/projections/window"
)

// Name is the peer id of a window for one principal: for routing alone (WIN-04).
func Name(principal string, w event.WindowID) event.PeerID {
	return event.PeerID(event.PeerPrefix + token.Digest("webcodex.window-peer.v1", principal, string(w))[:32])
}

// Message is one message as an answer shows it: what was said, by which peer, and nothing of
// that peer's work (WIN-11). The projection facts include this answer.
type Message struct {
	MessageID      event.MessageID `json:"message_id"`
	PeerID         event.PeerID    `json:"peer_id"` // that wrote it
	CreatedAt      string          `json:"created_at"`
	Priority       event.Priority  `json:"priority"`
	RequiresAck    bool            `json:"requires_ack"`
	Message        string          `json:"message"`
	FirstProjected int64           `json:"first_projected_at_ms"`
	LastProjected  int64           `json:"last_projected_at_ms"`
	Projections    int             `json:"projection_count"`
	FirstAck       *int64          `json:"first_ack_observed_at_ms"`
}

// show takes what fits into one answer, at least one message, and counts what is left.
func show(due []*window.Message, principal string, now time.Time) (out []Message, left int) {
	room := MaxBytes
	for _, m := range due {
		s := Message{MessageID: m.ID, PeerID: Name(principal, m.From), CreatedAt: event.FormatTime(m.At), Priority: m.Priority,
			RequiresAck: m.RequiresAck, Message: m.Text, FirstProjected: m.FirstProjected, LastProjected: now.UnixMilli(), Projections: m.Projections + 1}
		if s.FirstProjected == 0 {
			s.FirstProjected = s.LastProjected
		}
		if m.FirstAck > 0 {
			s.FirstAck = &m.FirstAck
		}
		size := jsonSize(s)
		if len(out) == MaxMessages || len(out) > 0 && size > room {
			left++
			continue
		}
		room -= size
		out = append(out, s)
	}
	return out, left
}

// jsonSize is the longest form that an edge sends a value in.
func jsonSize(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return MaxBytes + 1
	}
	return len(b) + 1
}
