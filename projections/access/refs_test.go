package access

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// history is a log as the fold sees it, and what it is to have made of it.
type history struct {
	commits  []event.Commit
	versions map[event.Aggregate]uint64
	pins     map[key]Target
	last     map[owner]uint64 // behind which the counter goes on
	given    map[owner]uint64 // the number that it gave last
	fresh    uint64           // behind which a new owner's counter begins
	gone     map[event.SessionID]bool
}

func newHistory() *history {
	return &history{versions: map[event.Aggregate]uint64{}, pins: map[key]Target{}, last: map[owner]uint64{}, given: map[owner]uint64{}, gone: map[event.SessionID]bool{}}
}

// next takes the owner's next number.
func (h *history) next(o owner) uint64 {
	if _, known := h.last[o]; !known {
		h.last[o] = h.fresh
	}
	h.last[o]++
	h.given[o] = h.last[o]
	return h.last[o]
}

// rift begins another history: every counter jumps.
func (h *history) rift(restored bool) {
	epoch := event.NewNonce()
	e := event.Event(event.LogTailLost{Epoch: epoch, LastSeq: uint64(len(h.commits))})
	if restored {
		e = event.LogRestored{Epoch: epoch, LastSeq: uint64(len(h.commits))}
	}
	h.commit(event.LogAggregate(), e)
	for o, n := range h.last {
		h.last[o] = rift{epoch: epoch, lost: !restored}.jump(n)
	}
	h.fresh = rift{epoch: epoch, lost: !restored}.jump(h.fresh)
}

func (h *history) commit(a event.Aggregate, events ...event.Event) {
	h.versions[a]++
	h.commits = append(h.commits, event.Commit{Format: event.Format, ID: event.NewCommandID(), Aggregate: a, Version: h.versions[a],
		At: time.UnixMilli(int64(len(h.commits))).UTC(), Events: events})
}

// page is where a number of the owner is decided on.
func (o owner) page(n uint64) event.Aggregate { return event.RefsAggregate(o.principal, o.kind, n) }

// reserve takes the owner's next number.
func (h *history) reserve(o owner) uint64 {
	n := h.next(o)
	h.commit(o.page(n), event.RefReserved{Principal: o.principal, Kind: o.kind, Number: n})
	return n
}

// bind numbers the target at once.
func (h *history) bind(o owner, t Target) {
	n := h.next(o)
	h.commit(o.page(n), event.RefBound{Principal: o.principal, Kind: o.kind, Number: n, Session: t.Session, Project: t.Project, Pin: t.Pin})
	h.pins[key{o, n}] = t
}

// start makes a Session that binds a reserved number, as a fresh start does.
func (h *history) start(o owner, id event.SessionID, nonce string) {
	n := h.reserve(o)
	h.commit(event.SessionAggregate(id), event.SessionCreated{Nonce: nonce, Principal: o.principal}, event.SessionRefBound{Principal: o.principal, Number: n})
	h.pins[key{o, n}] = SessionTarget(id, nonce)
}

func (h *history) drop(id event.SessionID) {
	h.commit(event.RetentionAggregate(), event.TombstonesDropped{Sessions: []event.SessionID{id}})
	h.gone[id] = true
}

func feed(r interface {
	Apply(uint64, string, event.Commit)
}, commits []event.Commit) {
	for i, c := range commits {
		r.Apply(uint64(i)+1, fmt.Sprint(i), c)
	}
}

// holds compares a fold with the history, in every question that can be asked of it.
func (h *history) holds(t rapid.TB, what string, r *Refs) {
	t.Helper()
	ctx := context.Background()
	if n, err := r.Last(ctx, strings.Repeat("c", 64), event.RefSession); err != nil || n != h.fresh {
		t.Fatalf("%s: the counter of nobody yet stands at %d (%v), want %d", what, n, err, h.fresh)
	}
	for o, last := range h.last {
		if n, err := r.Last(ctx, o.principal, o.kind); err != nil || n != last {
			t.Fatalf("%s: the counter of %v stands at %d (%v), want %d", what, o, n, err, last)
		}
		least := map[Target]uint64{}
		asked := map[uint64]bool{1: true, last + 1: true, last + 2: true}
		for k := range h.pins {
			asked[k.number], asked[k.number+1] = true, true
		}
		for _, n := range slices.Sorted(maps.Keys(asked)) {
			want, bound := h.pins[key{o, n}]
			if bound = bound && !h.gone[want.Session]; !bound {
				want = Target{}
			} else if least[want] == 0 {
				least[want] = n
			}
			got, ok, err := r.Resolve(ctx, o.principal, o.kind, n)
			if err != nil || ok != bound || got != want {
				t.Fatalf("%s: %d of %v pins %v (%v, %v), want %v", what, n, o, got, ok, err, want)
			}
		}
		for target, n := range least {
			if got, err := r.Find(ctx, o.principal, o.kind, target); err != nil || got != n {
				t.Fatalf("%s: %v is found as %d (%v), want %d", what, target, got, err, n)
			}
		}
		for id := range h.gone {
			for _, target := range h.pins {
				if target.Session != id {
					continue
				}
				if got, err := r.Find(ctx, o.principal, o.kind, target); err != nil || got != 0 {
					t.Fatalf("%s: %v has gone and is found as %d (%v)", what, target, got, err)
				}
			}
		}
	}
}

// genHistory draws Sessions, Projects and principals that mix as they may.
func genHistory(t *rapid.T) *history {
	h := newHistory()
	principals := []string{strings.Repeat("a", 64), strings.Repeat("b", 64)}
	var sessions []Target
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		o := owner{rapid.SampledFrom(principals).Draw(t, "principal"), event.RefSession}
		switch rapid.IntRange(0, 6).Draw(t, "step") {
		case 6:
			if rapid.IntRange(0, 3).Draw(t, "rift") == 0 {
				h.rift(rapid.Bool().Draw(t, "restored"))
			}
		case 0, 1:
			id, nonce := event.NewSessionID(), event.NewNonce()
			h.start(o, id, nonce)
			sessions = append(sessions, SessionTarget(id, nonce))
		case 2:
			h.reserve(o) // and a crash
		case 3:
			o.kind = event.RefProject
			ref := event.ProjectRef{Client: "local", Project: event.ProjectID(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "project"))}
			h.bind(o, ProjectTarget(ref, rapid.SampledFrom([]string{"root", "moved"}).Draw(t, "root")))
		case 4:
			if len(sessions) > 0 {
				if s := rapid.SampledFrom(sessions).Draw(t, "session"); !h.gone[s.Session] {
					h.bind(o, s)
				}
			}
		case 5:
			if len(sessions) > 0 && rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				h.drop(rapid.SampledFrom(sessions).Draw(t, "session").Session)
			}
		}
	}
	return h
}

// onDisk feeds a history to refs that lie in state.db, with a new life now and then: a crash
// that loses what was not flushed, or a clean end.
func onDisk(t *rapid.T, dir string, commits []event.Commit) (*Refs, func()) {
	path := filepath.Join(dir, fmt.Sprintf("state-%d.db", time.Now().UnixNano()))
	life := func() (*Refs, *state.Keeper) {
		r := NewRefs()
		k, err := state.Open(context.Background(), state.Options{Path: path, Fold: "1", Models: []state.Model{r}})
		if err != nil {
			t.Fatal(err)
		}
		return r, k
	}
	r, k := life()
	for i := 0; i < len(commits); i++ {
		c := commits[i]
		a := eventlog.Applied{Seq: uint64(i) + 1, Hash: fmt.Sprint(i), Commit: c, First: c.Version == 1}
		if a.First {
			a.Root = a.Seq
		}
		k.Apply(a)
		switch rapid.IntRange(0, 9).Draw(t, "then") {
		case 0:
			if err := k.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
			r, k = life()
			cp, err := k.Checkpoint()
			if err != nil {
				t.Fatal(err)
			}
			i = int(cp.Seq) - 1
		}
	}
	return r, func() { _ = k.Close() }
}

// The map is the same in memory and on disk, over restarts, and after a fold from the first
// commit: what was bound stays, nothing is re-pointed, and no counter goes back.
//
// Covers: SES-07, SES-11, SES-18, SES-19, RES-12
func TestRefsFoldTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		h := genHistory(t)
		memory := NewRefs()
		feed(memory, h.commits)
		h.holds(t, "memory", memory)
		if os.Getenv("WEBCODEX_SOAK") == "" && rapid.IntRange(0, 7).Draw(t, "disk") > 0 {
			return // a file takes its time
		}
		disk, end := onDisk(t, dir, h.commits)
		defer end()
		h.holds(t, "disk", disk)
	})
}

// A number in use keeps its target, whatever a later commit says, before and after the first
// one is in the file; and a malformed fact drops itself only.
//
// Covers: SES-11
func TestANumberIsNeverPointedElsewhere(t *testing.T) {
	o := owner{strings.Repeat("a", 64), event.RefSession}
	first, second := SessionTarget(event.NewSessionID(), event.NewNonce()), SessionTarget(event.NewSessionID(), event.NewNonce())
	bound := func(t Target) event.Event {
		return event.RefBound{Principal: o.principal, Kind: o.kind, Number: 1, Session: t.Session, Project: t.Project, Pin: t.Pin}
	}
	for _, flushed := range []bool{false, true} {
		r := NewRefs()
		k, err := state.Open(context.Background(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), Fold: "1", Models: []state.Model{r}})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		page := o.page(1)
		for i, e := range []event.Event{bound(first), bound(second),
			event.RefBound{Principal: o.principal, Kind: event.RefProject, Number: 1, Session: first.Session, Pin: first.Pin},
			event.RefBound{Principal: o.principal, Kind: o.kind, Number: 0, Session: first.Session, Pin: first.Pin},
			event.RefBound{Principal: o.principal, Kind: o.kind, Number: event.MaxRefNumber + 1, Session: first.Session, Pin: first.Pin},
			event.RefBound{Principal: o.principal, Kind: o.kind, Number: 2, Session: "wc_sess_x", Pin: first.Pin},
			event.RefBound{Principal: o.principal, Kind: o.kind, Number: 2, Session: first.Session, Pin: "x"}} {
			k.Apply(eventlog.Applied{Seq: uint64(i) + 1, Hash: fmt.Sprint(i), Commit: event.Commit{Aggregate: page, Version: uint64(i) + 1, Events: []event.Event{e}}})
			if flushed {
				if err := k.Flush(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, ok, err := r.Resolve(context.Background(), o.principal, o.kind, 1); err != nil || !ok || got != first {
			t.Errorf("flushed %v: %v, %v, %v", flushed, got, ok, err)
		}
		if n, err := r.Find(context.Background(), o.principal, o.kind, second); err != nil || n == 1 && flushed {
			t.Errorf("flushed %v: the second target is found as %d (%v)", flushed, n, err)
		}
		if _, ok, err := r.Resolve(context.Background(), o.principal, o.kind, 2); err != nil || ok {
			t.Errorf("flushed %v: a malformed fact counts (%v)", flushed, err)
		}
	}
}

// A page carried forward makes the same map where the commits before it have left the log.
//
// Covers: SES-11
func TestACarriedPageStandsForItsCommits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := genHistory(t)
		r := NewRefs()
		feed(r, h.commits)
		cut := uint64(len(h.commits)) + 1
		pages, err := r.Pages(context.Background(), cut)
		if err != nil {
			t.Fatal(err)
		}
		for o, n := range h.given { // those of reservations alone have their own chain
			pages = append(pages, o.page(n))
		}
		if len(pages) == 0 {
			return // no number was given, so nothing tells of a rift
		}
		short := NewRefs()
		seq := cut
		for _, a := range pages {
			form, body, ok, err := r.Carry(context.Background(), a)
			if err != nil || !ok {
				t.Fatalf("%s: %v, %v", a, ok, err)
			}
			parts, err := event.SplitState(form, body)
			if err != nil || len(parts) != 1 {
				t.Fatalf("%s: %d parts, %v", a, len(parts), err)
			}
			c := event.Commit{Aggregate: a, Version: h.versions[a] + 1, Events: []event.Event{event.AccessCarried{Part: parts[0]}}}
			r.Apply(seq, "", c)
			short.Apply(seq, "", c)
			seq++
		}
		h.holds(t, "after carrying", r)
		h.holds(t, "from the carried state", short)
		if left, err := r.Pages(context.Background(), cut); err != nil || len(left) != 0 {
			t.Fatalf("%v still have to be carried (%v)", left, err)
		}
	})
}

// What only looks like a page of refs is not carried as one.
func TestOnlyPagesAreCarried(t *testing.T) {
	r := NewRefs()
	for _, a := range []event.Aggregate{event.AccessAggregate(), event.RetentionAggregate(), {Domain: event.DomainAccess, ID: "refs-session-aa-x"},
		event.RefsAggregate(strings.Repeat("a", 64), event.RefSession, 1)} {
		if _, _, ok, err := r.Carry(context.Background(), a); ok || err != nil {
			t.Errorf("%s: %v, %v", a, ok, err)
		}
	}
}

// A row that is not what was written is told, never shown; a counter least of all.
func TestADamagedRowIsTold(t *testing.T) {
	h := newHistory()
	o := owner{strings.Repeat("a", 64), event.RefSession}
	h.start(o, event.NewSessionID(), event.NewNonce())
	r := NewRefs()
	path := filepath.Join(t.TempDir(), "state.db")
	k, err := state.Open(context.Background(), state.Options{Path: path, Fold: "1", Models: []state.Model{r}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for i, c := range h.commits {
		k.Apply(eventlog.Applied{Seq: uint64(i) + 1, Hash: fmt.Sprint(i), Commit: c})
	}
	if err := k.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	h.holds(t, "before", r)
	spoil(t, path, `UPDATE access_ref SET pin = replace(pin, substr(pin, 1, 1), 'x')`, `UPDATE access_last SET number = 0`)
	if _, _, err := r.Resolve(context.Background(), o.principal, o.kind, 1); err == nil {
		t.Error("a damaged ref was resolved")
	}
	if n, err := r.Last(context.Background(), o.principal, o.kind); err == nil {
		t.Errorf("a damaged counter gave %d", n)
	}
	if _, _, _, err := r.Carry(context.Background(), o.page(1)); err == nil {
		t.Error("a damaged page was carried")
	}
}
