package session

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"webcodex/eventlog/event"
)

// watchers wait for a Session's board to change. They are told after a commit was folded, and
// the fold sees durable commits alone. What they are told is a hint to look again, and nothing
// depends on how often it comes (MSG-23).
//
// One goroutine wakes them, one after the other and none before the last has looked: a
// thousand that wait for one Session must not stand before its next writer in the scheduler's
// line.
type watchers struct {
	n  atomic.Int64 // of all; what is applied while nobody waits asks for no more
	mu sync.Mutex   // guards all below; never held while anybody looks or waits
	by map[event.SessionID]map[*watcher]struct{}
	// told are Sessions whose watchers are to be woken, in order; waking: somebody does.
	told   []event.SessionID
	waking bool
}

type watcher struct {
	wake   chan struct{} // holds one
	looked chan struct{} // holds one: it has looked since it was woken and waits again
	gone   chan struct{} // closed when it waits no more
}

const (
	// lookPatience is how long the next watcher waits for one that looks.
	lookPatience = 10 * time.Millisecond
	// A crowd is woken a moment later, so that the writer has his answer first.
	manyWaiters = 32
	headStart   = time.Millisecond
)

// Await calls look until it says that it has seen enough, at once and then each time the
// Session's board may have changed, or until ctx ends, whose error it gives then. No lock is
// held meanwhile (MSG-24). It does not matter whether the Session exists.
func (s *Store) Await(ctx context.Context, id event.SessionID, look func() (enough bool)) error {
	w := s.watchers.add(id)
	defer s.watchers.drop(id, w)
	for woken := false; ; woken = true {
		if look() {
			return nil
		}
		if woken {
			select {
			case w.looked <- struct{}{}:
			default: // nobody was patient enough to take the last one
			}
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (ws *watchers) add(id event.SessionID) *watcher {
	w := &watcher{wake: make(chan struct{}, 1), looked: make(chan struct{}, 1), gone: make(chan struct{})}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.by == nil {
		ws.by = map[event.SessionID]map[*watcher]struct{}{}
	}
	if ws.by[id] == nil {
		ws.by[id] = map[*watcher]struct{}{}
	}
	ws.by[id][w] = struct{}{}
	ws.n.Add(1)
	return w
}

func (ws *watchers) drop(id event.SessionID, w *watcher) {
	close(w.gone)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if delete(ws.by[id], w); len(ws.by[id]) == 0 {
		delete(ws.by, id)
	}
	ws.n.Add(-1)
}

// applied hears of a commit that was folded. It does not block.
func (ws *watchers) applied(c event.Commit) {
	if ws.n.Load() == 0 {
		return
	}
	id := event.SessionID("")
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.MessagePosted, event.MessageResolved, event.MessageCompleted, event.MessagesAcknowledged:
			id = event.SessionID(c.Aggregate.ID)
		case event.SessionRemoved:
			id = e.Session
		default: // changes no board
		}
	}
	if id == "" {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.by[id]) == 0 {
		return
	}
	if slices.Contains(ws.told, id) {
		return
	}
	if ws.told = append(ws.told, id); !ws.waking {
		ws.waking = true
		go ws.wakeAll()
	}
}

func (ws *watchers) wakeAll() {
	patience := time.NewTimer(lookPatience)
	defer patience.Stop()
	for {
		line, more := ws.next()
		if !more {
			return
		}
		if len(line) > manyWaiters {
			patience.Reset(headStart)
			<-patience.C
		}
		for _, w := range line {
			select {
			case w.wake <- struct{}{}:
			default:
				continue // it has not come to its last wake yet
			}
			patience.Reset(lookPatience)
			select {
			case <-w.looked:
			case <-w.gone:
			case <-patience.C:
			}
		}
	}
}

// next takes the watchers of the Session told of first. A commit that comes from now on tells
// again.
func (ws *watchers) next() (line []*watcher, more bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.told) == 0 {
		ws.waking = false
		return nil, false
	}
	id := ws.told[0]
	ws.told = ws.told[1:]
	for w := range ws.by[id] {
		line = append(line, w)
	}
	return line, true
}
