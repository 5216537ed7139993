package history_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// Prunes at random borders change nothing that a reader sees, whether the read models are kept
// or made again from what is left of the log: carried state and tail are the fold from the
// first event, for Sessions, Projects, refs and tombstones.
//
// Covers: RES-19, EVT-29
func TestPrunesAtRandomBorders(tb *testing.T) {
	tb.Parallel()
	checks := 0
	rapid.Check(tb, func(t *rapid.T) {
		if checks++; checks > 3 && !soak {
			return
		}
		w := newWorld(tb, tiny)
		defer func() { _ = w.close() }()
		var ids, alive []event.SessionID
		ref := event.ProjectRef{Client: "box", Project: "demo-00000000"}
		registered := event.ProjectRegistered{Project: ref, Name: "demo", Root: "root"}
		w.commit(t, event.ProjectAggregate(ref), registered)
		number, pruned := uint64(0), 0
		for range rapid.IntRange(20, 120).Draw(t, "steps") {
			switch k := rapid.IntRange(0, 9).Draw(t, "step"); {
			case k == 0 && len(alive) < 5 || len(alive) == 0:
				id := event.NewSessionID()
				number++
				c := created("a Session")
				w.commit(t, event.RefsAggregate(system.Principal, event.RefSession, number),
					event.RefReserved{Principal: system.Principal, Kind: event.RefSession, Number: number})
				w.commit(t, event.SessionAggregate(id), c, event.SessionRefBound{Principal: system.Principal, Number: number})
				ids, alive = append(ids, id), append(alive, id)
			case k == 1:
				i := rapid.IntRange(0, len(alive)-1).Draw(t, "which")
				w.commit(t, event.SessionAggregate(alive[i]), event.SessionClosed{})
				w.remove(t, alive[i])
				alive = append(alive[:i:i], alive[i+1:]...)
			case k == 2:
				w.cutSomewhere(t)
				pruned++
			case k == 3:
				w.reopen(t, rapid.Bool().Draw(t, "forget"))
				w.same(t, ids)
			default:
				id := alive[rapid.IntRange(0, len(alive)-1).Draw(t, "which")]
				for range rapid.IntRange(1, 4).Draw(t, "calls") {
					w.call(t, id, "some/path/of/a/file.go", "another.go")
				}
			}
			if w.log.Status().Bytes > tiny*6/10 {
				w.cutSomewhere(t)
			}
		}
		refs := map[uint64]any{}
		for n := range number {
			target, ok, err := w.refs.Resolve(context.Background(), system.Principal, event.RefSession, n+1)
			if err != nil {
				t.Fatal(err)
			}
			refs[n] = []any{target, ok}
		}
		tombs := w.tombs.All()
		w.cutSomewhere(t)
		w.reopen(t, true)
		w.same(t, ids)
		w.whole(t)
		if p := w.known.Known(); len(p) != 1 || p[0] != registered {
			t.Fatalf("the Projects: %+v", p)
		}
		if got := w.tombs.All(); len(got) != len(tombs) {
			t.Fatalf("%d tombstones, %d before", len(got), len(tombs))
		}
		for i, got := range w.tombs.All() {
			if got != tombs[i] {
				t.Fatalf("tombstone %d: %+v, %+v before", i, got, tombs[i])
			}
		}
		for n := range number {
			target, ok, err := w.refs.Resolve(context.Background(), system.Principal, event.RefSession, n+1)
			if err != nil || refs[n].([]any)[0] != any(target) || refs[n].([]any)[1] != any(ok) {
				t.Fatalf("~s%d: %+v %v %v, before %v", n+1, target, ok, err, refs[n])
			}
		}
		for _, id := range alive {
			w.call(t, id, "after.go")
		}
		w.same(t, ids)
	})
}

// cutSomewhere lets a drawn number of blocks leave.
func (w *world) cutSomewhere(t *rapid.T) {
	t.Helper()
	blocks, err := w.log.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	if len(blocks) < 2 || blocks[len(blocks)-1].First == 0 {
		return
	}
	first := blocks[rapid.IntRange(1, len(blocks)-1).Draw(t, "border")].First
	if err := w.pruner.Cut(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	if w.first() != first {
		t.Fatalf("begins at %d after a cut at %d", w.first(), first)
	}
}
