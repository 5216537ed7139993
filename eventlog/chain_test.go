package eventlog

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// carried cuts a state into so many parts; SplitState makes one of a small one.
func carried(tb rapid.TB, state []byte, parts int) []event.Event {
	whole, err := event.SplitState(1, state)
	if err != nil || len(whole) != 1 {
		tb.Fatalf("%d parts: %v", len(whole), err)
	}
	b, err := base64.StdEncoding.DecodeString(whole[0].Data)
	if err != nil {
		tb.Fatal(err)
	}
	var out []event.Event
	for i := range parts {
		p := event.CarriedPart{State: 1, Part: i + 1, Parts: parts,
			Data: base64.StdEncoding.EncodeToString(b[i*len(b)/parts : (i+1)*len(b)/parts])}
		if i+1 == parts {
			p.Hash = whole[0].Hash
		}
		out = append(out, event.SessionCarried{Part: p})
	}
	return out
}

// history builds a log of commits that hold together.
type history struct {
	records []record
	ends    map[event.Aggregate]Head
	ids     map[event.Aggregate][]event.CommandID
}

func (h *history) add(a event.Aggregate, e event.Event) {
	head, seq := h.ends[a], uint64(len(h.records)+1)
	c := event.Commit{Format: event.Format, ID: event.CommandID(fmt.Sprintf("c%d", seq)), Aggregate: a, Version: head.Version + 1, Prev: head.Hash, Events: []event.Event{e}}
	hash := event.Hash([]byte(c.ID))
	h.records = append(h.records, record{seq: seq, agg: a, hash: hash, commit: c, ok: true})
	h.ends[a] = Head{Version: c.Version, Seq: seq, Hash: hash}
	if _, part := event.CarriedIn(c); !part {
		h.ids[a] = append(h.ids[a], c.ID)
	}
}

// drawHistory is a log of Sessions that live, are carried, half carried and removed.
func drawHistory(t *rapid.T) *history {
	h := &history{ends: map[event.Aggregate]Head{}, ids: map[event.Aggregate][]event.CommandID{}}
	removed := map[event.Aggregate]bool{}
	h.add(event.LogAggregate(), event.LogCreated{Epoch: "one"})
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		a := rapid.SampledFrom(aggregates(4)).Draw(t, "aggregate")
		if removed[a] {
			continue
		}
		what := rapid.IntRange(0, 9).Draw(t, "what")
		switch {
		case what < 5 || h.ends[a].Version == 0:
			h.add(a, event.InstructionAccepted{Text: "go on"})
		case what < 9:
			state, _ := json.Marshal(h.ids[a])
			parts := carried(t, state, rapid.IntRange(1, 3).Draw(t, "parts"))
			if what == 8 {
				parts = parts[:len(parts)-1] // the driver was killed
			}
			for _, p := range parts {
				h.add(a, p)
				if rapid.Bool().Draw(t, "another between") {
					h.add(event.ProjectAggregate(event.ProjectRef{Client: "laptop", Project: "other"}), event.ProjectRegistered{Name: "x"})
				}
			}
		default:
			h.add(event.RetentionAggregate(), event.SessionRemoved{Session: event.SessionID(a.ID)})
			removed[a] = true
		}
	}
	return h
}

// names folds the ids of an aggregate's commits, and restores them from carried parts.
type names struct {
	ids     map[event.Aggregate][]event.CommandID
	gathers map[event.Aggregate]event.Gather
	roots   map[event.Aggregate]uint64
	firsts  map[event.Aggregate]int
}

func (n *names) apply(t *rapid.T, a Applied) {
	agg := a.Commit.Aggregate
	if a.First {
		n.firsts[agg]++
	}
	if a.Root > 0 {
		n.roots[agg] = a.Root
	}
	g, state := n.gathers[agg].Next(a.Commit)
	n.gathers[agg] = g
	_, part := event.CarriedIn(a.Commit)
	switch have, ok := n.ids[agg]; {
	case !part && !ok && a.Commit.Version != 1 && agg.Domain != event.DomainLog && agg.Domain != event.DomainRetention:
		t.Fatalf("the fold met %s at version %d", agg, a.Commit.Version)
	case !part:
		n.ids[agg] = append(have, a.Commit.ID)
	case !ok && state != nil:
		var ids []event.CommandID
		if err := json.Unmarshal(state.State, &ids); err != nil {
			t.Fatal(err)
		}
		n.ids[agg] = ids
	}
}

func foldFrom(t *rapid.T, records []record, pruned bool) (*names, *chain) {
	n := &names{ids: map[event.Aggregate][]event.CommandID{}, gathers: map[event.Aggregate]event.Gather{}, roots: map[event.Aggregate]uint64{}, firsts: map[event.Aggregate]int{}}
	c := newChain(nil)
	c.pruned = pruned
	for _, r := range records {
		a, v, err := c.add(r)
		if err != nil {
			t.Fatal(err)
		}
		if v == given {
			n.apply(t, a)
		}
	}
	c.settle()
	return n, c
}

// From whatever commit a log begins, an aggregate whose root it still has comes out as from
// the whole log; one whose root is gone is closed, unless it was removed; and no fold meets an
// aggregate in the middle.
//
// Covers: RES-19
func TestFoldOfAPrunedLogIsTheFoldOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		whole, all := foldFrom(t, h.records, false)
		if bad := all.list(); len(bad) > 0 {
			t.Fatalf("the history does not hold: %v", bad)
		}
		cut := rapid.IntRange(1, len(h.records)).Draw(t, "first")
		part, c := foldFrom(t, h.records[cut-1:], cut > 1)
		removed := map[event.Aggregate]bool{}
		for _, r := range h.records[cut-1:] {
			if e, ok := r.commit.Events[0].(event.SessionRemoved); ok {
				removed[event.SessionAggregate(e.Session)] = true
			}
		}
		for a, end := range h.ends {
			if end.Seq < uint64(cut) || a.Domain == event.DomainLog {
				continue
			}
			head, err := c.head(a)
			switch {
			case whole.roots[a] >= uint64(cut):
				if d := cmp.Diff(whole.ids[a], part.ids[a]); d != "" || err != nil || head != end || part.firsts[a] != 1 || part.roots[a] != whole.roots[a] {
					t.Errorf("%s with root %d of %d: %v %s", a, whole.roots[a], cut, err, d)
				}
			case removed[a]:
				if err != nil {
					t.Errorf("%s was removed: %v", a, err)
				}
			case err == nil || c.damage(a).Reason != damageCarry:
				t.Errorf("%s lost its root %d to a cut at %d: %v", a, whole.roots[a], cut, err)
			}
		}
	})
}

// A base that was left at any commit of a pruned log goes on to the same end, or says that it
// has to begin anew.
func TestFoldOfAPrunedLogGoesOnFromAnyCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		cut := rapid.IntRange(1, len(h.records)).Draw(t, "first")
		stop := rapid.IntRange(cut, len(h.records)).Draw(t, "left at")
		base := newIndex()
		run := func(c *chain, records []record) error {
			c.pruned = cut > 1
			for _, r := range records {
				a, v, err := c.add(r)
				switch {
				case err != nil:
					return err
				case v == given:
					base.Apply(a)
				case v == broke:
					base.Damage(r.agg, c.damage(r.agg))
				}
			}
			for _, d := range c.settle() {
				a, _ := event.ParseAggregate(d.Aggregate)
				base.Damage(a, d)
			}
			return nil
		}
		if err := run(newChain(base), h.records[cut-1:]); err != nil {
			t.Fatal(err)
		}
		want := base.mem.copy()

		base = newIndex()
		c := newChain(base)
		c.pruned = cut > 1
		for _, r := range h.records[cut-1 : stop] { // and no settle: the process died here
			if a, v, err := c.add(r); err != nil {
				t.Fatal(err)
			} else if v == given {
				base.Apply(a)
			}
		}
		base = base.restarted()
		c = newChain(base)
		c.resume(base.file.cp.Aggregates, nil)
		from := int(base.file.cp.Seq)
		if from == 0 {
			c, from = newChain(base), cut-1
		}
		err := run(c, h.records[from:])
		if err != nil { // begins anew
			_ = base.Reset(ResetHalfCarried)
			err = run(newChain(base), h.records[cut-1:])
		}
		if err != nil {
			t.Fatal(err)
		}
		for a, h := range want.heads {
			// A carry that the stop cut in two may count as none: it is carried again.
			if got := base.mem.heads[a]; h.Root > 0 && (got.Head != h.Head || got.Root == 0 || got.Root > h.Root) {
				t.Errorf("%s: %+v, want %+v", a, got, h)
			}
		}
		if !slices.Equal(base.resets, []string{ResetHalfCarried}) && len(base.resets) > 0 {
			t.Errorf("%v", base.resets)
		}
	})
}
