package history_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/history"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// A budget below history.max_bytes, and below what the log holds already, is a reason to prune:
// nobody has to do anything until new work is taken again, and nothing that is alive is lost.
//
// Covers: EVT-04
func TestALowerBudgetPrunes(t *testing.T) {
	t.Parallel()
	const lower = 50_000
	w := newWorld(t, tiny, func(w *world) {
		w.change = func(o *history.Options) { o.Policy = history.Policy{MaxAge: 90 * 24 * time.Hour, MaxBytes: 4 << 30} }
	})
	ids := []event.SessionID{w.begin(t, "one"), w.begin(t, "two")}
	for w.log.Status().Bytes < 2*lower {
		for _, id := range ids {
			w.call(t, id, "some/path/of/a/file.go")
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "format"), fmt.Appendf(nil, `{"format":1,"log_max_bytes":%d}`, lower), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	if err := w.log.Admit(); fault.KindOf(err) != fault.StorageFull || !w.pruner.Full() {
		t.Errorf("above the budget: %v", err)
	}
	for range 4 {
		if _, err := w.pruner.Once(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if s := w.log.Status(); s.Bytes > lower/100*history.BudgetShare || s.Space != eventlog.SpaceOK || w.pruner.Full() {
		t.Errorf("%d bytes of %d, space %s", s.Bytes, s.MaxBytes, s.Space)
	}
	if err := w.log.Admit(); err != nil {
		t.Errorf("after the prune: %v", err)
	}
	_, err := w.writer.Do(context.Background(), aggregate.Command{Aggregate: event.SessionAggregate(ids[0]), Actor: system},
		func(time.Time) ([]event.Event, error) { return []event.Event{event.SessionClosed{}}, nil })
	if err != nil {
		t.Errorf("new work: %v", err)
	}
	w.same(t, ids)
	w.whole(t)
	w.reopen(t, true)
	w.same(t, ids)
}

// Nothing leaves a damaged log, and nothing is carried in it for that.
func TestADamagedLogIsNotPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, tiny, func(w *world) {
		w.change = func(o *history.Options) { o.Policy = history.Policy{MaxBytes: 40_000} }
	})
	id := w.begin(t, "one")
	for w.log.Status().Bytes < 90_000 {
		w.call(t, id, "some/path/of/a/file.go")
	}
	block := filepath.Join(w.dir, "log", "jetstream", "WC", "streams", "LOG", "msgs", "2.blk")
	b, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(block, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := w.log.Verify(context.Background()); err != nil || r.OK() {
		t.Fatalf("verify: %+v, %v", r, err)
	}
	before := w.log.Status()
	d, err := w.pruner.Once(context.Background())
	if after := w.log.Status(); err != nil || d.Hold != history.HoldDamage || after.Seq != before.Seq || after.FirstSeq != before.FirstSeq {
		t.Errorf("%+v, %v: from commit %d to %d, %d before", d, err, after.FirstSeq, after.Seq, before.Seq)
	}
}
