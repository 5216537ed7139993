package server

import (
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// Bounds on what a Runner may do to the server (faults.md 4).
const (
	// maxHello, maxClaim and maxEnrol bound a message in bytes, maxDepth its nesting.
	maxHello = 512 << 10
	maxClaim = 4 << 10
	maxEnrol = 4 << 10
	maxDepth = 64
	// maxPending messages are handled at once, all Runners together; maxPendingOne of one Runner.
	maxPending    = 1024
	maxPendingOne = 256
	// maxClients are remembered for their rates; beyond them the idle ones are forgotten.
	maxClients = 1024
)

// rates are the messages a second that one Runner may send, and how many at once beyond. 64
// executions at once that take a millisecond each stay far below.
var rates = map[wire.Verb]struct{ perSecond, burst float64 }{
	wire.VerbHello:  {10, 20},
	wire.VerbClaim:  {2000, 4000},
	wire.VerbStart:  {2000, 4000},
	wire.VerbResult: {2000, 4000},
	wire.VerbEnrol:  {1, 5},
}

// limits holds what each Runner has left. Past a bound a message is dropped: its sender repeats
// it, or gives up without having started anything.
type limits struct {
	mu      sync.Mutex
	clients map[event.ClientID]*budget
	now     func() time.Time
}

type budget struct {
	pending int
	left    map[wire.Verb]float64
	at      map[wire.Verb]time.Time
}

func newLimits(now func() time.Time) *limits {
	return &limits{clients: map[event.ClientID]*budget{}, now: now}
}

// take counts a message; false: it is one too many.
func (l *limits) take(c event.ClientID, v wire.Verb) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(c)
	now, rate := l.now(), rates[v]
	left, seen := b.left[v]
	if !seen {
		left = rate.burst
	}
	left = min(rate.burst, left+now.Sub(b.at[v]).Seconds()*rate.perSecond)
	b.at[v] = now
	if left < 1 {
		b.left[v] = left
		return false
	}
	b.left[v] = left - 1
	return true
}

// enter takes one of the places for messages that are being handled.
func (l *limits) enter(c event.ClientID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.of(c)
	if b.pending >= maxPendingOne {
		return false
	}
	b.pending++
	return true
}

func (l *limits) leave(c event.ClientID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c != "" {
		l.of(c).pending--
	}
}

func (l *limits) of(c event.ClientID) *budget {
	b := l.clients[c]
	if b == nil {
		if len(l.clients) >= maxClients {
			for id, old := range l.clients {
				if old.pending == 0 {
					delete(l.clients, id)
				}
			}
		}
		b = &budget{left: map[wire.Verb]float64{}, at: map[wire.Verb]time.Time{}}
		l.clients[c] = b
	}
	return b
}
