package history_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Callers that share no lock with the pruner decide all the time while states are carried
// forward, again and again. A state that does not know the commit before its first part would
// take that commit out of the log: Sessions would be gone and revoked tokens be back once the
// read models are made again from what is left.
//
// Covers: RES-19
func TestCallersBesideACarryLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small)
	ids := make([]event.SessionID, 4)
	for i := range ids {
		ids[i] = w.begin(t, "busy")
	}
	stop := make(chan struct{})
	var callers sync.WaitGroup
	call := func(a event.Aggregate, events func(n int) []event.Event) {
		other := aggregate.NewWriter(w.log, time.Now)
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(rand.IntN(30)) * time.Millisecond):
				}
				_, err := other.Do(context.Background(), aggregate.Command{Aggregate: a, Actor: system},
					func(time.Time) ([]event.Event, error) { return events(n), nil })
				// Where they outrun the pruner new work is refused; what frees the log is not.
				if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.StorageFull {
					t.Error(err)
					return
				}
			}
		})
	}
	for _, id := range ids {
		call(event.SessionAggregate(id), func(int) []event.Event { return []event.Event{event.ContextUpdated{}} })
	}
	made := event.TokenID("")
	call(event.AccessAggregate(), func(n int) []event.Event {
		if n%2 == 1 && made != "" {
			return []event.Event{event.TokenRevoked{Token: made}}
		}
		made = event.NewTokenID()
		return []event.Event{event.TokenCreated{Token: made, Kind: event.TokenUser, Name: "guest", Hash: event.Hash([]byte(made)),
			Scopes: []string{"runtime:read"}, AllProjects: true, Authority: event.Hash([]byte(made)), Principal: event.Hash([]byte(made))}}
	})

	rounds := 3
	if soak {
		rounds = 60
	}
	cut := atomic.Int64{}
	for range rounds {
		if err := w.pruner.Cut(context.Background(), 0); err == nil {
			cut.Add(1)
		} else if !errors.Is(err, eventlog.ErrConflict) {
			t.Errorf("round: %v", err)
		}
	}
	close(stop)
	callers.Wait()
	if cut.Load() == 0 || w.first() == 1 {
		t.Fatalf("%d rounds, the log begins at %d: nothing was pruned", cut.Load(), w.first())
	}
	want := w.tokens.List()
	w.same(t, ids)
	w.reopen(t, true)
	w.same(t, ids)
	w.whole(t)
	if diff := cmp.Diff(want, w.tokens.List()); diff != "" || len(want) < 2 {
		t.Errorf("%d tokens, made again from what is left of the log they differ: %s", len(want), diff)
	}
}
