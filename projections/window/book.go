package window

import (
	"slices"
	"time"

	"webcodex/eventlog/event"
)

// Relation tells that a window worked with a Session, after authority over it was established.
// It gives no lease, no ownership and no recorder (WIN-21).
type Relation struct {
	Window   event.WindowID   `json:"window"`
	Session  event.SessionID  `json:"session_id"`
	Project  event.ProjectRef `json:"project,omitzero"`
	Relation string           `json:"relation"`
	At       time.Time        `json:"at"` // when it was last told
	Told     uint64           `json:"told"`
}

// Route lets the windows at both of its ends write to each other, wherever they work by then
// (WIN-10). Window was told of Other under the name Peer.
type Route struct {
	Window event.WindowID `json:"window"`
	Peer   event.PeerID   `json:"peer_id"`
	Other  event.WindowID `json:"other"`
	At     time.Time      `json:"at"`
	Told   uint64         `json:"told"`
}

// Message is a retained message between two windows. What it says of projections and of an ACK
// is for analysis: nobody knows what was received, read or done (WIN-16, WIN-17). A time of 0 has
// not come.
type Message struct {
	ID             event.MessageID `json:"message_id"`
	From           event.WindowID  `json:"from"`
	To             event.WindowID  `json:"to"`
	Text           string          `json:"text"`
	Priority       event.Priority  `json:"priority"`
	RequiresAck    bool            `json:"requires_ack,omitempty"`
	Key            string          `json:"delivery_key_hash,omitempty"`
	Payload        string          `json:"payload_hash,omitempty"`
	At             time.Time       `json:"at"`
	Told           uint64          `json:"told"`
	FirstProjected int64           `json:"first_projected_at_ms,omitempty"`
	LastProjected  int64           `json:"last_projected_at_ms,omitempty"`
	Projections    int             `json:"projection_count,omitempty"`
	FirstAck       int64           `json:"first_ack_observed_at_ms,omitempty"`
}

// Book is what is retained for one principal. It is a value: Apply gives a new one, and nothing
// that a Book points to is ever changed. The zero Book is empty.
type Book struct {
	Relations []Relation `json:"relations"` // each in the order of telling
	Routes    []Route    `json:"routes"`
	Messages  []*Message `json:"messages"`
}

// Kinds of rows.
const (
	kindRelation = "relation"
	kindRoute    = "route"
	kindMessage  = "message"
	kindPart     = "part" // of a carried state that waits for its others
)

// toldBits of what orders rows are the place in a commit, the others its version.
const toldBits = 10

// row names a piece of a Book in the file.
type row struct{ kind, id string }

func (r Relation) row() row {
	return row{kindRelation, string(r.Window) + "/" + string(r.Session) + "/" + r.Relation}
}
func (r Route) row() row    { return row{kindRoute, string(r.Window) + "/" + string(r.Other)} }
func (m *Message) row() row { return row{kindMessage, string(m.ID)} }

func (r Relation) valid() bool {
	return event.ValidFingerprint(string(r.Window)) && r.Session.Valid() && (r.Relation == event.RelationRecording || r.Relation == event.RelationWork)
}

func (r Route) valid() bool {
	return event.ValidFingerprint(string(r.Window)) && event.ValidFingerprint(string(r.Other)) && r.Window != r.Other && r.Peer.Valid()
}

func (m *Message) valid() bool {
	return m.ID.Valid() && event.ValidFingerprint(string(m.From)) && event.ValidFingerprint(string(m.To))
}

// apply folds one commit of the principal's aggregate and names the rows that it touched. A
// malformed event drops itself only. The commit's own time ends what is too old (WIN-18).
func (b Book) apply(c event.Commit) (Book, []row) {
	b = Book{slices.Clone(b.Relations), slices.Clone(b.Routes), slices.Clone(b.Messages)}
	var touched []row
	for i, e := range c.Events {
		told := c.Version<<toldBits | uint64(min(i, 1<<toldBits-1))
		switch e := e.(type) {
		case event.WindowRelated:
			touched = append(touched, b.relate(Relation{e.Window, e.Session, e.Project, e.Relation, c.At, told})...)
		case event.PeerDiscovered:
			touched = append(touched, b.open(Route{e.Window, e.Peer, e.Other, c.At, told})...)
		case event.PeerPosted:
			touched = append(touched, b.post(&Message{ID: e.Message, From: e.From, To: e.To, Text: e.Text, Priority: e.Priority,
				RequiresAck: e.RequiresAck, Key: e.Key, Payload: e.Payload, At: c.At, Told: told})...)
		case event.PeerProjected:
			touched = append(touched, b.each(e.Messages, func(m *Message) { m.projected(c.At.UnixMilli()) })...)
		case event.PeerAcknowledged:
			touched = append(touched, b.each(e.Messages, func(m *Message) { m.acknowledged(c.At.UnixMilli()) })...)
		default: // carried: the Store's
		}
	}
	return b, append(touched, b.expire(c.At)...)
}

func (b *Book) relate(r Relation) []row {
	if !r.valid() {
		return nil
	}
	if i := slices.IndexFunc(b.Relations, func(o Relation) bool { return o.row() == r.row() }); i >= 0 {
		b.Relations = slices.Delete(b.Relations, i, i+1) // the newest is the last one
	}
	b.Relations = append(b.Relations, r)
	touched := []row{r.row()}
	for len(b.Relations) > MaxRelations {
		touched = append(touched, b.Relations[0].row())
		b.Relations = b.Relations[1:]
	}
	return touched
}

func (b *Book) open(r Route) []row {
	if !r.valid() || slices.ContainsFunc(b.Routes, func(o Route) bool { return o.row() == r.row() }) {
		return nil
	}
	b.Routes = append(b.Routes, r)
	touched := []row{r.row()}
	for len(b.Routes) > MaxRoutes {
		touched = append(touched, b.Routes[0].row())
		b.Routes = b.Routes[1:]
	}
	return touched
}

func (b *Book) post(m *Message) []row {
	if _, twice := b.Find(m.ID); twice || !m.valid() {
		return nil
	}
	b.Messages = append(b.Messages, m)
	touched := []row{m.row()}
	for len(b.Messages) > MaxMessages {
		touched = append(touched, b.Messages[0].row())
		b.Messages = b.Messages[1:]
	}
	return touched
}

func (b *Book) each(ids []event.MessageID, change func(*Message)) (touched []row) {
	for i, m := range b.Messages {
		if slices.Contains(ids, m.ID) {
			n := *m
			change(&n)
			b.Messages[i] = &n
			touched = append(touched, n.row())
		}
	}
	return touched
}

func (m *Message) projected(at int64) {
	if m.Projections++; m.FirstProjected == 0 {
		m.FirstProjected = at
	}
	m.LastProjected = at
}

func (m *Message) acknowledged(at int64) {
	if m.RequiresAck && m.FirstAck == 0 {
		m.FirstAck = at
	}
}

// expire drops what is older than it may be at a time.
func (b *Book) expire(at time.Time) (touched []row) {
	b.Messages = slices.DeleteFunc(b.Messages, func(m *Message) bool {
		gone := old(m.At, at)
		if gone {
			touched = append(touched, m.row())
		}
		return gone
	})
	b.Routes = slices.DeleteFunc(b.Routes, func(r Route) bool {
		gone := old(r.At, at)
		if gone {
			touched = append(touched, r.row())
		}
		return gone
	})
	return touched
}

func old(made, now time.Time) bool { return now.Sub(made) >= MaxAge }

// forget drops the relations to a removed Session.
func (b Book) forget(id event.SessionID) (Book, []row) {
	var touched []row
	var left []Relation
	for _, r := range b.Relations {
		if r.Session == id {
			touched = append(touched, r.row())
		} else {
			left = append(left, r)
		}
	}
	if len(touched) > 0 {
		b.Relations = left
	}
	return b, touched
}

// At is the Book without what is too old at a time: commits alone end it in the fold.
func (b Book) At(now time.Time) Book {
	b.Routes, b.Messages = slices.Clone(b.Routes), slices.Clone(b.Messages)
	b.expire(now)
	return b
}

// Find gives a retained message.
func (b Book) Find(id event.MessageID) (*Message, bool) {
	i := slices.IndexFunc(b.Messages, func(m *Message) bool { return m.ID == id })
	if i < 0 {
		return nil, false
	}
	return b.Messages[i], true
}

// Posted gives the retained message that a delivery key stands for, as its hash.
func (b Book) Posted(key string) (*Message, bool) {
	i := slices.IndexFunc(b.Messages, func(m *Message) bool { return key != "" && m.Key == key })
	if i < 0 {
		return nil, false
	}
	return b.Messages[i], true
}

// Knows reports whether the window was told of the other.
func (b Book) Knows(w, other event.WindowID) bool {
	return slices.ContainsFunc(b.Routes, func(r Route) bool { return r.Window == w && r.Other == other })
}

// Reach gives the window that a route of the sender's leads to under a name: it was told of the
// other, or the other of it. name gives the name of a window.
func (b Book) Reach(from event.WindowID, peer event.PeerID, name func(event.WindowID) event.PeerID) (event.WindowID, bool) {
	for _, r := range b.Routes {
		switch {
		case r.Window == from && r.Peer == peer:
			return r.Other, true
		case r.Other == from && name(r.Window) == peer:
			return r.Window, true
		}
	}
	return "", false
}

// Related are the window's relations, the one told last first.
func (b Book) Related(w event.WindowID) (out []Relation) {
	for _, r := range slices.Backward(b.Relations) {
		if r.Window == w {
			out = append(out, r)
		}
	}
	return out
}
