package peer

import (
	"cmp"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/window"
)

// Scene is what the additions to one answer are decided on.
type Scene struct {
	Principal string
	Window    event.WindowID
	Others    []event.WindowID  // with recent activity at the same Project
	Related   []window.Relation // established by this call
	Acks      []event.MessageID
	// Reads: the caller may be shown messages. Collaborates: it may write some, and its ACKs are
	// kept.
	Reads, Collaborates bool
	// Gone: the caller has left before its answer, so what is shown once waits for the next one.
	Gone bool
}

// Plan is what an answer adds, and what of it is to be durable first.
type Plan struct {
	Events   []event.Event
	Peers    []event.PeerID
	Messages []Message
	Left     int // messages that did not fit
}

// Decide plans an answer. Whoever is told of a peer is not told again while that is retained
// (WIN-08). A message is shown once, or, where it asks for an ACK, with each request that does
// not name it (WIN-14, WIN-15); what came of earlier requests plays no part in the latter.
func Decide(b window.Book, s Scene, now time.Time) (p Plan) {
	for _, r := range s.Related {
		if !told(b, r, now) {
			p.Events = append(p.Events, event.WindowRelated{Window: r.Window, Session: r.Session, Project: r.Project, Relation: r.Relation})
		}
	}
	if s.Collaborates && !s.Gone {
		room := min(MaxPeers, roomFor(b, now))
		for _, o := range s.Others {
			if len(p.Peers) < room && !b.Knows(s.Window, o) {
				p.Peers = append(p.Peers, Name(s.Principal, o))
				p.Events = append(p.Events, event.PeerDiscovered{Window: s.Window, Peer: Name(s.Principal, o), Other: o})
			}
		}
	}
	fresh, due := inbox(b, s)
	if len(fresh) > 0 && s.Collaborates {
		p.Events = append(p.Events, event.PeerAcknowledged{Messages: fresh})
	}
	if !s.Reads || s.Gone {
		return p
	}
	p.Messages, p.Left = show(due, s.Principal, now)
	if len(p.Messages) > 0 {
		var ids []event.MessageID
		for _, m := range p.Messages {
			ids = append(ids, m.MessageID)
		}
		p.Events = append(p.Events, event.PeerProjected{Messages: ids})
	}
	return p
}

// roomFor is how many peers may be told of. Where more windows work at once than there are routes for
// all pairs of them, none that was told of lately is forgotten for another: both would be told
// again and again, and neither could write.
func roomFor(b window.Book, now time.Time) int {
	free := window.MaxRoutes - len(b.Routes)
	for _, r := range b.Routes {
		if !isRecent(r.At, now) {
			free++
		}
	}
	return max(0, free)
}

func told(b window.Book, r window.Relation, now time.Time) bool {
	return slices.ContainsFunc(b.Related(r.Window), func(o window.Relation) bool {
		return o.Session == r.Session && o.Relation == r.Relation && o.Project == r.Project && now.Sub(o.At) < refresh
	})
}

// inbox gives the messages to the window: those whose first ACK this is, and those to show, in
// their order: what is shown but once comes first, or many that ask for ACKs would hide it.
func inbox(b window.Book, s Scene) (fresh []event.MessageID, due []*window.Message) {
	for _, m := range b.Messages {
		switch acked := m.RequiresAck && slices.Contains(s.Acks, m.ID); {
		case m.To != s.Window:
		case acked && m.FirstAck == 0:
			fresh = append(fresh, m.ID)
		case acked, !m.RequiresAck && m.Projections > 0:
		default:
			due = append(due, m)
		}
	}
	slices.SortStableFunc(due, func(x, y *window.Message) int {
		return cmp.Or(rank(x.RequiresAck)-rank(y.RequiresAck), weight(y)-weight(x))
	})
	return fresh, due
}

func rank(asks bool) int {
	if asks {
		return 1
	}
	return 0
}

func weight(m *window.Message) int {
	switch m.Priority {
	case event.PriorityHigh:
		return 2
	case event.PriorityLow:
		return 0
	default:
		return 1
	}
}

// Post is a message as it is to be stored.
type Post struct {
	ID          event.MessageID
	Principal   string
	From        event.WindowID // empty: the caller has no window
	Peer        event.PeerID
	Text        string
	Priority    event.Priority
	RequiresAck bool
	Key         string // hash; empty: none was given
	Payload     string
}

// DecidePost sends a message along a retained route of the caller's window, or finds the one
// that the delivery key stands for. It fails closed: without a window there is no route (WIN-19).
func DecidePost(b window.Book, p Post) (first event.MessageID, _ []event.Event, err error) {
	if m, ok := b.Posted(p.Key); ok && p.From != "" {
		if m.Payload != p.Payload {
			return "", nil, fault.New(fault.IdempotencyConflict, "this delivery_key was used for another message").
				WithField("delivery_key").WithNext("take a new delivery_key for a new message")
		}
		return m.ID, nil, nil
	}
	to, ok := b.Reach(p.From, p.Peer, func(w event.WindowID) event.PeerID { return Name(p.Principal, w) })
	if !ok || p.From == "" {
		return "", nil, fault.New(fault.UnknownPeer, "no route leads from this window to that peer").WithField("peer_id").
			WithNext("use a peer_id that peer_awareness or peer_messages showed to this window within a day; for lasting work post to a Session's board")
	}
	return "", []event.Event{event.PeerPosted{Message: p.ID, From: p.From, To: to, Text: p.Text, Priority: p.Priority,
		RequiresAck: p.RequiresAck, Key: p.Key, Payload: p.Payload}}, nil
}
