package history_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/history"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

// carryBar is how much slower the slowest hundredth of recorded calls may get while living
// state is carried forward at the program's rate.
const carryBar = 3

// The p99 of a recorded call while a round carries hundreds of Sessions, against the p99 of
// the same calls with nothing beside them.
func TestRatioCallsWhileCarrying(t *testing.T) {
	bench.Skip(t)
	w := newWorld(t, small, func(w *world) { w.change = func(o *history.Options) { o.Rate = history.CarryRate } })
	var cold []event.SessionID
	for range 300 {
		id := w.begin(t, "cold")
		for range 10 {
			w.call(t, id, "a/path.go", "another/path.go")
		}
		cold = append(cold, id)
	}
	mine := w.begin(t, "mine")
	p99 := func() time.Duration {
		took := make([]time.Duration, 200)
		for i := range took {
			began := time.Now()
			w.call(t, mine, "a/path.go")
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	bench.Run(t, bench.Comparison{Name: "p99 of a recorded call while state is carried vs alone", Bar: carryBar, AtMost: true,
		Yardstick: p99,
		Ours: func() time.Duration {
			// A round that is broken off leaves a filled block, so each is let to its end.
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for !stop.Load() {
					if err := w.pruner.Cut(context.Background(), 0); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			defer func() { stop.Store(true); <-done }()
			return p99()
		}})
	w.same(t, append(cold, mine))
}
