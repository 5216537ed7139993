package session

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Readers, targets of mutations, evictions and repairs of damaged rows beside a writer: every
// answer is a state that the Session has had, none goes back, and the end is the fold.
func TestReadersTargetsAndRepairsBesideAWriter(t *testing.T) {
	w := three(t)
	w.store.SetHotTarget(1)
	id := func(i int) event.SessionID { return event.SessionID(fmt.Sprintf("wc_sess_%032x", i)) }
	w.exec(`UPDATE session SET core = replace(core, 'session 1', 'session 7') WHERE id = ?`, string(id(1)))
	w.exec(`UPDATE session_tail SET event = replace(event, 'a.go', 'b.go') WHERE slot = 9 AND session = (SELECT num FROM session WHERE id = ?)`, string(id(2)))
	w.exec(`UPDATE session_message SET message = replace(message, 'text 2', 'text 7') WHERE session = (SELECT num FROM session WHERE id = ?)`, string(id(0)))
	var log sync.Mutex // the log in memory is read by repairs
	w.store.SetSource(func(_ context.Context, id event.SessionID, fn func(Stored) error) error {
		log.Lock()
		defer log.Unlock()
		for _, s := range w.log {
			if s.Commit.Aggregate == event.SessionAggregate(id) {
				if err := fn(s); err != nil {
					return err
				}
			}
		}
		return nil
	})
	done := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			seen, boards := map[event.SessionID]uint64{}, map[event.SessionID]uint64{}
			for i := n; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				of := id(i % 3)
				var c Core
				var err error
				switch n {
				case 0, 2:
					c, err = w.store.Target(of)
				case 1:
					var v View
					v, err = w.store.Load(of)
					c = v.Core
				default:
					var b Board
					c, b, err = w.store.LoadBoard(of)
					if m, ok := b.Find(messageNo(2)); ok && m.Text != "text 2" || b.Revision < boards[of] {
						t.Errorf("%s: revision %d after %d, %+v", of, b.Revision, boards[of], m)
						return
					}
					boards[of] = b.Revision
				}
				if err != nil || c.ID != of || c.Version < seen[of] || c.Title != fmt.Sprint("session ", i%3) {
					t.Errorf("%s: version %d after %d, %q, %v %s", of, c.Version, seen[of], c.Title, err, fault.KindOf(err))
					return
				}
				seen[of] = c.Version
			}
		})
	}
	for n := range 40 {
		v := w.truth[id(n%3)]
		var e event.Event = event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: fmt.Sprint(n)}}
		if n%2 == 0 {
			e = post(100+n, event.MessageNote)
		}
		log.Lock()
		s := Stored{Seq: uint64(len(w.log) + 1), Hash: fmt.Sprintf("%064x", len(w.log)+1), Commit: event.Commit{Aggregate: event.SessionAggregate(id(n % 3)),
			Version: v.Core.Version + 1, At: v.Core.UpdatedAt, Events: []event.Event{e}}}
		w.log = append(w.log, s)
		log.Unlock()
		w.truth[id(n%3)] = v.Apply(s.Seq, s.Hash, s.Commit)
		w.feed(s)
		if n%4 == 0 {
			w.flush()
		}
	}
	close(done)
	wg.Wait()
	w.flush()
	for i := range 3 {
		if diff := w.checkOne(id(i), w.truth[id(i)]); diff != "" {
			t.Fatal(diff)
		}
	}
	w.restart()
	for i := range 3 {
		if v := must(w.store.View(id(i)))(t); !cmp.Equal(stateOf(v), stateOf(w.truth[id(i)]), empty) {
			t.Fatalf("Session %d differs", i)
		}
	}
}
