package server

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// A Runner has its burst, then its rate, whatever others do; what it has in hand is bounded; who
// is idle is forgotten before memory grows.
func TestLimits(t *testing.T) {
	now := time.Unix(0, 0)
	l := newLimits(func() time.Time { return now })
	count := func(c event.ClientID, n int) (taken int) {
		for range n {
			if l.take(c, wire.VerbHello) {
				taken++
			}
		}
		return taken
	}
	hello := rates[wire.VerbHello]
	if n := count("a", 1000); n != int(hello.burst) {
		t.Errorf("a burst of %d", n)
	}
	if n := count("b", 5); n != 5 {
		t.Errorf("another Runner: %d", n)
	}
	if !l.take("a", wire.VerbClaim) {
		t.Error("another verb has no rate of its own")
	}
	now = now.Add(time.Second)
	if n := count("a", 1000); n != int(hello.perSecond) {
		t.Errorf("%d after a second", n)
	}
	now = now.Add(time.Hour)
	if n := count("a", 1000); n != int(hello.burst) {
		t.Errorf("%d after an hour", n)
	}
	for range maxPendingOne {
		if !l.enter("a") {
			t.Fatal("a place is missing")
		}
	}
	if l.enter("a") {
		t.Error("one place too many")
	}
	l.leave("a")
	if !l.enter("a") || !l.enter("b") {
		t.Error("a place that was left is not free")
	}
	for n := range 3 * maxClients {
		l.take(event.ClientID(fmt.Sprint("c", n)), wire.VerbHello)
	}
	if n := len(l.clients); n > maxClients {
		t.Errorf("%d Runners are remembered", n)
	}
	if l.enter("a") {
		t.Error("one that has messages in hand was forgotten")
	}
}

// Many Runners at once: none gets more than its places.
func TestLimitsAtOnce(t *testing.T) {
	l := newLimits(time.Now)
	var inside [4]atomic.Int64
	var wg sync.WaitGroup
	for n := range 4 * 300 {
		wg.Go(func() {
			c, who := event.ClientID(fmt.Sprint("r", n%4)), &inside[n%4]
			if l.take(c, wire.VerbClaim) && l.enter(c) {
				if who.Add(1) > maxPendingOne {
					t.Error("too many at once")
				}
				who.Add(-1)
				l.leave(c)
			}
		})
	}
	wg.Wait()
	for c, b := range l.clients {
		if b.pending != 0 {
			t.Errorf("%s has %d in hand", c, b.pending)
		}
	}
}
