package session

import (
	"slices"

	"webcodex/eventlog/event"
)

// Fence is where a Session stood when a snapshot of it began. It has exactly two dimensions
// (HND-35), and no answer shows it (HND-39).
type Fence struct {
	Events   uint64 // events_observed
	Messages uint64 // message_observation_revision
}

// Fence of the view.
func (v View) Fence() Fence { return Fence{Events: v.Core.Observed, Messages: v.Board.Revision} }

// Moved reports whether the Session moved on until after, by anybody but the invocation own:
// what a call records of itself is no change of what it looks at (HND-40).
func (f Fence) Moved(after View, own event.InvocationID) bool {
	if after.Board.Revision != f.Messages {
		return true
	}
	came := after.Core.Observed - f.Events
	for _, it := range slices.Backward(after.Tail.Items()) {
		if it.Seq <= f.Events {
			break
		}
		if own != "" && it.Inv == own {
			came--
		}
	}
	return came != 0
}
