package retention

import (
	"math"

	"webcodex/eventlog/event"
	"webcodex/projections/retention"
	"webcodex/projections/session"
)

// MayRemove reports whether a Session may leave: Closed and at rest. An Active one never does
// (SES-40), and one with open calls or Jobs waits for their ends.
func MayRemove(c session.Core) bool {
	return c.Lifecycle == session.Closed && len(c.Open) == 0 && len(c.Jobs) == 0
}

// Decide gives the events that remove Sessions, in the order given, beside the tombstones there
// are (oldest first), and that keep these within limit. Where the newest ordinal leaves too few
// greater ones, the tombstones are numbered anew first (SES-35).
func Decide(there []retention.Tombstone, remove []session.Core, limit int) []event.Event {
	var events []event.Event
	last := uint64(0)
	ids := make([]event.SessionID, len(there), len(there)+len(remove))
	for i, t := range there {
		ids[i], last = t.Session, t.Ordinal
	}
	if uint64(len(remove)) > math.MaxUint64-last {
		last = uint64(len(there))
		events = append(events, event.TombstonesRenumbered{Count: last})
	}
	for _, c := range remove {
		last++
		events = append(events, event.SessionRemoved{Session: c.ID, Authority: c.Authority, Principal: c.Principal,
			Incarnation: event.Incarnation(c.ID, c.Nonce), Ordinal: last})
		ids = append(ids, c.ID)
	}
	if over := min(len(ids)-limit, maxDropped); over > 0 {
		events = append(events, event.TombstonesDropped{Sessions: ids[:over]})
	}
	return events
}
