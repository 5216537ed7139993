package session

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// countedList is a list of a brief with what it says of itself.
type countedList struct {
	total, returned int
	truncated       bool
	items           []string
}

func listOf[T any](t rapid.TB, total, returned int, truncated bool, items []T) countedList {
	l := countedList{total, returned, truncated, make([]string, len(items))}
	for i := range items {
		l.items[i] = encoded(t, items[i])
	}
	return l
}

func countOf(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// listsOf are all lists of a brief.
func listsOf(t rapid.TB, b Brief) map[string]countedList {
	c, e := b.Task.Context, b.External
	out := map[string]countedList{
		"changed":   listOf(t, b.Progress.Changed.Total, b.Progress.Changed.Returned, b.Progress.Changed.Truncated, b.Progress.Changed.Items),
		"recent":    listOf(t, b.Progress.Recent.Total, b.Progress.Recent.Returned, b.Progress.Recent.Truncated, b.Progress.Recent.Items),
		"failures":  listOf(t, b.Validation.Failures.Total, b.Validation.Failures.Returned, b.Validation.Failures.Truncated, b.Validation.Failures.Items),
		"actions":   listOf(t, b.NextActions.Total, b.NextActions.Returned, b.NextActions.Truncated, b.NextActions.Items),
		"decisions": listOf(t, countOf(b.Task.Decisions.Total), b.Task.Decisions.Returned, b.Task.Decisions.Truncated, b.Task.Decisions.Items),
		"progress":  listOf(t, countOf(b.Task.Progress.Total), b.Task.Progress.Returned, b.Task.Progress.Truncated, b.Task.Progress.Items),
		"files":     listOf(t, c.Relevant.Total, c.Relevant.Returned, c.Relevant.Truncated, c.Relevant.Items),
		"places":    listOf(t, c.Locations.Total, c.Locations.Returned, c.Locations.Truncated, c.Locations.Items),
		"decided":   listOf(t, countOf(c.Decisions.Total), c.Decisions.Returned, c.Decisions.Truncated, c.Decisions.Items),
		"said":      listOf(t, countOf(c.Progress.Total), c.Progress.Returned, c.Progress.Truncated, c.Progress.Items),
		"steps":     listOf(t, c.Steps.Total, c.Steps.Returned, c.Steps.Truncated, c.Steps.Items),
	}
	if e.Total != nil {
		out["reports"] = listOf(t, *e.Total, *e.Returned, *e.Truncated, e.Items)
	}
	return out
}

// inTurn checks that a section only shrank when all before it were empty, that each list keeps its
// beginning and counts what is gone, and that what always stays is as it was.
func inTurn(t rapid.TB, whole, b Brief) {
	t.Helper()
	was, now := listsOf(t, whole), listsOf(t, b)
	for name, l := range now {
		w := was[name]
		if l.returned != len(l.items) || l.truncated != (l.returned < l.total) || l.total != w.total || len(l.items) > len(w.items) ||
			!slices.Equal(l.items, w.items[:len(l.items)]) {
			t.Errorf("%s lies: %+v of %+v", name, l, w)
		}
	}
	if len(was) != len(now) {
		t.Errorf("%d lists of %d", len(now), len(was))
	}
	for _, x := range []*Brief{&whole, &b} {
		for _, e := range []**Excerpt{&x.Task.Root, &x.Task.Latest} {
			if *e == nil {
				*e = &Excerpt{}
			}
		}
	}
	before, after := sections(whole), sections(b)
	for i := range after {
		for j := range i {
			if after[i] < before[i] && after[j] > 0 {
				t.Errorf("section %d shrank while %d still holds %d", i, j, after[j])
			}
		}
	}
	kept := whole
	kept.Task, kept.Progress.Changed, kept.Progress.Recent = b.Task, b.Progress.Changed, b.Progress.Recent
	kept.Validation.Failures, kept.NextActions, kept.External.Items = b.Validation.Failures, b.NextActions, b.External.Items
	kept.External.Returned, kept.External.Truncated = b.External.Returned, b.External.Truncated
	if !reflect.DeepEqual(kept, b) || b.Task.Context.Boundary != whole.Task.Context.Boundary ||
		encoded(t, b.Task.Context.Continuation) != encoded(t, whole.Continuation) {
		t.Error("what always stays was changed")
	}
}

// drawn is a Session of a world, and what is seen beside it.
type drawn struct {
	id   event.SessionID
	log  []Stored
	seen Snapshot
	want string // its brief
}

func drawSeen(t *rapid.T) Snapshot {
	s := all()
	s.External, s.SessionChanged = drawReports(t), rapid.Bool().Draw(t, "changed")
	s.IncludeValidation, s.NoDiscussion = rapid.IntRange(0, 9).Draw(t, "validation") > 0, rapid.IntRange(0, 9).Draw(t, "board") == 0
	if rapid.Bool().Draw(t, "workspace") {
		s.Workspace = &Workspace{Status: workspaceDirty, Branch: hostileText(t, 90), ChangedFiles: rapid.IntRange(0, 1<<40).Draw(t, "files"), Tree: treeNo(1)}
	}
	return s
}

// oneBrief checks the brief of a Session by itself: bytes, form, turn and counts, at its own budget
// and at smaller ones.
func oneBrief(t *rapid.T, d *drawn, v View) (shrunk bool) {
	b := briefOf(v, d.seen)
	d.want = encoded(t, b)
	if n := len(d.want); n > MaxBriefBytes || !utf8.ValidString(d.want) || !json.Valid([]byte(d.want)) || size(b.Task.Context) > MaxContextBytes {
		t.Fatalf("%d bytes, the context %d", n, size(b.Task.Context))
	}
	whole := wholeBrief(v, gather(v), d.seen)
	inTurn(t, whole, b)
	for range 3 {
		less, budget := whole, rapid.IntRange(1, MaxBriefBytes).Draw(t, "budget")
		less.reduce(budget)
		inTurn(t, whole, less)
		if s := sections(withExcerpts(less)); size(less) > budget && slices.Max(s) > 0 {
			t.Fatalf("budget %d: %d bytes, left %v", budget, size(less), s)
		}
	}
	return size(whole) > MaxBriefBytes
}

func withExcerpts(b Brief) Brief {
	if b.Task.Root == nil {
		b.Task.Root = &Excerpt{}
	}
	if b.Task.Latest == nil {
		b.Task.Latest = &Excerpt{}
	}
	return b
}

// briefs checks that the Sessions of a world have the briefs that they should.
func (w *world) briefs(t *rapid.T, when string, all []drawn) {
	w.flush()
	for _, d := range all {
		v, err := w.store.Load(d.id)
		if err != nil {
			t.Fatal(when, err)
		}
		if got := encoded(t, briefOf(v, d.seen)); got != d.want {
			t.Fatalf("%s:\n%s\n%s", when, got, d.want)
		}
	}
}

// prune gives a world whose log holds nothing of the Sessions but the states that were carried
// forward for them.
func (w *world) prune(t *rapid.T, all []drawn) *world {
	p := newWorld(w.t, 0)
	seq := uint64(len(w.log))
	for _, d := range all {
		v, err := w.store.Load(d.id)
		if err != nil {
			t.Fatal(err)
		}
		parts := inParts(t, v, rapid.IntRange(1, 4).Draw(t, "parts"))
		first := seq + 1
		for i, part := range parts {
			seq++
			a := eventlog.Applied{Seq: seq, Hash: fmt.Sprintf("%064x", seq), First: i == 0, Commit: event.Commit{Format: event.Format,
				Aggregate: event.SessionAggregate(d.id), Version: v.Core.Version + 1 + uint64(i), Prev: strings.Repeat("0", 64), At: v.Core.UpdatedAt,
				Server: testServer, Events: []event.Event{event.SessionCarried{Part: part}}}}
			if i == len(parts)-1 {
				a.Root = first
			}
			p.keeper.Apply(a)
		}
	}
	return p
}

// Of any Session the brief is within its bytes, valid, and the same for the same log: read again,
// from the rows, after state.db was deleted, and after the log was pruned to carried states. Nothing
// was taken from it out of turn, and its counts are true.
//
// Covers: HND-07, HND-10, HND-32, HND-33, HND-34, CON-01, CON-22
func TestBriefsOfAnySession(tb *testing.T) {
	n, shrunk, most := 0, 0, 50
	if os.Getenv("WEBCODEX_SOAK") != "" {
		most = 1000
	}
	for n < most && !tb.Failed() { // rapid draws fewer at once
		rapid.Check(tb, func(t *rapid.T) {
			if n >= most {
				return
			}
			w := newWorld(tb, 0)
			defer func() { _ = w.keeper.Close() }()
			sessions := make([]drawn, 10)
			for i := range sessions {
				d := drawn{id: sessionNo(i), log: drawHistory(t, 25).commits, seen: drawSeen(t)}
				for j := range d.log {
					c := &d.log[j].Commit
					c.Aggregate = event.SessionAggregate(d.id)
					for k, e := range c.Events {
						c.Events[k] = own(e, i)
					}
				}
				d.log = logged(tb, d.log)
				v := fold(View{}, d.log)
				if oneBrief(t, &d, v) {
					shrunk++
				}
				f := NewFeedback(v, d.seen, MaxFeedbackPaths)
				if again := NewFeedback(fold(View{}, d.log), d.seen, MaxFeedbackPaths); encoded(t, again) != encoded(t, f) {
					t.Fatal("another feedback of the same log")
				}
				for _, s := range d.log {
					w.commit(s)
				}
				sessions[i], n = d, n+1
			}
			w.briefs(t, "from the rows", sessions)
			if err := w.keeper.Close(); err != nil {
				t.Fatal(err)
			}
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Remove(w.path + end)
			}
			w.openAt(func(seq uint64) {
				if seq != 0 {
					t.Fatalf("the deleted file stands at %d", seq)
				}
			})
			w.briefs(t, "from the log", sessions)
			p := w.prune(t, sessions)
			p.briefs(t, "from what was carried", sessions)
			_ = p.keeper.Close()
		})
	}
	if shrunk == 0 {
		tb.Error("no brief had to be reduced: the test shows nothing")
	}
}
