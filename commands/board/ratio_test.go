package board_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/projections/session"
)

// durable is a world as `up` makes it: an acknowledgement holds over a power cut.
func durable(t *testing.T) *world {
	t.Helper()
	bench.Skip(t)
	e := &calltest.Env{T: t, Dir: t.TempDir(), Fleet: calltest.NewFleet(), Store: session.NewStore(), Server: event.NewInstanceID()}
	var err error
	if e.Log, err = eventlog.Open(t.Context(), eventlog.Options{Dir: e.Dir, Durability: eventlog.Always, Server: e.Server, Now: time.Now,
		Folds: []eventlog.Fold{e.Store}, MaxBytes: 256 << 20}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Log.Close() })
	e.Kernel = call.NewKernel(call.Config{Log: e.Log, Sessions: e.Store, Fleet: e.Fleet, Server: e.Server, Now: time.Now, Epoch: e.Log.Epoch})
	w := &world{Env: e, t: t}
	w.id = w.start()
	return w
}

// posting makes posts to a Session, one after the other.
func (w *world) posting(id event.SessionID) func() time.Duration {
	req := call.Request{Spec: &board.PostMessage, Args: encoded(w.t, args{"session_id": id, "kind": "note", "message": "the build is green again"}),
		Principal: calltest.Owner(), Transport: "mcp"}
	return func() time.Duration {
		began := time.Now()
		if _, err := w.Kernel.Call(context.Background(), req); err != nil {
			w.t.Fatal(err)
		}
		return time.Since(began)
	}
}

// Posting costs little beside the commit that it is.
func TestRatioPost(t *testing.T) {
	w := durable(t)
	const batch = 50
	post := w.posting(w.id)
	agg := event.SessionAggregate(w.start())
	bench.Run(t, bench.Comparison{Name: "a post / a bare commit of the same event", Bar: 1.3, AtMost: true, Pairs: 40,
		Ours: func() (took time.Duration) {
			for range batch {
				took += post()
			}
			return took
		},
		Yardstick: func() time.Duration {
			began := time.Now()
			for range batch {
				head, err := w.Log.Head(agg)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Log.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: agg, Expect: head, At: time.Now(),
					Actor: calltest.Owner().Actor, Events: []event.Event{event.MessagePosted{Message: event.NewMessageID(), Kind: event.MessageNote,
						Text: "the build is green again", Priority: event.PriorityNormal}}}); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(began)
		}})
}

// A waiter has its answer no longer after the post's acknowledgement than the post took.
func TestRatioWake(t *testing.T) {
	w := durable(t)
	post := w.posting(w.id)
	token := w.observe("", nil).Token
	const rounds = 300
	var posts, lags []time.Duration
	for range rounds {
		woken := make(chan time.Time, 1)
		var next string
		go func() {
			resp, err := w.Call(&board.ObserveMessages, w.on(args{"after_observation_token": token, "wait_secs": 60}))
			at := time.Now()
			next = outOf[board.ObserveOut](t, resp, err).Token
			woken <- at
		}()
		w.waiting(1)
		posts = append(posts, post())
		acked := time.Now()
		lags = append(lags, max(0, (<-woken).Sub(acked)))
		token = next
	}
	slices.Sort(posts)
	slices.Sort(lags)
	p, l := posts[rounds/2], lags[rounds/2]
	t.Logf("a post %s, woken %s after it", p, l)
	bench.Figure(t, "a waiter's answer after the post's acknowledgement / the post (medians)", float64(l)/float64(p), 1, rounds)
}

// A thousand that wait on one Session are cheap, and a post that wakes them all is hardly later.
func TestRatioThousandWaiters(t *testing.T) {
	w := durable(t)
	const waiters, principals, rounds = 1000, 40, 60
	post := w.posting(w.id)
	alone := &world{Env: w.Env, t: t, id: w.start()}
	elsewhere := alone.posting(alone.id)
	enter := func() (gone *sync.WaitGroup) {
		token := w.observe("", nil).Token
		gone = &sync.WaitGroup{}
		for i := range waiters {
			p := window("c")
			p.Actor.Principal = fmt.Sprintf("%064x", i%principals)
			req := call.Request{Spec: &board.ObserveMessages, Args: encoded(t, w.on(args{"after_observation_token": token, "wait_secs": 60})), Principal: p, Transport: "mcp"}
			gone.Go(func() {
				if _, err := w.Kernel.Call(context.Background(), req); err != nil {
					t.Error(err)
				}
			})
		}
		w.waiting(waiters)
		return gone
	}
	inUse := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc + m.StackInuse)
	}
	post()
	before := inUse()
	gone := enter()
	each := (inUse() - before) / waiters
	post()
	gone.Wait()
	bench.Figure(t, "bytes that one of 1,000 waiters holds", each, 20<<10, waiters)

	var woke, beside, none []time.Duration
	for range rounds {
		for range 5 {
			none = append(none, post())
		}
		gone := enter()
		for range 5 {
			beside = append(beside, elsewhere())
		}
		woke = append(woke, post())
		gone.Wait()
	}
	for _, d := range [][]time.Duration{woke, beside, none} {
		slices.Sort(d)
	}
	m := func(d []time.Duration) float64 { return float64(d[len(d)/2]) }
	t.Logf("a post alone %s, beside 1,000 waiters %s, one that wakes them %s", time.Duration(m(none)), time.Duration(m(beside)), time.Duration(m(woke)))
	bench.Figure(t, "a post beside 1,000 waiters / a post (medians)", m(beside)/m(none), 1.2, rounds)
	bench.Figure(t, "a post that wakes 1,000 waiters / a post (medians)", m(woke)/m(none), 1.2, rounds)
}
