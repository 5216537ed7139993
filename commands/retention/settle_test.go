package retention

import (
	"fmt"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// given a Session with open calls and Jobs, when what Settle gives is committed until it gives
// nothing more, then it may be removed: each call and Job has one end, of unknown outcome, no
// commit names too many, and an Active one is closed last.
func TestSettleMakesASessionRemovable(t *testing.T) {
	for _, n := range []int{0, 1, maxSettled, 2*maxSettled + 1} {
		c := session.Core{}.Apply(event.Commit{Aggregate: event.SessionAggregate("s"), Version: 1, At: time.Now(),
			Events: []event.Event{event.SessionCreated{Mode: event.ModeNormal}}})
		for i := range n {
			c.Open, c.Jobs = more(c.Open, event.CallID(fmt.Sprint(i)), session.OpenCall{}), more(c.Jobs, event.ExecutionID(fmt.Sprint(i)), session.OpenJob{})
			s := event.ToolCallStarted{Call: event.CallID(fmt.Sprint(i)), Tool: "run_shell"}
			if i%2 == 0 {
				s.Execution = &event.Execution{ID: event.ExecutionID("x" + fmt.Sprint(i)), Op: "run"}
			}
			c.Open[s.Call] = session.OpenCall{Started: s}
		}
		ends, rounds := 0, 0
		for events := Settle(c); len(events) > 0; events = Settle(c) {
			if rounds++; rounds > 2*n/maxSettled+2 || len(events) > maxSettled+1 {
				t.Fatalf("%d: round %d of %d events", n, rounds, len(events))
			}
			for _, e := range events {
				switch e := e.(type) {
				case event.ToolCallFinished:
					ends++
					if e.Effect.State != event.OutcomeUnknown || !e.Recovered || e.Effect.CommandStarted != (e.Execution != "") {
						t.Errorf("%+v", e)
					}
				case event.ExecutionFinished:
					ends++
					if e.Effect.State != event.OutcomeUnknown || !e.Effect.CommandStarted {
						t.Errorf("%+v", e)
					}
				}
			}
			c = c.Apply(event.Commit{Aggregate: event.SessionAggregate("s"), Version: c.Version + 1, At: time.Now(), Events: events})
		}
		if ends != 2*n || !MayRemove(c) {
			t.Errorf("%d: %d ends, left: %+v", n, ends, c)
		}
	}
}

func more[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	m[k] = v
	return m
}
