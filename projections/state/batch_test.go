package state

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// The window begins at the first mark; those that follow without end never put it off.
//
// Covers: SES-45
func TestWindowIsNeverExtended(t *testing.T) {
	asked, fire := make(chan time.Duration, 100), make(chan time.Time)
	k, m := open(t, filepath.Join(t.TempDir(), "state.db"), Options{after: func(d time.Duration) <-chan time.Time {
		asked <- d
		return fire
	}})
	k.Apply(applied(1))
	if d := <-asked; d > Window {
		t.Fatalf("a window of %s", d)
	}
	for seq := range uint64(500) { // while it is open
		k.Apply(applied(seq + 2))
	}
	if len(asked) != 0 {
		t.Fatal("a later mark began the window anew")
	}
	fire <- time.Now()
	for k.Status().Seq < 501 { // a commit before the batch is taken belongs to its window
		runtime.Gosched()
	}
	flush(t, k) // answered once the window's batch is in the file
	if n := m.total(t); n != 501*502/2 {
		t.Fatalf("total %d", n)
	}
}

// Nothing gets into the file that is not durable in the log, nor at the end of a life.
func TestFileIsNeverAheadOfTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	k, m := open(t, path, Options{})
	var synced atomic.Uint64
	k.Serve(synced.Load)
	for seq := range uint64(3) {
		k.Apply(applied(seq + 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*Window)
	defer cancel()
	if err := k.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || m.total(t) != 0 {
		t.Fatalf("%v, total %d", err, m.total(t))
	}
	synced.Store(2) // of a batch up to 3
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k, m = open(t, path, Options{})
	if cp := must(k.Checkpoint())(t); cp.Seq != 0 || m.total(t) != 0 {
		t.Fatalf("%+v", cp)
	}
	synced.Store(3)
	k.Serve(synced.Load)
	for seq := range uint64(3) {
		k.Apply(applied(seq + 1))
	}
	flush(t, k)
	if cp := must(k.Checkpoint())(t); cp.Seq != 3 || m.total(t) != 6 {
		t.Fatalf("%+v", cp)
	}
}

// Covers: RES-23
func TestErrorIsToldUntilAGoodWrite(t *testing.T) {
	k, m := open(t, filepath.Join(t.TempDir(), "state.db"), Options{})
	m.failing(errors.New("no"))
	k.Apply(applied(1))
	if err := k.Flush(t.Context()); err == nil || k.Status().LastPersistError == "" {
		t.Fatal("no error is told")
	}
	if h, ok, err := k.Head(agg); !ok || err != nil || h.Version != 1 {
		t.Fatal(h, err)
	}
	m.failing(nil)
	k.Apply(applied(2))
	flush(t, k)
	if s := k.Status(); s.LastPersistError != "" || s.Seq != 2 || m.total(t) != 3 {
		t.Fatalf("%+v, total %d", s, m.total(t))
	}
}

func TestHeadsDamageAndTheOldestLiving(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	k, _ := open(t, path, Options{})
	ids := []event.SessionID{"wc_sess_00000000000000000000000000000002", "wc_sess_00000000000000000000000000000003",
		"wc_sess_00000000000000000000000000000004"}
	seq := uint64(0)
	apply := func(a event.Aggregate, version, root uint64, events ...event.Event) {
		seq++
		k.Apply(eventlog.Applied{Seq: seq, Hash: "h", Root: root, First: version == 1,
			Commit: event.Commit{Aggregate: a, Version: version, Events: events}})
	}
	oldest := func(want string, root uint64) {
		t.Helper()
		for range 2 { // from memory, and from the file
			l, ok, err := k.OldestLiving(100)
			if err != nil || ok != (want != "") || ok && (l.Aggregate.String() != want || l.Root != root) {
				t.Fatalf("%+v %v %v, want %s at %d", l, ok, err, want, root)
			}
			flush(t, k)
		}
	}
	apply(event.LogAggregate(), 1, 1, event.LogCreated{Epoch: "e"})
	oldest("", 0)
	for _, id := range ids {
		apply(event.SessionAggregate(id), 1, seq+1)
	}
	first, second, third := event.SessionAggregate(ids[0]), event.SessionAggregate(ids[1]), event.SessionAggregate(ids[2])
	oldest(first.String(), 2)
	apply(first, 2, 5) // carried forward
	oldest(second.String(), 3)
	apply(event.RetentionAggregate(), 1, 6, event.SessionRemoved{Session: ids[1]})
	oldest(third.String(), 4)
	apply(second, 2, 0) // a late end does not bring it back
	k.Damage(third, eventlog.Damage{Aggregate: third.String(), Seq: 9, Reason: "gap"})
	oldest(third.String(), 4)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k, _ = open(t, path, Options{})
	oldest(third.String(), 4)
	d := must(k.Damaged())(t)
	if len(d) != 1 || d[0].Seq != 9 || d[0].Reason != "gap" || d[0].Aggregate != third.String() {
		t.Fatalf("%+v", d)
	}
	if h, ok, err := k.Head(second); !ok || err != nil || h.Version != 2 || h.Root != 3 {
		t.Fatal(h, ok, err)
	}
	if cp := must(k.Checkpoint())(t); cp.Aggregates != 5 || cp.Epoch != "e" || cp.Seq != seq {
		t.Fatalf("%+v", cp)
	}
}
