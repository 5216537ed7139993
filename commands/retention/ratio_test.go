package retention_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

// pairs are 2,000 refusals about a foreign tombstone, and as many about ids that never were,
// interleaved; took gives how long each was, and each is compared byte by byte.
func pairs(t *testing.T, n int) (foreign, never []time.Duration) {
	t.Helper()
	const kept = 50
	e := bounded(t, kept)
	begin(e)
	for range 2 * kept {
		end(e, begin(e).SessionID)
	}
	gone := sessionIDs(e.Tombstones.All())
	if len(gone) != kept {
		t.Fatalf("%d tombstones", len(gone))
	}
	if err := e.Keeper.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	// Warm up, and learn the one answer.
	want := told(e, colleague(), &session.ReadSummary, event.NewSessionID(), "unknown_session_id")
	ask := func(id event.SessionID) time.Duration {
		raw := []byte(`{"session_id":"` + string(id) + `"}`)
		began := time.Now()
		_, err := e.Kernel.Call(context.Background(), call.Request{Spec: &session.ReadSummary, Args: raw, Principal: colleague(), Transport: "mcp"})
		took := time.Since(began)
		if got := refusalText(t, err); got != want {
			t.Fatalf("%s: %s\nwant %s", id, got, want)
		}
		return took
	}
	for i := range n {
		tombstone, random := gone[i%len(gone)], event.NewSessionID()
		if i%2 == 0 {
			foreign = append(foreign, ask(tombstone))
			never = append(never, ask(random))
		} else {
			never = append(never, ask(random))
			foreign = append(foreign, ask(tombstone))
		}
	}
	return foreign, never
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// 2,000 pairs of answers about foreign tombstones and about ids that never were are equal in
// every byte.
//
// Covers: SES-38
func TestForeignTombstonesAnswerLikeNothing(t *testing.T) { pairs(t, 2000) }

// And in time: the medians differ by at most a tenth.
func TestRatioForeignTombstone(t *testing.T) {
	bench.Skip(t)
	foreign, never := pairs(t, 2000)
	a, b := float64(median(foreign)), float64(median(never))
	bench.Figure(t, "SES-38 answer about a foreign tombstone vs an id that never was, medians", max(a/b, b/a), 1.10, 2000)
}
