package history_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// noise is text of so many characters that hardly compresses, and in which nobody sees a secret.
func noise(r *rand.Rand, n int) string {
	b := make([]rune, n)
	for i := range b {
		if b[i] = ' '; i%5 > 0 {
			b[i] = 0x4e00 + r.Int32N(0x5000) // Chinese
		}
	}
	return string(b)
}

// bulky makes a Session whose state takes several parts.
func (w *world) bulky(t rapid.TB) event.SessionID {
	t.Helper()
	id := w.begin(t, "bulky")
	r := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		var events []event.Event
		for range 8 {
			events = append(events, event.InstructionAccepted{Text: noise(r, 4000), Continuation: "resumed", Mode: event.ModeNormal})
		}
		w.commit(t, event.SessionAggregate(id), events...)
	}
	return id
}

// partsOf counts the parts that the Session's state takes.
func (w *world) partsOf(t *testing.T, id event.SessionID) int {
	t.Helper()
	form, state, _, err := w.sessions.Carry(context.Background(), event.SessionAggregate(id))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := event.SplitState(form, state)
	if err != nil {
		t.Fatal(err)
	}
	return len(parts)
}

// A state in many parts is carried while its Session is written to all the time: a part that
// another commit came before begins anew, callers go on, and the Session made of what is left
// of the log is the same, however the read models' batches fell.
//
// Covers: RES-19
func TestStateInManyPartsWhileItsSessionIsWrittenTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, small)
	quiet, busy := w.bulky(t), w.bulky(t)
	stop, failed := make(chan struct{}), atomic.Int64{}
	if got := w.partsOf(t, busy); got < 3 {
		t.Fatalf("its state takes %d parts", got)
	}
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond): // on a slow machine they would fill the log before it is cut
				}
				if _, err := w.try(event.SessionAggregate(busy), event.ContextUpdated{}); err != nil && fault.KindOf(err) != fault.Conflict {
					failed.Add(1)
				}
			}
		})
	}
	err := w.pruner.Cut(context.Background(), 0)
	close(stop)
	writers.Wait()
	if err != nil || failed.Load() > 0 {
		t.Fatalf("%v, %d commits failed", err, failed.Load())
	}
	ids := []event.SessionID{quiet, busy}
	w.same(t, ids)
	w.reopen(t, true)
	w.same(t, ids)
	w.whole(t)
	r, err := w.pruner.Report()
	if err != nil || r.Facts.First != w.first() || r.Facts.First == 1 || r.Facts.LastPrune.Reason != history.ReasonOperator {
		t.Fatalf("%+v %v", r, err)
	}
}

// A record without a state holds the log's beginning where it needs it, with its reason; what
// comes before still leaves.
func TestARecordThatCannotBeCarriedHoldsTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tiny, func(w *world) {
		w.change = func(o *history.Options) {
			sessions := w.sessions
			o.Carrier = history.NewCarrier(w.writer, func(ctx context.Context, a event.Aggregate) (int, []byte, bool, error) {
				if v, err := sessions.Load(event.SessionID(a.ID)); err == nil && v.Core.Title == "stubborn" {
					return 0, nil, false, nil
				}
				return sessions.Carry(ctx, a)
			})
		}
	})
	w.fill(t, w.begin(t, "easy"), 2)
	stubborn := w.begin(t, "stubborn")
	head, _ := w.log.Head(event.SessionAggregate(stubborn))
	w.fill(t, w.begin(t, "later"), 4)
	blocks, err := w.log.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pruner.Cut(context.Background(), blocks[len(blocks)-1].First); err != nil {
		t.Fatal(err)
	}
	r, err := w.pruner.Report()
	if err != nil || r.Work.HeldBy != "session" || w.first() == 1 || w.first() > head.Seq {
		t.Fatalf("begins at %d, needed from %d on: %+v %v", w.first(), head.Seq, r.Work, err)
	}
	w.same(t, []event.SessionID{stubborn})
	w.reopen(t, true)
	w.same(t, []event.SessionID{stubborn})
}

// fill records calls of the Session until the log has so many blocks.
func (w *world) fill(t rapid.TB, id event.SessionID, blocks int) {
	t.Helper()
	for {
		list, err := w.log.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		if len(list) >= blocks {
			return
		}
		for range 5 {
			w.call(t, id, "a/path.go")
		}
	}
}

// A carried state is a commit of its own domain, by nobody but the system, and takes the
// reserve: it is written where new work is refused.
func TestCarryTakesTheReserve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tiny)
	id := w.begin(t, "full")
	for w.log.Admit() == nil {
		w.call(t, id, "a/path.go")
	}
	if _, err := w.writer.Do(context.Background(), aggregate.Command{Aggregate: event.SessionAggregate(id), Actor: system},
		decided(event.ContextUpdated{})); fault.KindOf(err) != fault.StorageFull {
		t.Fatalf("new work: %v", err)
	}
	d, err := w.pruner.Once(context.Background())
	if err != nil || d.Reason != history.ReasonBytes {
		t.Fatalf("%+v %v", d, err)
	}
	if err := w.log.Admit(); err != nil {
		t.Fatalf("after a round: %v", err)
	}
	w.same(t, []event.SessionID{id})
	w.reopen(t, true)
	w.same(t, []event.SessionID{id})
}
