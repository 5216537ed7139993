package retention

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// soak takes every history to the disk (make soak).
var soak = os.Getenv("WEBCODEX_SOAK") != ""

var (
	alice = strings.Repeat("a", 64)
	bob   = strings.Repeat("b", 64)
)

func removed(ordinal uint64, principal string) event.SessionRemoved {
	id := event.NewSessionID()
	return event.SessionRemoved{Session: id, Authority: alice, Principal: principal, Incarnation: event.Incarnation(id, "n"), Ordinal: ordinal}
}

func tombstone(e event.SessionRemoved) Tombstone {
	return Tombstone{e.Session, e.Authority, e.Principal, e.Incarnation, e.Ordinal}
}

func apply(s *Tombstones, commits ...[]event.Event) {
	for _, events := range commits {
		n := s.applied + 1
		s.Apply(n, "", event.Commit{Aggregate: event.RetentionAggregate(), Version: n, Events: events})
	}
}

// A tombstone is exactly five facts, of which two are owner fingerprints, in the same format
// version and in a record of its own: no Session row comes or goes with it here.
//
// Covers: SES-34, SES-49
func TestATombstoneIsExactlyThis(t *testing.T) {
	s := New()
	e := removed(7, alice)
	apply(s, []event.Event{e})
	got, ok := s.Find(e.Session)
	if !ok || got != tombstone(e) {
		t.Errorf("%+v, %v", got, ok)
	}
	var members []string
	for i := range reflect.TypeFor[Tombstone]().NumField() {
		members = append(members, reflect.TypeFor[Tombstone]().Field(i).Tag.Get("json"))
	}
	if d := cmp.Diff([]string{"session", "authority", "principal", "incarnation", "expiry_ordinal"}, members); d != "" {
		t.Error(d)
	}
	if event.Format != 1 {
		t.Errorf("tombstones made the format %d", event.Format)
	}
	for _, table := range s.Schema() {
		if strings.Contains(table, "TABLE session") {
			t.Errorf("tombstones are kept as Sessions: %s", table)
		}
	}
}

// Renumbering keeps ids, owners, incarnations and order, and makes the ordinals 1, 2, ….
//
// Covers: SES-35
func TestRenumbered(t *testing.T) {
	s := New()
	e := []event.SessionRemoved{removed(5, alice), removed(math.MaxUint64-1, bob), removed(math.MaxUint64, alice)}
	apply(s, []event.Event{e[0], e[1], e[2]}, []event.Event{event.TombstonesRenumbered{Count: 3}, removed(4, bob)})
	all := s.All()
	if len(all) != 4 {
		t.Fatalf("%d tombstones", len(all))
	}
	for i, x := range e {
		want := tombstone(x)
		want.Ordinal = uint64(i) + 1
		if all[i] != want {
			t.Errorf("place %d is %+v, want %+v", i, all[i], want)
		}
	}
	if st := s.Standing(1); st.Count != 4 || st.Newest != 4 || !cmp.Equal(st.Oldest, []event.SessionID{e[0].Session}) {
		t.Errorf("%+v", st)
	}
}

// A malformed tombstone drops itself only; so does a second one of one id, and a drop of one
// that is not there.
//
// Covers: RES-04
func TestAMalformedTombstoneDropsItselfOnly(t *testing.T) {
	s := New()
	good, late := removed(1, alice), removed(2, bob)
	bad := []event.SessionRemoved{good, good, good, good, good}
	bad[0].Session = "wc_sess_x"
	bad[1].Session, bad[1].Principal = event.NewSessionID(), "a"
	bad[2].Session, bad[2].Incarnation = event.NewSessionID(), ""
	bad[3].Session, bad[3].Ordinal = event.NewSessionID(), 0
	bad[4].Principal = bob // of an id that has one
	events := []event.Event{good}
	for _, e := range bad {
		events = append(events, e)
	}
	events = append(events, event.TombstonesDropped{Sessions: []event.SessionID{event.NewSessionID()}}, late)
	apply(s, events)
	if d := cmp.Diff([]Tombstone{tombstone(good), tombstone(late)}, s.All()); d != "" {
		t.Error(d)
	}
}

// Commits of other aggregates make no tombstones: a log of before them has none, whatever was
// deleted then.
//
// Covers: SES-50
func TestOtherCommitsMakeNoTombstones(t *testing.T) {
	s := New()
	id := event.NewSessionID()
	for i, c := range []event.Commit{
		{Aggregate: event.LogAggregate(), Version: 1, Events: []event.Event{event.LogCreated{Epoch: "e"}}},
		{Aggregate: event.SessionAggregate(id), Version: 1, Events: []event.Event{event.SessionCreated{Nonce: "n", Principal: alice}}},
		{Aggregate: event.SessionAggregate(id), Version: 2, Events: []event.Event{event.SessionClosed{}}},
		{Aggregate: event.SessionAggregate(id), Version: 3, Events: []event.Event{removed(1, alice)}}, // not its place
	} {
		s.Apply(uint64(i)+1, "", c)
	}
	if all := s.All(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// genCommits draws removals, drops and renumberings as Decide makes them.
func genCommits(t *rapid.T) (commits [][]event.Event, want []Tombstone) {
	next := rapid.Uint64Range(1, 5).Draw(t, "first")
	for range rapid.IntRange(1, 30).Draw(t, "commits") {
		var events []event.Event
		if rapid.IntRange(0, 5).Draw(t, "renumber") == 0 {
			events = append(events, event.TombstonesRenumbered{Count: uint64(len(want))})
			want = renumbered(want)
			next = uint64(len(want)) + 1
		}
		for range rapid.IntRange(0, 3).Draw(t, "removals") {
			e := removed(next, rapid.SampledFrom([]string{alice, bob}).Draw(t, "principal"))
			next++
			events, want = append(events, e), append(want, tombstone(e))
		}
		if n := rapid.IntRange(0, 2).Draw(t, "drops"); n > 0 && len(want) >= n {
			var ids []event.SessionID
			for _, x := range want[:n] {
				ids = append(ids, x.Session)
			}
			events, want = append(events, event.TombstonesDropped{Sessions: ids}), want[n:]
		}
		if len(events) > 0 {
			commits = append(commits, events)
		}
	}
	return commits, want
}

func holds(t rapid.TB, what string, s *Tombstones, want []Tombstone) {
	t.Helper()
	if d := cmp.Diff(want, s.All(), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
	for _, x := range want {
		if got, ok := s.Find(x.Session); !ok || got != x {
			t.Fatalf("%s: %v is found as %v", what, x, got)
		}
	}
}

// The fold is the same in memory, on disk over crashes and restarts, and from carried state,
// also where a restart comes between its parts.
//
// Covers: SES-36, RES-12
func TestTombstonesFoldTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		commits, want := genCommits(t)
		memory := New()
		apply(memory, commits...)
		holds(t, "memory", memory, want)
		if !soak && rapid.IntRange(0, 7).Draw(t, "disk") > 0 {
			return // a file takes its time
		}

		path := filepath.Join(dir, fmt.Sprintf("state-%d.db", time.Now().UnixNano()))
		var s *Tombstones
		var k *state.Keeper
		life := func() (at uint64) {
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
		var log []event.Commit
		for i, events := range commits {
			log = append(log, event.Commit{Aggregate: event.RetentionAggregate(), Version: uint64(i) + 1, Events: events})
		}
		run(log, 0)
		holds(t, "disk", s, want)

		form, body, ok, err := memory.Carry(event.RetentionAggregate())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		log = append(log, inParts(t, form, body, uint64(len(log))+1)...)
		run(log, uint64(len(commits)))
		holds(t, "disk after carrying", s, want)
		if err := k.Reset("the beginning has left the log"); err != nil {
			t.Fatal(err)
		}
		for i := range commits {
			log[i] = event.Commit{Aggregate: event.LogAggregate(), Version: uint64(i) + 1, Events: []event.Event{event.LogFilled{}}}
		}
		run(log, 0)
		holds(t, "from carried state", s, want)
	})
}

// inParts cuts the state into several small parts, as a large one would be.
func inParts(t *rapid.T, form int, body []byte, version uint64) []event.Commit {
	parts, err := event.SplitState(form, body)
	if err != nil || len(parts) != 1 {
		t.Fatal(len(parts), err)
	}
	whole := parts[0]
	n := min(4*rapid.IntRange(1, 40).Draw(t, "cut"), len(whole.Data)/4*4-4)
	pieces := []string{whole.Data[:n], whole.Data[n:]}
	var out []event.Commit
	for i, data := range pieces {
		p := event.CarriedPart{State: form, Part: i + 1, Parts: len(pieces), Data: data}
		if i == len(pieces)-1 {
			p.Hash = whole.Hash
		}
		out = append(out, event.Commit{Aggregate: event.RetentionAggregate(), Version: version + uint64(i),
			Events: []event.Event{event.RetentionCarried{Part: p}}})
	}
	return out
}

// A row that is not what was written makes the whole file be made again: a tombstone is never
// shown to another owner.
func TestADamagedTombstoneIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	e := removed(1, alice)
	open := func() (*Tombstones, *state.Keeper) {
		s := New()
		k, err := state.Open(context.Background(), state.Options{Path: path, Fold: "1", Models: []state.Model{s}})
		if err != nil {
			t.Fatal(err)
		}
		return s, k
	}
	_, k := open()
	k.Apply(eventlog.Applied{Seq: 1, Hash: "h", Commit: event.Commit{Aggregate: event.RetentionAggregate(), Version: 1, Events: []event.Event{e}}})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE retention_tombstone SET principal = ?`, bob); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, k := open()
	defer k.Close()
	if cp, err := k.Checkpoint(); err != nil || cp.Seq != 0 || len(s.All()) != 0 {
		t.Errorf("the damaged file stands at %d and shows %+v (%v)", cp.Seq, s.All(), err)
	}
}
