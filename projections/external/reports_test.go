package external

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// soak takes every history to the disk (make soak).
var soak = os.Getenv("WEBCODEX_SOAK") != ""

var demo = event.ProjectRef{Client: "box", Project: "demo-00000000"}

func hex(n int) string { return fmt.Sprintf("%064x", n) }

func observation(id event.SessionID, adapter, n int) event.ObservationRecorded {
	return event.ObservationRecorded{Project: demo, Session: id, Adapter: hex(adapter), Event: hex(n), Tool: "lint", Status: Succeeded, Payload: hex(7)}
}

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// stream is a log of reports: versions count by aggregate.
type stream struct {
	log      []event.Commit
	versions map[event.Aggregate]uint64
}

func (s *stream) add(a event.Aggregate, at time.Time, events ...event.Event) {
	if s.versions == nil {
		s.versions = map[event.Aggregate]uint64{}
	}
	s.versions[a]++
	s.log = append(s.log, event.Commit{Aggregate: a, Version: s.versions[a], At: at, Events: events})
}

func fold(s *Reports, log []event.Commit) *Reports {
	for _, c := range log {
		s.Apply(s.applied+1, "", c)
	}
	return s
}

// A report is kept under its server's time; what its decision refuses changes nothing here
// either, and no report leaves for another.
//
// Covers: EXT-05, EXT-09, EXT-12
func TestWhatTheFoldTakes(t *testing.T) {
	id, other := event.NewSessionID(), event.NewSessionID()
	var l stream
	for i := range MaxPerSession + 3 { // each earlier than the one before
		l.add(event.ExternalAggregate(id), start.Add(-time.Duration(i)*time.Minute), observation(id, 1, i))
	}
	s := fold(New(), l.log)
	list := s.About(id)
	if len(list) != MaxPerSession || s.Total() != MaxPerSession {
		t.Fatalf("%d reports, %d in all", len(list), s.Total())
	}
	if r := list[len(list)-1]; r.Event != hex(0) || !r.Received.Equal(start) {
		t.Errorf("the newest is %+v", r)
	}
	bad := []event.ObservationRecorded{observation(other, 1, 1), observation(other, 1, 2), observation(other, 1, 3), observation(other, 1, 4), observation(other, 1, 5), observation(other, 1, 6)}
	bad[0].Adapter, bad[1].Event, bad[2].Tool, bad[3].Status, bad[4].Project, bad[5].Session = "x", hex(1)[1:], "a b", "passed", event.ProjectRef{}, id
	big := observation(other, 1, 7)
	exit := 1 << 40
	big.ExitCode = &exit
	for _, e := range append(bad, big) {
		l.add(event.ExternalAggregate(other), start, e)
	}
	good := observation(other, 1, 8)
	l.add(event.ExternalAggregate(other), start, good)
	good.Status = Failed
	l.add(event.ExternalAggregate(other), start, good)
	s = fold(New(), l.log)
	if got := s.About(other); len(got) != 1 || got[0].Status != Succeeded || s.Total() != MaxPerSession+1 {
		t.Errorf("%+v, %d in all", got, s.Total())
	}
}

// Places held by reports on their way count in the bound of all, once each, and end with the
// report or with the try.
//
// Covers: EXT-09
func TestPlacesHeld(t *testing.T) {
	s, id := New(), event.NewSessionID()
	key := func(n int) Key { return Key{hex(1), hex(n)} }
	for n := range 3 {
		for range 2 { // a decision may be made again
			if st := s.Hold(id, key(n)); st.All != n || st.Of != 0 || st.Same != nil {
				t.Errorf("place %d: %+v", n, st)
			}
		}
	}
	s.Release(id, key(1))
	s.Release(id, key(1))
	var l stream
	l.add(event.ExternalAggregate(id), start, observation(id, 1, 0))
	fold(s, l.log)
	if st := s.Hold(id, key(9)); st.All != 2 || st.Of != 1 {
		t.Errorf("one report, one place: %+v", st)
	}
	if st := s.Hold(id, key(0)); st.Same == nil || st.Same.Event != hex(0) {
		t.Errorf("%+v", st)
	}
	s.Release(id, key(0))
	s.Release(id, key(2))
	s.Release(id, key(9))
	if len(s.places) != 0 {
		t.Errorf("%v", s.places)
	}
}

// The most there can be about a Session fit one part, at whatever names.
//
// Covers: EXT-09
func TestTheMostFitOnePart(t *testing.T) {
	id := event.NewSessionID()
	var l stream
	for i := range MaxPerSession {
		e := observation(id, 1, i)
		e.Adapter, e.Event, e.Payload = event.Hash([]byte(fmt.Sprint("a", i))), event.Hash([]byte(fmt.Sprint("e", i))), event.Hash([]byte(fmt.Sprint("p", i)))
		e.Tool = event.Hash([]byte(fmt.Sprint("t", i)))
		exit := -i * 1_000_003
		e.ExitCode = &exit
		l.add(event.ExternalAggregate(id), start.Add(time.Duration(i*i)*time.Millisecond), e)
	}
	form, body, ok, err := fold(New(), l.log).Carry(t.Context(), event.ExternalAggregate(id))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if parts, err := event.SplitState(form, body); err != nil || len(parts) != 1 {
		t.Errorf("%d parts: %v", len(parts), err)
	}
	if _, _, ok, err := New().Carry(t.Context(), event.SessionAggregate(id)); ok || err != nil {
		t.Errorf("a Session is carried as reports: %v", err)
	}
}

func history(t *rapid.T) stream {
	ids := []event.SessionID{event.NewSessionID(), event.NewSessionID(), event.NewSessionID()}
	gone := map[event.SessionID]bool{}
	var l stream
	for range rapid.IntRange(0, 30).Draw(t, "commits") {
		id := rapid.SampledFrom(ids).Draw(t, "session")
		at := start.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Second)
		if rapid.IntRange(0, 9).Draw(t, "remove") == 0 && !gone[id] {
			gone[id] = true
			l.add(event.RetentionAggregate(), at, event.SessionRemoved{Session: id})
			continue
		}
		if gone[id] {
			continue
		}
		e := observation(id, rapid.IntRange(1, 2).Draw(t, "adapter"), rapid.IntRange(0, 4).Draw(t, "event"))
		e.Status = rapid.SampledFrom(Statuses()).Draw(t, "status")
		if rapid.Bool().Draw(t, "exited") {
			n := rapid.IntRange(-2, 2).Draw(t, "exit")
			e.ExitCode = &n
		}
		l.add(event.ExternalAggregate(id), at, e)
	}
	return l
}

// want is the same by a plainer way.
func want(log []event.Commit) map[event.SessionID][]Report {
	out := map[event.SessionID][]Report{}
	for _, c := range log {
		switch e := c.Events[0].(type) {
		case event.SessionRemoved:
			delete(out, e.Session)
		case event.ObservationRecorded:
			r := Report{Project: e.Project, Session: e.Session, Adapter: e.Adapter, Event: e.Event, Tool: e.Tool, Status: e.Status, Payload: e.Payload, Received: c.At}
			if e.ExitCode != nil {
				n := int32(*e.ExitCode)
				r.ExitCode = &n
			}
			if !slices.ContainsFunc(out[e.Session], func(x Report) bool { return x.Adapter == r.Adapter && x.Event == r.Event }) {
				out[e.Session] = append(out[e.Session], r)
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b Report) int {
			return cmp.Or(a.Received.Compare(b.Received), strings.Compare(a.Adapter+a.Event, b.Adapter+b.Event))
		})
	}
	return out
}

func holds(t *rapid.T, what string, s *Reports, want map[event.SessionID][]Report) {
	total := 0
	for id, list := range want {
		total += len(list)
		if d := gocmp.Diff(list, s.About(id)); d != "" {
			t.Fatalf("%s: %s", what, d)
		}
	}
	if len(s.of) != len(want) || s.Total() != total {
		t.Fatalf("%s: %d Sessions, %d reports", what, len(s.of), s.Total())
	}
}

// The fold is the same in memory, on disk over crashes and restarts, and from carried state.
//
// Covers: EXT-05, EXT-12
func TestReportsFoldTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		l := history(t)
		want := want(l.log)
		memory := fold(New(), l.log)
		holds(t, "memory", memory, want)
		if !soak && rapid.IntRange(0, 7).Draw(t, "disk") > 0 {
			return // a file takes its time
		}
		path := filepath.Join(dir, fmt.Sprintf("state-%d.db", time.Now().UnixNano()))
		var s *Reports
		var k *state.Keeper
		life := func() uint64 {
			s = New()
			var err error
			if k, err = state.Open(context.Background(), state.Options{Path: path, Fold: "1", Models: []state.Model{s}}); err != nil {
				t.Fatal(err)
			}
			cp, err := k.Checkpoint()
			if err != nil {
				t.Fatal(err)
			}
			return cp.Seq
		}
		life()
		defer func() { _ = k.Close() }()
		run := func(log []event.Commit, at uint64) {
			for at < uint64(len(log)) {
				k.Apply(eventlog.Applied{Seq: at + 1, Hash: fmt.Sprint(at), Commit: log[at]})
				at++
				switch rapid.IntRange(0, 7).Draw(t, "then") {
				case 0:
					if err := k.Flush(context.Background()); err != nil {
						t.Fatal(err)
					}
				case 1:
					if err := k.Close(); err != nil {
						t.Fatal(err)
					}
					at = life()
				}
			}
		}
		run(l.log, 0)
		holds(t, "disk", s, want)

		// What was folded leaves; the carried states stand for it.
		before := len(l.log)
		for _, id := range slices.Sorted(func(yield func(event.SessionID) bool) {
			for id := range want {
				if !yield(id) {
					return
				}
			}
		}) {
			form, body, _, err := memory.Carry(context.Background(), event.ExternalAggregate(id))
			if err != nil {
				t.Fatal(err)
			}
			parts, err := event.SplitState(form, body)
			if err != nil || len(parts) != 1 {
				t.Fatal(len(parts), err)
			}
			l.add(event.ExternalAggregate(id), start, event.ExternalCarried{Part: parts[0]})
		}
		run(l.log, uint64(before))
		holds(t, "after carrying", s, want)
		if err := k.Reset("the beginning has left the log"); err != nil {
			t.Fatal(err)
		}
		for i := range before {
			l.log[i] = event.Commit{Aggregate: event.LogAggregate(), Version: uint64(i) + 1, Events: []event.Event{event.LogFilled{}}}
		}
		run(l.log, 0)
		holds(t, "from carried state", s, want)
	})
}

// Carried state that is damaged, of another Session or of another form is not believed.
func TestCarriedReportsOfOthers(t *testing.T) {
	id, other := event.NewSessionID(), event.NewSessionID()
	var l stream
	l.add(event.ExternalAggregate(id), start, observation(id, 1, 1))
	form, body, _, err := fold(New(), l.log).Carry(t.Context(), event.ExternalAggregate(id))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := event.SplitState(form, body)
	if err != nil {
		t.Fatal(err)
	}
	part := func(of event.SessionID, change func(*event.CarriedPart)) int {
		p := parts[0]
		change(&p)
		var l stream
		l.add(event.ExternalAggregate(of), start, event.ExternalCarried{Part: p})
		return fold(New(), l.log).Total()
	}
	same := func(*event.CarriedPart) {}
	if n := part(id, same); n != 1 {
		t.Errorf("%d reports", n)
	}
	for name, n := range map[string]int{
		"of another Session": part(other, same),
		"damaged":            part(id, func(p *event.CarriedPart) { p.Hash = event.Hash(nil) }),
		"of another form":    part(id, func(p *event.CarriedPart) { p.State++ }),
	} {
		if n != 0 {
			t.Errorf("state %s was believed", name)
		}
	}
}

// A row that is not what was written makes the whole file be made again.
func TestADamagedReportIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	id := event.NewSessionID()
	open := func() (*Reports, *state.Keeper) {
		s := New()
		k, err := state.Open(context.Background(), state.Options{Path: path, Fold: "1", Models: []state.Model{s}})
		if err != nil {
			t.Fatal(err)
		}
		return s, k
	}
	_, k := open()
	var l stream
	l.add(event.ExternalAggregate(id), start, observation(id, 1, 1))
	k.Apply(eventlog.Applied{Seq: 1, Hash: "h", Commit: l.log[0]})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE external_report SET status = ?`, Failed); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, k := open()
	defer k.Close()
	if cp, err := k.Checkpoint(); err != nil || cp.Seq != 0 || s.Total() != 0 {
		t.Errorf("the damaged file stands at %d and shows %d reports (%v)", cp.Seq, s.Total(), err)
	}
}
