package retention

import (
	"math"
	"slices"

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
// are, and that keep these within limit; of those that age out there names at least maxDropped,
// or all. Where the newest ordinal leaves too few greater ones, the tombstones are numbered anew
// first (SES-35).
func Decide(there retention.Standing, remove []session.Core, limit int) []event.Event {
	var events []event.Event
	last, leaving := there.Newest, slices.Clone(there.Oldest)
	if uint64(len(remove)) > math.MaxUint64-last {
		last = uint64(there.Count)
		events = append(events, event.TombstonesRenumbered{Count: last})
	}
	for _, c := range remove {
		last++
		events = append(events, event.SessionRemoved{Session: c.ID, Authority: c.Authority, Principal: c.Principal,
			Incarnation: event.Incarnation(c.ID, c.Nonce), Ordinal: last})
		if len(leaving) >= there.Count { // all that are older are named
			leaving = append(leaving, c.ID)
		}
	}
	if over := min(there.Count+len(remove)-limit, maxDropped); over > 0 {
		events = append(events, event.TombstonesDropped{Sessions: leaving[:over]})
	}
	return events
}
