package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// many is a Store with n Sessions of one Project: a to z of authority A, each third of B, each
// fifth closed; updated in an order that is not that of their ids.
func many(n int) *Store {
	s := NewStore()
	seq := uint64(0)
	for i := range n {
		h := newHistory()
		h.id = event.SessionID(fmt.Sprintf("wc_sess_%032x", (i*7919)%n))
		h.at = time.Date(2026, 3, 1, 12, 0, i/2, 0, time.UTC) // pairs share a time
		c := created(fmt.Sprint("title ", i))
		if i%3 == 0 {
			c.Authority = "bb"
		}
		h.commit(c)
		if i%5 == 0 {
			h.commit(event.SessionClosed{})
		}
		for _, st := range h.commits {
			seq++
			s.Apply(seq, st.Hash, st.Commit)
		}
	}
	return s
}

// Covers: LST-01, LST-02, LST-12
func TestListFiltersAndOrder(t *testing.T) {
	s := many(60)
	every := s.List(Filter{Authority: testAuthority, Project: testProject})
	if len(every) != 40 {
		t.Fatalf("%d Sessions", len(every))
	}
	if !slices.IsSortedFunc(every, func(a, b Core) int {
		if n := b.UpdatedAt.Compare(a.UpdatedAt); n != 0 {
			return n
		}
		return strings.Compare(string(a.ID), string(b.ID))
	}) {
		t.Fatal("not newest update first with the id as tiebreak")
	}
	active := s.List(Filter{Authority: testAuthority, Project: testProject, Lifecycle: Active})
	closed := s.List(Filter{Authority: testAuthority, Project: testProject, Lifecycle: Closed})
	if len(active)+len(closed) != len(every) || len(closed) == 0 || slices.ContainsFunc(closed, func(c Core) bool { return c.Lifecycle != Closed }) {
		t.Fatalf("%d active, %d closed of %d", len(active), len(closed), len(every))
	}
	for range 3 { // maps have no order, lists do
		if again := s.List(Filter{Authority: testAuthority, Project: testProject}); !slices.EqualFunc(every, again, func(a, b Core) bool { return a.ID == b.ID }) {
			t.Fatal("order differs between two calls")
		}
	}
	if got := s.List(Filter{Authority: testAuthority, Project: event.ProjectRef{Client: "box", Project: "other"}}); len(got) != 0 {
		t.Fatalf("another Project lists %d", len(got))
	}
	if got := s.List(Filter{Project: testProject}); len(got) != 0 {
		t.Fatalf("no authority lists %d", len(got))
	}
	if got := s.List(Filter{AnyAuthority: true}); len(got) != 60 {
		t.Fatalf("the owner of the data sees %d", len(got))
	}
	if _, err := ParseLifecycle("expired"); fault.KindOf(err) != fault.InvalidArguments {
		t.Fatalf("lifecycle expired: %v", err)
	}
}

// Covers: LST-04, LST-05
func TestPages(t *testing.T) {
	mixed := many(60).List(Filter{Authority: testAuthority, Project: testProject})
	for _, c := range []struct {
		limit *int
		want  int
	}{{nil, 10}, {ptr(0), 1}, {ptr(-1), 1}, {ptr(1), 1}, {ptr(20), 20}, {ptr(21), 20}} {
		p := NewPage(mixed, 0, c.limit)
		if p.Limit != c.want || p.Returned != c.want || p.Total != 40 || p.Truncated {
			t.Fatalf("limit %v: %+v", c.limit, p)
		}
	}
	if p := NewPage(mixed, -3, nil); p.Offset != 0 || *p.NextOffset != 10 {
		t.Fatalf("%+v", p)
	}
	if p := NewPage(mixed, 38, nil); p.Returned != 2 || p.NextOffset != nil {
		t.Fatalf("last page: %+v", p)
	}
	if p := NewPage(mixed, 1<<40, nil); p.Returned != 0 || p.NextOffset != nil || p.Sessions == nil {
		t.Fatalf("beyond the end: %+v", p)
	}
}

// Covers: LST-07, LST-08
func TestByteBoundLosesNoRow(t *testing.T) {
	cores := make([]Core, 50)
	for i := range cores {
		cores[i] = Core{ID: event.SessionID(fmt.Sprintf("wc_sess_%032x", i)), Title: strings.Repeat("\x01", 240), Lifecycle: Active}
		cores[i].Title = strings.Repeat("<", 240)
		cores[i].Project = event.ProjectRef{Client: event.ClientID(strings.Repeat("c", 64)), Project: event.ProjectID(strings.Repeat("<", 200))}
	}
	var seen []event.SessionID
	cutPages := 0
	for offset := 0; ; {
		p := NewPage(cores, offset, ptr(20))
		if size(p) > MaxListBytes {
			t.Fatalf("page of %d bytes", size(p))
		}
		if p.Truncated {
			cutPages++
		}
		for _, r := range p.Sessions {
			seen = append(seen, r.SessionID)
		}
		if p.NextOffset == nil {
			break
		}
		offset = *p.NextOffset
	}
	if len(seen) != 50 || cutPages == 0 {
		t.Fatalf("%d rows over pages of which the bound cut %d", len(seen), cutPages)
	}
	for i, id := range seen {
		if id != cores[i].ID {
			t.Fatalf("row %d is %s", i, id)
		}
	}
	// A Session updated between two pages moves; nothing in the page says otherwise.
	moved := append([]Core{cores[30]}, append(slices.Clone(cores[:30]), cores[31:]...)...)
	first, second := NewPage(cores, 0, ptr(1)), NewPage(moved, 1, ptr(1))
	if first.Sessions[0].SessionID != second.Sessions[0].SessionID {
		t.Fatal("pages pretend to be frozen")
	}
}

func TestStoreApplyIsInOrderAndOnce(t *testing.T) {
	h := began("store")
	h.edit("a.go")
	s := h.store()
	before := stateOf(must(s.View(testID))(t))
	for _, c := range h.commits {
		s.Apply(c.Seq, c.Hash, c.Commit)
	}
	if after := stateOf(must(s.View(testID))(t)); after.Core.Version != before.Core.Version || len(after.Items) != len(before.Items) {
		t.Fatal("a commit counted twice")
	}
	s.Apply(99, "h", event.Commit{Aggregate: event.LogAggregate(), Version: 1, Events: []event.Event{event.LogCreated{Epoch: "e"}}})
	if s.Applied() != 99 {
		t.Fatalf("applied %d", s.Applied())
	}
	if _, err := s.Load("wc_sess_ffffffffffffffffffffffffffffffff"); fault.KindOf(err) != fault.UnknownSessionID {
		t.Fatalf("unknown id: %v", err)
	}
	if got := s.Totals(); got != (Totals{Sessions: 1, Active: 1, Hot: 1, HotTarget: HotTarget, MaxSessions: HotTarget, MaxTail: MaxTail}) {
		t.Fatalf("%+v", got)
	}
}

func TestStoreOpenListsWhatHasNoEnd(t *testing.T) {
	h := began("open")
	h.edit("a.go")
	if got := opened(t, h.store()); len(got) != 0 {
		t.Fatalf("nothing is open, yet %+v", got)
	}
	x := h.job(7, "wc_inst_dead")
	id := h.callID()
	h.commit(event.ToolCallStarted{Call: id, Tool: "run_process", Execution: execution(8)})
	got := opened(t, h.store())
	if len(got) != 1 || got[0].Session != testID || len(got[0].Calls) != 1 || got[0].Calls[0].Started.Call != id ||
		len(got[0].Jobs) != 1 || got[0].Jobs[0].Execution.ID != x || got[0].Jobs[0].Server != "wc_inst_dead" {
		t.Fatalf("%+v", got)
	}
	h.commit(event.ToolCallFinished{Call: id, Tool: "run_process", Recovered: true}, event.ExecutionFinished{Execution: x})
	if got := opened(t, h.store()); len(got) != 0 {
		t.Fatalf("all has ended, yet %+v", got)
	}
}

func opened(t testing.TB, s *Store) []Unfinished {
	t.Helper()
	got, err := s.Open()
	if err != nil {
		t.Error(err)
	}
	return got
}

// Readers see whole Views while the fold goes on.
func TestStoreReadersWhileApplying(t *testing.T) {
	h := long(400)
	s := NewStore()
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-done:
					return
				default:
				}
				v, ok := s.View(testID)
				if !ok {
					continue
				}
				items := v.Tail.Items()
				if uint64(len(items)) != v.Core.Observed || v.Tail.Observed != v.Core.Observed || items[len(items)-1].Seq != v.Core.Observed {
					t.Errorf("torn View: %d items, %d observed", len(items), v.Core.Observed)
					return
				}
				s.List(Filter{AnyAuthority: true})
				opened(t, s)
			}
		}()
	}
	for _, c := range h.commits {
		s.Apply(c.Seq, c.Hash, c.Commit)
	}
	close(done)
	wg.Wait()
}
