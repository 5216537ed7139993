package history_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/projections/session"
)

func decided(events ...event.Event) aggregate.Decide {
	return func(time.Time) ([]event.Event, error) { return events, nil }
}

// With policy tail an event that has left its Session's tail is in no file of the log after
// the next round, and neither is a removed Session; what the tail still has stays. A round
// fits well into the minute that is allowed.
//
// Covers: EVT-04
func TestPolicyTailLeavesNothingBeyondTheTail(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, small, func(w *world) {
		w.now = func() time.Time { return now }
		w.change = func(o *history.Options) { o.Policy = history.Policy{Tail: true} }
	})
	once := func(want bool) {
		t.Helper()
		began := time.Now()
		d, err := w.pruner.Once(context.Background())
		if err != nil || d.Due() != want {
			t.Fatalf("%+v %v", d, err)
		}
		if took := time.Since(began); took > time.Minute-history.Tick-history.TailEvery {
			t.Errorf("a round took %v", took)
		}
		now = now.Add(history.TailEvery)
	}
	id, other := w.begin(t, "long"), w.begin(t, "other, the-other-marker")
	w.commit(t, event.SessionAggregate(id), event.InstructionAccepted{Text: "the-first-marker", Mode: event.ModeNormal})
	w.commit(t, event.SessionAggregate(id), event.InstructionAccepted{Text: "the-second-marker", Mode: event.ModeNormal})
	n := 2
	grow := func(to int) {
		for ; n < to; n += 2 {
			now = now.Add(time.Millisecond)
			w.commit(t, event.SessionAggregate(id), event.ContextUpdated{}, event.ContextUpdated{})
		}
	}
	grow(session.MaxTail)
	once(false) // the tail is full and nothing has left it
	if !w.holds(t, "the-first-marker") {
		t.Fatal("the marker is not where it is looked for")
	}
	w.commit(t, event.SessionAggregate(id), event.ContextUpdated{})
	once(true)
	// The second marker is in the carried state alone, which is compressed: a reader finds it.
	if w.holds(t, "the-first-marker") || w.holds(t, "the-second-marker") {
		t.Error("the log holds what left the tail")
	}
	view, err := w.sessions.Load(id)
	if err != nil || view.Tail.First() != 2 || view.Tail.Items()[0].Event().(event.InstructionAccepted).Text != "the-second-marker" {
		t.Fatalf("the tail begins at %d: %v", view.Tail.First(), err)
	}
	once(false) // nothing happened since
	w.reopen(t, true)
	if _, err := w.pruner.Once(context.Background()); err != nil { // looks once more at what it cannot know
		t.Fatal(err)
	}
	now = now.Add(history.TailEvery)
	once(false)
	w.same(t, []event.SessionID{id, other})

	// The carried state held the second marker; now it leaves too.
	w.commit(t, event.SessionAggregate(id), event.ContextUpdated{})
	first := w.first()
	once(true)
	if w.first() <= first {
		t.Error("the state that was carried first did not leave")
	}
	w.commit(t, event.SessionAggregate(other), event.SessionClosed{})
	w.remove(t, other)
	once(true)
	if w.holds(t, "the-other-marker") {
		t.Error("a removed Session is still there")
	}
	w.reopen(t, true)
	w.same(t, []event.SessionID{id, other})
	w.whole(t)
}

// Age decides nothing while the clock is not to be trusted: an hour back is nothing, a year
// forward stops it until a person confirms, and then a day's share leaves, not all.
//
// Covers: EVT-04
func TestClockDecidesOnlyWhenItCanBeTrusted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, tiny, func(w *world) {
		w.now = func() time.Time { return now }
		w.change = func(o *history.Options) { o.Policy = history.Policy{MaxAge: 90 * 24 * time.Hour} }
	})
	id := w.begin(t, "clock")
	w.fill(t, id, 3)
	look := func(hold string, due bool) {
		t.Helper()
		first := w.first()
		d, err := w.pruner.Once(context.Background())
		if err != nil || d.Hold != hold || d.Due() != due || (w.first() > first) != due {
			t.Fatalf("%+v %v, began at %d and begins at %d", d, err, first, w.first())
		}
	}
	look("", false)
	now = now.Add(-time.Hour)
	w.call(t, id, "a.go")
	look("", false)
	now = now.Add(365 * 24 * time.Hour)
	look(history.HoldClock, false)
	w.call(t, id, "a.go") // with the same clock: it proves nothing
	look(history.HoldClock, false)
	w.reopen(t, false)
	look(history.HoldClock, false)
	w.reopen(t, true)
	look(history.HoldClock, false)
	if err := w.pruner.ConfirmClock(context.Background()); err != nil {
		t.Fatal(err)
	}
	look("", true)
	look(history.HoldDailyShare, false)
	w.reopen(t, true) // when a commit was made that nobody needs is not known any more
	if d, err := w.pruner.Once(context.Background()); d.Due() || err != nil {
		t.Fatalf("%+v %v", d, err)
	}
	r, err := w.pruner.Report()
	if err != nil || r.Facts.First != w.first() || r.Facts.LastPrune == nil || r.Facts.RestUntil.Before(now) {
		t.Fatalf("%+v %v", r.Facts, err)
	}
	w.same(t, []event.SessionID{id})
}

// However much is recorded, what lies on the disk stays within the bound and what is stated
// beside it: a block that is being written, and one more until the next look.
func TestBytesStayWithinTheirBound(t *testing.T) {
	t.Parallel()
	const block = 4 << 20
	calls, sessions, every, bound := 9_000, 20, 500, int64(block)
	if soak {
		calls, sessions, every, bound = 1_000_000, 200, 2000, 3*block
		if raced {
			calls = 50_000
		}
	}
	if testing.Short() {
		calls = 2000
	}
	w := newWorld(t, small, func(w *world) {
		w.change = func(o *history.Options) { o.Policy = history.Policy{MaxBytes: bound} }
	})
	var ids []event.SessionID
	for i := range sessions {
		ids = append(ids, w.begin(t, fmt.Sprintf("Session %d", i)))
	}
	most := int64(0)
	for n := range calls {
		w.read(t, ids[n%len(ids)], "some/path/of/a/file.go", "another/one.go")
		if n%every > 0 {
			continue
		}
		most = max(most, w.log.Status().Bytes) // it falls from here
		if _, err := w.pruner.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.pruner.Report()
	if err != nil || r.Work.Rounds == 0 && !testing.Short() {
		t.Errorf("%+v %v", r, err)
	}
	bench.Figure(t, fmt.Sprintf("field: most bytes of the log while %d calls are recorded; %d configured, two blocks of overhead", calls, bound),
		float64(most), float64(bound+2*block), calls)
	t.Logf("%d rounds, %d records and %d bytes carried, %d bytes left", r.Work.Rounds, r.Work.Carried, r.Work.CarriedBytes, r.Work.FreedBytes)
	w.same(t, ids)
	w.reopen(t, true)
	w.same(t, ids)
	w.whole(t)
}
