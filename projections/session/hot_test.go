package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"webcodex/eventlog/event"
)

// hotIDs are the expanded Sessions, those used last first, Active before Closed.
func (s *Store) hotIDs() (out []event.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for x := s.hot.active.Front(); x != nil; x = x.Next() {
		out = append(out, x.Value.(*entry).id)
	}
	for x := s.hot.closed.Front(); x != nil; x = x.Next() {
		out = append(out, x.Value.(*entry).id)
	}
	return out
}

// crowd is a world of n Sessions, each created and called once; every third is closed.
func crowd(t *testing.T, target, n int) *world {
	w := newWorld(t, target)
	for i := range n {
		id := sessionNo(i)
		w.commit(Stored{Commit: callCommit(id, 1)})
		w.commit(Stored{Commit: callCommit(id, 2)})
		if i%3 == 2 {
			w.close(id)
		}
	}
	w.flush()
	return w
}

func (w *world) next(id event.SessionID, events ...event.Event) {
	v := w.truth[id]
	w.commit(Stored{Commit: event.Commit{Aggregate: event.SessionAggregate(id), Version: v.Core.Version + 1, At: v.Core.UpdatedAt.Add(time.Second),
		Server: testServer, Events: events}})
}

func (w *world) close(id event.SessionID) { w.next(id, event.SessionClosed{}) }

// Ten times the target of Sessions, most of them Active: the expanded ones stay at the
// target, none goes missing, and each takes what is written to it.
//
// Covers: SES-25, SES-26, SES-40
func TestHotSessionsFollowTheTarget(t *testing.T) {
	for _, target := range []int{0, 1, 4} {
		w := crowd(t, target, 10*max(target, 1))
		if n := len(w.store.hotIDs()); n > max(target, 1) {
			t.Fatalf("target %d: %d are expanded", target, n)
		}
		for id := range w.truth {
			c, err := w.store.Target(id)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(w.store.hotIDs()); n > max(target, 1) {
				t.Fatalf("target %d: %d are expanded", target, n)
			}
			if c.Lifecycle == Active {
				if hot := w.store.hotIDs(); target > 0 && !slices.Contains(hot, id) {
					t.Fatalf("target %d: the target of a mutation is not hot: %v", target, hot)
				}
				w.next(id, event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "sub"}})
				w.flush()
			}
		}
		w.flush()
		if n := len(w.store.hotIDs()); n > max(target, 1) {
			t.Fatalf("target %d: %d are expanded after the batch", target, n)
		}
		if diff := w.check(); diff != "" {
			t.Fatal(diff)
		}
		w.restart()
		if n := len(w.store.hotIDs()); n != 0 { // a start expands none
			t.Fatalf("%d are hot at start", n)
		}
	}
}

// What the file has not is expanded beyond the target until the batch is written, and is then
// let go of.
func TestUnwrittenSessionsStay(t *testing.T) {
	w := crowd(t, 1, 4)
	w.exec(`CREATE TRIGGER stop BEFORE INSERT ON session_tail BEGIN SELECT raise(ABORT, 'no'); END`)
	for i := range 3 {
		w.commit(Stored{Commit: callCommit(sessionNo(100+i), 1)})
	}
	if err := w.keeper.Flush(t.Context()); err == nil {
		t.Fatal("it was written")
	}
	if n := len(w.store.hotIDs()); n < 3 {
		t.Fatalf("%d are expanded, the file has none of three", n)
	}
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
	w.exec(`DROP TRIGGER stop`)
	w.flush()
	if n := len(w.store.hotIDs()); n != 1 {
		t.Fatalf("%d are expanded", n)
	}
}

// Covers: SES-29
func TestQueriesPromoteNothing(t *testing.T) {
	w := crowd(t, 2, 12)
	before := w.store.hotIDs()
	for offset := 0; offset < 12; offset += 3 {
		if _, err := w.store.Page(Filter{AnyAuthority: true}, offset, ptr(3)); err != nil {
			t.Fatal(err)
		}
	}
	w.store.List(Filter{AnyAuthority: true})
	opened(t, w.store)
	w.store.Totals()
	for i := range 12 { // exact reads of cold ones are of a temporary copy
		if !slices.Contains(before, sessionNo(i)) {
			must(w.store.View(sessionNo(i)))(t)
			must(w.store.Core(sessionNo(i)))(t)
		}
	}
	if after := w.store.hotIDs(); !slices.Equal(before, after) {
		t.Fatalf("hot were %v, are %v", before, after)
	}
}

// Covers: SES-43, SES-44
func TestVictimsAreClosedFirstThenTheLeastUsed(t *testing.T) {
	w := crowd(t, 4, 0)
	for i := range 4 {
		w.commit(Stored{Commit: callCommit(sessionNo(i), 1)})
	}
	w.close(sessionNo(3)) // used last, and yet the first to go
	w.flush()
	seq, batches := w.store.Applied(), w.keeper.Status().Seq
	for range 100 { // 0 becomes the one used last
		must(w.store.View(sessionNo(0)))(t)
	}
	if err := w.keeper.Flush(t.Context()); err != nil || w.store.Applied() != seq || w.keeper.Status().Seq != batches {
		t.Fatal("a read was written", err)
	}
	want := []event.SessionID{sessionNo(0), sessionNo(2), sessionNo(1), sessionNo(3)}
	if got := w.store.hotIDs(); !slices.Equal(got, want) {
		t.Fatalf("order %v, want %v", got, want)
	}
	for i, gone := range []int{3, 1, 2} {
		w.commit(Stored{Commit: callCommit(sessionNo(10+i), 1)})
		w.flush()
		hot := w.store.hotIDs()
		if slices.Contains(hot, sessionNo(gone)) || len(hot) != 4 {
			t.Fatalf("%d should have gone: %v", gone, hot)
		}
		if i < 2 && !slices.Contains(hot, sessionNo(0)) {
			t.Fatalf("the one read last went: %v", hot)
		}
	}
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
}

// Covers: SES-32, SES-42, SES-58
func TestTotalsOfHotAndCold(t *testing.T) {
	w := crowd(t, 3, 9)
	got := w.store.Totals()
	want := Totals{Sessions: 9, Active: 6, Closed: 3, Hot: 3, Cold: 6, HotTarget: 3, MaxSessions: 3, MaxTail: MaxTail}
	if got != want {
		t.Fatalf("%+v, want %+v", got, want)
	}
	w.store.SetHotTarget(0)
	if got = w.store.Totals(); got.Hot != 1 || got.Cold != 8 || got.MaxSessions != 0 || got.Sessions != 9 {
		t.Fatalf("%+v", got)
	}
}

// A removed Session leaves no row, whatever still comes of it.
func TestRemovedSessionLeavesNoRow(t *testing.T) {
	w := crowd(t, 1, 6)
	for _, i := range []int{2, 5} {
		id := sessionNo(i)
		late := w.truth[id]
		w.remove(id)
		if i == 5 {
			w.flush()
		}
		w.truth[id] = late // the log takes a late end
		w.next(id, event.ExecutionFinished{Execution: event.ExecutionID(fmt.Sprint(i)), Tool: "run_process"})
		delete(w.truth, id)
		w.flush()
		for _, query := range []string{`SELECT count(*) FROM session WHERE id = ?`,
			`SELECT count(*) FROM session_tail WHERE session NOT IN (SELECT num FROM session) AND ? != ''`} {
			var n int
			if err := w.keeper.QueryRowContext(t.Context(), query, string(id)).Scan(&n); err != nil || n != 0 {
				t.Fatalf("%d rows are left, %v", n, err)
			}
		}
	}
	if got := w.store.Totals(); got.Sessions != 4 || got.Closed != 0 {
		t.Fatalf("%+v", got)
	}
	w.restart()
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
}
