package history

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func commitAt(at time.Time, events ...event.Event) event.Commit {
	return event.Commit{Aggregate: event.LogAggregate(), At: at, Events: events}
}

// A step of more than a day, forward or back, distrusts the clock until somebody confirms it;
// new commits with the same clock don't.
func TestClockStep(t *testing.T) {
	for name, c := range map[string]struct {
		by       time.Duration
		distrust bool
	}{"an hour back": {-time.Hour, false}, "a year forward": {365 * 24 * time.Hour, true}, "a day and a bit back": {-25 * time.Hour, true},
		"a night": {12 * time.Hour, false}} {
		l := New()
		l.Apply(1, "", commitAt(start))
		l.Apply(2, "", commitAt(start.Add(c.by)))
		l.Apply(3, "", commitAt(start.Add(c.by+time.Minute)))
		f := l.Facts()
		if (f.Step != nil) != c.distrust {
			t.Errorf("%s: %+v", name, f.Step)
		}
		if f.Step != nil && (f.Step.Seq != 2 || !f.Step.Before.Equal(start)) {
			t.Errorf("%s: %+v", name, f.Step)
		}
		l.Apply(4, "", commitAt(start.Add(c.by+2*time.Minute), event.LogClockConfirmed{}))
		if f := l.Facts(); f.Step != nil {
			t.Errorf("%s: confirmed, and still %+v", name, f.Step)
		}
	}
}

// What left for its age has the days that its share is worth pass before the next.
func TestDailyShare(t *testing.T) {
	l := New()
	for seq := range uint64(100) {
		l.Apply(seq+1, "", commitAt(start.Add(time.Duration(seq)*time.Minute)))
	}
	at := start.Add(3 * time.Hour)
	l.Apply(101, "", commitAt(at, event.LogPruned{FirstSeq: 21, Reason: "bytes"}))
	if f := l.Facts(); !f.RestUntil.IsZero() || f.First != 21 || f.LastPrune.Reason != "bytes" {
		t.Fatalf("%+v", f)
	}
	l.Apply(102, "", commitAt(at, event.LogPruned{FirstSeq: 62, Reason: ReasonAge})) // half of what is left
	if rest := l.Facts().RestUntil.Sub(at); rest != 5*24*time.Hour {
		t.Fatalf("rests for %v", rest)
	}
	l.Apply(103, "", commitAt(at, event.LogPruned{FirstSeq: 30, Reason: ReasonAge}))
	if f := l.Facts(); f.First != 62 || f.LastPrune.Seq != 102 {
		t.Fatalf("went back: %+v", f)
	}
}

// file is a state.db with the ledger's tables alone.
func file(t testing.TB) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "s.db")+"?_pragma=synchronous(off)&_pragma=journal_mode(memory)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, s := range New().Schema() {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func write(t rapid.TB, db *sql.DB, c state.Capture, fail bool) {
	t.Helper()
	if c == nil {
		return
	}
	tx, err := db.Begin()
	if err == nil {
		err = c.Write(context.Background(), tx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if fail {
		_ = tx.Rollback()
		return
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	c.Written()
}

// A ledger read from its rows is the one that wrote them and goes on alike, whatever
// transactions failed in between; and no commit is newer than NewestIn says of its range.
func TestLedgerFromItsRows(t *testing.T) {
	db := file(t)
	rapid.Check(t, func(rt *rapid.T) {
		if _, err := db.Exec(`DELETE FROM history_facts; DELETE FROM history_mark`); err != nil {
			rt.Fatal(err)
		}
		l := New()
		at, times := start, map[uint64]time.Time{}
		seq := uint64(rapid.IntRange(1, 5).Draw(rt, "first"))
		for range rapid.IntRange(1, 9).Draw(rt, "runs") {
			for range rapid.SampledFrom([]int{1, 2, 3, 3, 3, 3, 3, 3, 3, 520}).Draw(rt, "commits") {
				at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 3000, 100_000}).Draw(rt, "secs")) * time.Second)
				l.Apply(seq, "", commitAt(at))
				times[seq] = at
				seq++
			}
			if f := l.Facts(); rapid.IntRange(0, 3).Draw(rt, "prune") == 0 && f.Last > f.First {
				cut := uint64(rapid.IntRange(int(f.First)+1, int(f.Last)).Draw(rt, "cut"))
				l.Apply(seq, "", commitAt(at, event.LogPruned{FirstSeq: cut, Reason: ReasonAge}))
				times[seq] = at
				seq++
			}
			if rapid.Bool().Draw(rt, "write") {
				write(rt, db, l.Capture(), rapid.IntRange(0, 2).Draw(rt, "fails") == 0)
			}
		}
		write(rt, db, l.Capture(), false)
		again := New()
		if err := again.Load(context.Background(), db); err != nil {
			rt.Fatal(err)
		}
		same(rt, l, again)
		at = at.Add(48 * time.Hour)
		l.Apply(seq, "", commitAt(at))
		again.Apply(seq, "", commitAt(at))
		same(rt, l, again)
		f := l.Facts()
		a := uint64(rapid.IntRange(int(f.First), int(f.Last)).Draw(rt, "from"))
		b := uint64(rapid.IntRange(int(a), int(f.Last)).Draw(rt, "to"))
		newest := l.NewestIn(a, b)
		for s := a; s <= b; s++ {
			if times[s].After(newest) {
				rt.Fatalf("%d is of %v, newest in %d..%d is %v", s, times[s], a, b, newest)
			}
		}
	})
}

func same(t rapid.TB, a, b *Ledger) {
	t.Helper()
	if diff := cmp.Diff(a.Facts(), b.Facts()) + cmp.Diff(a.marks, b.marks); diff != "" {
		t.Fatal(diff)
	}
}

func TestDamagedRowsAreToldAndResetForgets(t *testing.T) {
	db := file(t)
	l := New()
	l.Apply(1, "", commitAt(start))
	l.Apply(2, "", commitAt(start.Add(2*time.Hour)))
	write(t, db, l.Capture(), false)
	if l.Capture() != nil {
		t.Error("nothing changed, and there is a capture")
	}
	for _, damage := range []string{`UPDATE history_mark SET at = at + 1`, `UPDATE history_facts SET body = '{}'`} {
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		if err := New().Load(t.Context(), db); err == nil {
			t.Errorf("%s: it was believed", damage)
		}
	}
	l.Reset()
	if f := l.Facts(); f != (Facts{}) || len(l.marks) != 0 {
		t.Errorf("after a reset: %+v", f)
	}
}
