package runner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"webcodex/runner/wire"
)

// Whoever comes and goes in whatever order, no slot is lost or given twice, none is free while one
// waits, and the line is served in its order.
func TestTheLineKeepsItsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := queue{slots: rapid.IntRange(1, 5).Draw(t, "slots")}
		var inside []*execution // in the order of their coming
		has := func(e *execution) bool {
			select {
			case <-e.turn:
				return true
			default:
				return false
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(inside) == 0 || rapid.Bool().Draw(t, "comes") {
				e := &execution{offer: wire.Offer{Bounds: wire.Bounds{Job: true}}, turn: make(chan struct{})}
				if f := q.enter(e); f != nil {
					t.Fatal(f)
				}
				inside = append(inside, e)
			} else {
				i := rapid.IntRange(0, len(inside)-1).Draw(t, "who")
				q.leave(inside[i])
				inside = slices.Delete(inside, i, i+1)
			}
			holders := 0
			for i, e := range inside {
				ahead, waits := q.ahead(e)
				if waits == has(e) || waits && ahead != i-min(q.slots, len(inside)) {
					t.Fatalf("%d of %d: has a slot %v, waits %v behind %d", i, len(inside), has(e), waits, ahead)
				}
				if has(e) {
					holders++
				}
			}
			if holders != min(q.slots, len(inside)) || q.taken != holders {
				t.Fatalf("%d hold one of %d slots, %d are inside, the count says %d", holders, q.slots, len(inside), q.taken)
			}
		}
	})
}
