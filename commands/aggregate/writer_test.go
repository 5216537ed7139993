package aggregate_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

var actor = event.Actor{Authority: strings.Repeat("a", 64), Principal: strings.Repeat("a", 64), Credential: "owner"}

// Two writers stand for two servers: their locks do not know each other, so only the expected
// sequence decides.
//
// Covers: SES-28
func TestDoDecidesAgainOnALostRace(t *testing.T) {
	e := calltest.New(t, nil)
	id := event.NewSessionID()
	agg := event.SessionAggregate(id)
	writers := []*aggregate.Writer{aggregate.NewWriter(e.Log, time.Now), aggregate.NewWriter(e.Log, time.Now)}
	const each = 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted, lost := 0, 0
	for n := range 8 {
		wg.Go(func() {
			for range each {
				_, err := writers[n%2].Do(context.Background(), aggregate.Command{Aggregate: agg, Actor: actor, Invocation: event.NewInvocationID()},
					func(time.Time) ([]event.Event, error) {
						core, _ := e.Store.Core(id)
						if core.Exists() {
							return []event.Event{event.ContextUpdated{}}, nil
						}
						return []event.Event{event.SessionCreated{Nonce: "n", Authority: actor.Authority, Principal: actor.Principal, Mode: event.ModeNormal}}, nil
					})
				mu.Lock()
				switch {
				case err == nil:
					accepted++
				case fault.KindOf(err) == fault.Conflict:
					lost++
				default:
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	commits := e.Commits(id)
	if len(commits) != accepted || accepted+lost != 8*each {
		t.Fatalf("%d commits, %d accepted, %d lost", len(commits), accepted, lost)
	}
	created := 0
	for i, c := range commits {
		if c.Version != uint64(i+1) {
			t.Fatalf("version %d at place %d", c.Version, i)
		}
		if _, ok := c.Events[0].(event.SessionCreated); ok {
			created++
		}
	}
	if created != 1 {
		t.Errorf("the Session was created %d times", created)
	}
}

// Covers: AUTH-18
func TestDoRefusalWritesNothing(t *testing.T) {
	e := calltest.New(t, nil)
	w := aggregate.NewWriter(e.Log, time.Now)
	before := e.Seq()
	denied := fault.New(fault.SessionClosed, "no")
	for _, decide := range []aggregate.Decide{
		func(time.Time) ([]event.Event, error) { return nil, denied },
		func(time.Time) ([]event.Event, error) { return []event.Event{event.SessionClosed{}}, denied },
		func(time.Time) ([]event.Event, error) { return nil, nil },
	} {
		receipt, err := w.Do(context.Background(), aggregate.Command{Aggregate: event.SessionAggregate(event.NewSessionID()), Actor: actor}, decide)
		if receipt.Seq != 0 || (err != nil && !errors.Is(err, denied)) {
			t.Errorf("receipt %v, error %v", receipt, err)
		}
	}
	if after := e.Seq(); after != before {
		t.Errorf("the log grew from %d to %d", before, after)
	}
}

func TestDoEndsWithItsCaller(t *testing.T) {
	e := calltest.New(t, nil)
	w := aggregate.NewWriter(e.Log, time.Now)
	cmd := aggregate.Command{Aggregate: event.SessionAggregate(event.NewSessionID()), Actor: actor}
	inside, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = w.Do(context.Background(), cmd, func(time.Time) ([]event.Event, error) {
			close(inside)
			<-leave
			return nil, nil
		})
	})
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := w.Do(ctx, cmd, func(time.Time) ([]event.Event, error) { t.Error("decided without its turn"); return nil, nil }); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("waiting for a turn: %v", err)
	}
	close(leave)
	wg.Wait()
}
