package session

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// planOf is how SQLite goes about a query.
func planOf(t *testing.T, f *filled, query string) string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	for i := range args {
		args[i] = 1
	}
	rows, err := f.store.file.db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		out = append(out, detail)
	}
	if rows.Err() != nil || len(out) == 0 {
		t.Fatal(out, rows.Err())
	}
	return strings.Join(out, "; ")
}

// Nothing that a reader asks the file, and nothing that a batch asks about one Session, goes
// through all Sessions or sorts them: each step is a search in an index. Only the shelves are
// gone through, and the Sessions that are busy, which an index of their own has.
func TestNoQueryGoesThroughAllSessions(t *testing.T) {
	f := newFilled(t)
	for n := range 300 {
		f.feed(callCommit(sessionNo(n), 1))
	}
	f.flush(t)
	queries := slices.Collect(maps.Values(f.store.file.statements()))
	for _, q := range statements {
		queries = append(queries, q)
	}
	fine := regexp.MustCompile(`^(SEARCH \S+ USING .*|SCAN session USING COVERING INDEX session_busy|SCAN session_shelf|SCAN \d+ CONSTANT ROWS?)$`)
	for _, q := range queries {
		if strings.HasPrefix(q, "INSERT") { // it has no plan, or one of constants
			continue
		}
		for step := range strings.SplitSeq(planOf(t, f, q), "; ") {
			if !fine.MatchString(step) {
				t.Errorf("%s\n\t%s", q, step)
			}
		}
	}
	if plan := planOf(t, f, countRows); fine.MatchString(plan) {
		t.Errorf("the test takes anything: %s", plan)
	}
}

// A list reads no more places of a shelf than it was asked for.
func TestAListReadsItsPageAlone(t *testing.T) {
	f := newFilled(t)
	for n := range 300 {
		f.feed(callCommit(sessionNo(n), 1))
	}
	f.flush(t)
	num := shelf{testAuthority, string(testProject.Client), string(testProject.Project), Active}.num()
	err := f.store.file.at(t.Context(), func(file snapshot) error {
		some, err := file.take(t.Context(), num, 7)
		if len(some) != 7 {
			t.Errorf("%d places", len(some))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anyFilter is a question, seen from a few authorities and Projects.
func anyFilter(t *rapid.T) Filter {
	f := Filter{AnyAuthority: rapid.Bool().Draw(t, "any"), Authority: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "authority"),
		Lifecycle: rapid.SampledFrom([]Lifecycle{"", Active, Closed}).Draw(t, "lifecycle"),
		Project:   rapid.SampledFrom(append(projectsOfMany, event.ProjectRef{})).Draw(t, "project")}
	if rapid.Bool().Draw(t, "sees") {
		hidden := rapid.SampledFrom(projectsOfMany).Draw(t, "hidden")
		f.Sees = func(p event.ProjectRef) bool { return p != hidden }
	}
	return f
}

// projectsOfMany has one without a Project.
var projectsOfMany = []event.ProjectRef{{}, {Client: "box", Project: "one"}, {Client: "box", Project: "two"}, {Client: "other", Project: "one"}}

// what a Filter picks, the plain way.
func picked(w *world, f Filter) []Core {
	var out []Core
	for _, v := range w.truth {
		c := v.Core
		if c.Exists() && (f.AnyAuthority || f.Authority != "" && c.Authority == f.Authority) && (f.Project.Zero() || c.Project == f.Project) &&
			(f.Lifecycle == "" || c.Lifecycle == f.Lifecycle) && (f.Sees == nil || f.Sees(c.Project)) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Core) int { return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), cmp.Compare(a.ID, b.ID)) })
	return out
}

// closings are where the log has the first closing of each Session.
func closings(w *world) map[event.SessionID]uint64 {
	out := map[event.SessionID]uint64{}
	for _, s := range w.log {
		id := event.SessionID(s.Commit.Aggregate.ID)
		for _, e := range s.Commit.Events {
			if _, is := e.(event.SessionClosed); is && out[id] == 0 {
				out[id] = s.Seq
			}
		}
	}
	return out
}

func idsOfCores(list []Core) []event.SessionID {
	out := make([]event.SessionID, 0, len(list))
	for _, c := range list {
		out = append(out, c.ID)
	}
	return out
}

// Pages, counts, the newest ids and those at rest for the longest are what going through all Sessions would
// give, wherever the Sessions lie, while they are created, used, closed and removed.
//
// Covers: LST-04, LST-11, LST-12, SES-27
func TestPicksAreWhatAllSessionsGive(t *testing.T) {
	left := 15 // each world is a real file
	rapid.Check(t, func(rt *rapid.T) {
		if left--; left < 0 {
			return
		}
		w := newWorld(t, rapid.IntRange(0, 3).Draw(rt, "target"))
		defer w.keeper.Close()
		versions, at := map[event.SessionID]uint64{}, benchTime
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			n := rapid.IntRange(0, 11).Draw(rt, "session")
			id := sessionNo(n)
			at = at.Add(time.Duration(rapid.IntRange(-2, 2).Draw(rt, "ms")) * time.Millisecond) // often the same one, or before
			c := event.Commit{Aggregate: event.SessionAggregate(id), At: at, Version: versions[id] + 1}
			switch k := rapid.IntRange(0, 9).Draw(rt, "step"); {
			case k == 0:
				w.flush()
			case k == 1 && w.truth[id].Core.Exists():
				w.remove(id)
			case k == 2:
				w.restart()
			case w.gone[id]:
			default:
				c.Events = []event.Event{event.InstructionAccepted{Text: "go on", Continuation: "resumed", Mode: event.ModeNormal}}
				if k == 3 && c.Version > 1 {
					c.Events = []event.Event{event.SessionClosed{}}
				}
				if c.Version == 1 {
					e := created("one of many")
					e.Authority, e.Project = string(rune('a'+n%2)), projectsOfMany[n%len(projectsOfMany)]
					c.Events = []event.Event{e}
				}
				versions[id]++
				w.commit(Stored{Commit: c})
			}
			if diff := asked(rt, w); diff != "" {
				rt.Fatal(diff)
			}
		}
	})
}

func asked(t *rapid.T, w *world) string {
	f := anyFilter(t)
	want := picked(w, f)
	offset, limit := rapid.IntRange(0, 13).Draw(t, "offset"), rapid.IntRange(0, 13).Draw(t, "limit")
	got, total, err := w.store.Select(f, offset, limit)
	if page := want[min(offset, len(want)):]; err != nil || total != len(want) || !slices.Equal(idsOfCores(got), idsOfCores(page[:min(limit, len(page))])) {
		return fmt.Sprintf("%+v at %d, %d: %v of %d, %v; want of %v", f, offset, limit, idsOfCores(got), total, err, idsOfCores(want))
	}
	ids, total, err := w.store.Newest(f, limit)
	if err != nil || total != len(want) || !slices.Equal(ids, idsOfCores(want[:min(limit, len(want))])) {
		return fmt.Sprintf("newest of %+v: %v of %d, %v; want of %v", f, ids, total, err, idsOfCores(want))
	}
	n := w.store.Count(f)
	active := len(slices.DeleteFunc(slices.Clone(want), func(c Core) bool { return c.Lifecycle != Active }))
	if n != (Retained{active, len(want) - active}) {
		return fmt.Sprintf("count of %+v: %+v, want %v", f, n, idsOfCores(want))
	}
	want, closed := picked(w, Filter{AnyAuthority: true, Lifecycle: Closed}), closings(w)
	slices.SortFunc(want, func(a, b Core) int { return cmp.Compare(closed[a.ID], closed[b.ID]) })
	got, err = w.store.Resting(limit)
	if err != nil || !slices.Equal(idsOfCores(got), idsOfCores(want[:min(limit, len(want))])) {
		return fmt.Sprintf("resting, %d: %v, %v; want of %v", limit, idsOfCores(got), err, idsOfCores(want))
	}
	return ""
}

// What a damaged count says is not believed: the Sessions are counted, the next start is told to
// make the file again, and a batch that comes before mends it.
func TestDamagedCountIsNotBelieved(t *testing.T) {
	for name, harm := range map[string]string{
		"count":     `UPDATE session_shelf SET sessions = sessions + 1`,
		"authority": `UPDATE session_shelf SET authority = 'cc'`,
		"lifecycle": `UPDATE session_shelf SET lifecycle = 'closed'`,
		"number":    `UPDATE session_shelf SET num = num + 1`,
	} {
		t.Run(name, func(t *testing.T) {
			w := three(t)
			w.exec(harm)
			if diff := w.check(); diff != "" {
				t.Fatal(diff)
			}
			exact := Filter{Authority: testAuthority, Project: testProject}
			if n := w.store.Count(exact); n.Active != 3 {
				t.Fatalf("%+v", n)
			}
			w.next(sessionNo(2), event.SessionClosed{})
			w.flush()
			w.exec(`DELETE FROM session WHERE 0`) // nothing more is done to it
			if _, _, n, err := w.store.pick(exact, span{}); err != nil || n != (Retained{2, 1}) {
				t.Fatalf("%+v, %v", n, err)
			}
			w.restart()
			if diff := w.check(); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}

// The file knows which tails overflowed, and when they did last; what memory knows better counts.
func TestOverflowedFromTheFile(t *testing.T) {
	f := newFilled(t)
	f.store.SetHotTarget(0)
	long, short := sessionNo(1), sessionNo(2)
	f.feed(callCommit(short, 1))
	for v := range uint64(MaxTail/2 + 2) {
		f.feed(callCommit(long, v+1))
	}
	f.flush(t)
	end := benchTime.Add(time.Duration(MaxTail/2+2) * time.Second)
	told := func(after time.Time, want bool) {
		t.Helper()
		if got, err := f.store.Overflowed(after); got != want || err != nil {
			t.Errorf("after %s: %v, %v", after, got, err)
		}
	}
	told(time.Time{}, true)
	told(end.Add(-time.Nanosecond), true)
	told(end, false)
	f.feed(event.Commit{Aggregate: event.RetentionAggregate(), Version: 1, Events: []event.Event{event.SessionRemoved{Session: long}}})
	told(time.Time{}, false)
	f.flush(t)
	told(time.Time{}, false)
}
