package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/state"
)

// world is a log in memory, and lives of a Store on a real file.
type world struct {
	t     testing.TB
	path  string
	log   []Stored // of all Sessions, by sequence
	truth map[event.SessionID]View
	gone  map[event.SessionID]bool

	keeper *state.Keeper
	store  *Store
	target int
	// damaged is what the log says of itself when a Session is read again.
	damaged error
	reread  int
}

func newWorld(t testing.TB, target int) *world {
	w := &world{t: t, path: filepath.Join(t.TempDir(), "state.db"), truth: map[event.SessionID]View{}, gone: map[event.SessionID]bool{},
		target: target}
	w.open()
	t.Cleanup(func() { _ = w.keeper.Close() })
	return w
}

// open begins a life: what the file has not seen is fed again.
func (w *world) open() {
	w.t.Helper()
	w.openAt(func(uint64) {})
}

// openAt is open, with a look at where the file stands before anything is fed.
func (w *world) openAt(look func(seq uint64)) {
	w.t.Helper()
	w.store = NewStore()
	w.store.SetHotTarget(w.target)
	w.store.SetSource(func(_ context.Context, id event.SessionID, fn func(Stored) error) error {
		w.reread++
		for _, s := range w.log {
			if s.Commit.Aggregate == event.SessionAggregate(id) && w.damaged == nil {
				if err := fn(s); err != nil {
					return err
				}
			}
		}
		return w.damaged
	})
	var err error
	if w.keeper, err = state.Open(context.Background(), state.Options{Path: w.path, Fold: fmt.Sprint(FoldVersion),
		Models: []state.Model{w.store.Model()}}); err != nil {
		w.t.Fatal(err)
	}
	w.store.SetKeeper(w.keeper)
	cp, err := w.keeper.Checkpoint()
	if err != nil {
		w.t.Fatal(err)
	}
	look(cp.Seq)
	for _, s := range w.log[cp.Seq:] {
		w.feed(s)
	}
}

func (w *world) feed(s Stored) {
	a := eventlog.Applied{Seq: s.Seq, Hash: s.Hash, Commit: s.Commit}
	if s.Commit.Version == 1 {
		a.First, a.Root = true, s.Seq
	}
	w.keeper.Apply(a)
}

// commit appends the next commit of the history to the log.
func (w *world) commit(s Stored) {
	s.Seq = uint64(len(w.log) + 1)
	s.Hash = fmt.Sprintf("%064x", s.Seq)
	w.log = append(w.log, s)
	id := event.SessionID(s.Commit.Aggregate.ID)
	if !w.gone[id] {
		w.truth[id] = w.truth[id].Apply(s.Seq, s.Hash, s.Commit)
	}
	w.feed(s)
}

func (w *world) remove(id event.SessionID) {
	s := Stored{Seq: uint64(len(w.log) + 1), Hash: "r", Commit: event.Commit{Aggregate: event.RetentionAggregate(),
		Version: 1, Events: []event.Event{event.SessionRemoved{Session: id}}}}
	w.log = append(w.log, s)
	delete(w.truth, id)
	w.gone[id] = true
	w.feed(s)
}

func (w *world) flush() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := w.keeper.Flush(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// crash ends a life without a word: the next one has the files as they are now.
func (w *world) crash() {
	w.t.Helper()
	next := filepath.Join(w.t.TempDir(), "state.db")
	for _, end := range []string{"", "-wal"} {
		copyFile(w.t, w.path+end, next+end)
	}
	old := w.keeper
	w.path = next
	w.open()
	_ = old.Close()
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.Copy(dst, src)
	}
	if err == nil {
		err = dst.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) restart() {
	w.t.Helper()
	if err := w.keeper.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// check holds everything that the Store answers against the folds.
func (w *world) check() string {
	want := NewStore()
	for _, s := range w.log {
		want.Apply(s.Seq, s.Hash, s.Commit)
	}
	for id, v := range w.truth {
		if diff := w.checkOne(id, v); diff != "" {
			return diff
		}
	}
	for id := range w.gone {
		if _, err := w.store.Load(id); fault.KindOf(err) != fault.UnknownSessionID {
			return fmt.Sprint("a removed Session gives ", err)
		}
	}
	for _, f := range []Filter{{AnyAuthority: true}, {Authority: testAuthority, Project: testProject}, {Authority: testAuthority, Lifecycle: Closed},
		{Authority: "bb"}, {AnyAuthority: true, Lifecycle: Active}} {
		all := want.List(f)
		if diff := cmp.Diff(all, w.store.List(f), empty); diff != "" {
			return fmt.Sprintf("list of %+v: %s", f, diff)
		}
		for offset := 0; offset <= len(all); offset += 2 {
			part, total, err := w.store.Select(f, offset, 2)
			if err != nil || total != len(all) {
				return fmt.Sprint("total ", total, err)
			}
			if diff := cmp.Diff(all[offset:min(offset+2, len(all))], part, empty); diff != "" {
				return fmt.Sprintf("page at %d: %s", offset, diff)
			}
		}
	}
	a, b := want.Totals(), w.store.Totals()
	if a.Sessions != b.Sessions || a.Active != b.Active || a.Closed != b.Closed {
		return fmt.Sprintf("totals %+v, want %+v", b, a)
	}
	wantOpen, _ := want.Open()
	open, err := w.store.Open()
	return fmt.Sprint(cmp.Diff(wantOpen, open, empty), or(err))
}

func or(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (w *world) checkOne(id event.SessionID, want View) string {
	got, err := w.store.Load(id)
	if err != nil {
		return err.Error()
	}
	if diff := cmp.Diff(stateOf(want), stateOf(got), empty); diff != "" {
		return fmt.Sprintf("%s: %s", id, diff)
	}
	if c, ok := w.store.Core(id); !ok || !cmp.Equal(want.Core, c, empty) {
		return cmp.Diff(want.Core, c, empty)
	}
	for _, j := range want.Core.Ended {
		if got, owner, ok := w.store.Ended(j.Execution); !ok || owner.ID != id || got.Execution != j.Execution {
			return fmt.Sprintf("the end of %s is not found", j.Execution)
		}
	}
	return ""
}

// drawWorld is some Sessions whose commits come in any order.
func drawWorld(t *rapid.T, tb testing.TB) map[event.SessionID][]Stored {
	out := map[event.SessionID][]Stored{}
	for i := range rapid.IntRange(1, 5).Draw(t, "sessions") {
		h := drawHistory(t, 12)
		id := event.SessionID(fmt.Sprintf("wc_sess_%032x", i))
		if rapid.Bool().Draw(t, "closes") {
			h.commit(event.SessionClosed{})
		}
		for j := range h.commits {
			h.commits[j].Commit.Aggregate = event.SessionAggregate(id)
			for k, e := range h.commits[j].Commit.Events { // executions are one Session's own
				h.commits[j].Commit.Events[k] = own(e, i)
			}
		}
		out[id] = logged(tb, h.commits)
	}
	return out
}

func own(e event.Event, i int) event.Event {
	id := func(x event.ExecutionID) event.ExecutionID {
		if x == "" {
			return x
		}
		return event.ExecutionID(fmt.Sprintf("%s-%d", x, i))
	}
	switch e := e.(type) {
	case event.ToolCallStarted:
		if e.Execution != nil {
			x := *e.Execution
			x.ID = id(x.ID)
			e.Execution = &x
		}
		return e
	case event.ToolCallFinished:
		e.Execution = id(e.Execution)
		return e
	case event.ExecutionFinished:
		e.Execution = id(e.Execution)
		return e
	default:
		return e
	}
}

// Rows and the commits after them are the fold from the first commit, for every Session, hot
// or cold, whatever ended the lives before, and whatever is asked in between.
//
// Covers: SES-25, SES-27, SES-30, SES-31
func TestRowsPlusCommitsAreTheFold(t *testing.T) {
	left := 25 // each world is a real file, opened again and again
	if os.Getenv("WEBCODEX_SOAK") != "" {
		left = 1 << 20
	}
	rapid.Check(t, func(rt *rapid.T) {
		if left--; left < 0 {
			return
		}
		w := newWorld(t, rapid.IntRange(0, 3).Draw(rt, "target"))
		defer w.keeper.Close()
		todo := drawWorld(rt, t)
		ids := make([]event.SessionID, 0, len(todo))
		for id := range todo {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "session")
			switch k := rapid.IntRange(0, 19).Draw(rt, "step"); {
			case k <= 10:
				if len(todo[id]) > 0 {
					w.commit(todo[id][0])
					todo[id] = todo[id][1:]
				}
			case k <= 13:
				w.flush()
			case k <= 15:
				_, exists := w.truth[id]
				if _, err := w.store.Target(id); (err == nil) != exists {
					rt.Fatalf("target: %v", err)
				}
			case k == 16:
				w.crash()
			case k == 17:
				w.restart()
			case k == 18:
				if len(w.truth) > 1 && w.truth[id].Core.Exists() {
					w.remove(id)
				}
			default:
				if diff := w.check(); diff != "" {
					rt.Fatal(diff)
				}
			}
		}
		w.flush()
		if diff := w.check(); diff != "" {
			rt.Fatal(diff)
		}
		w.crash()
		if diff := w.check(); diff != "" {
			rt.Fatal(diff)
		}
	})
}
