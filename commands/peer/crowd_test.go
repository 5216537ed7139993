package peer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"webcodex/commands/internal/calltest"
	"webcodex/commands/peer"
	"webcodex/eventlog/event"
	"webcodex/projections/window"
)

// Where more windows work at once than there are routes for, each is told of a peer once all the
// same, and a route that was told of lately is kept; later there is room again.
//
// Covers: WIN-08, WIN-18
func TestACrowdIsNotToldAgainAndAgain(t *testing.T) {
	const crowd = 40
	who := calltest.Owner().Actor.Principal
	store, now, version := window.New(), time.Unix(1_700_000_000, 0), uint64(0)
	var all []event.WindowID
	for i := range crowd {
		all = append(all, event.WindowID(strings.Repeat("0", 62)+fmt.Sprintf("%02x", i)))
	}
	told := map[string]int{}
	rounds := func(n int) (hints int) {
		for range n {
			for i, w := range all {
				others := append(append([]event.WindowID{}, all[:i]...), all[i+1:]...)
				plan := peer.Decide(store.Book(who).At(now), peer.Scene{Principal: who, Window: w, Others: others, Reads: true, Collaborates: true}, now)
				for _, p := range plan.Peers {
					told[string(w)+string(p)]++
					hints++
				}
				if len(plan.Events) > 0 {
					version++
					store.Apply(version, "", event.Commit{Aggregate: event.WindowAggregate(who), Version: version, At: now, Events: plan.Events})
				}
				now = now.Add(time.Second)
			}
		}
		return hints
	}
	if hints := rounds(8); hints != window.MaxRoutes {
		t.Errorf("%d hints", hints)
	}
	for pair, n := range told {
		if n > 1 {
			t.Fatalf("%s was told %d times", pair, n)
		}
	}
	if now = now.Add(peer.Recency); rounds(1) == 0 {
		t.Error("nobody is told of anybody any more")
	}
}
