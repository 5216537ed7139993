package window

import (
	"context"
	"database/sql"
	"fmt"
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
	w1    = event.WindowID(strings.Repeat("1", 64))
	w2    = event.WindowID(strings.Repeat("2", 64))
	w3    = event.WindowID(strings.Repeat("3", 64))
	begin = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

func peer(w event.WindowID) event.PeerID { return event.PeerID(event.PeerPrefix + string(w[:32])) }

func at(d time.Duration, version uint64, events ...event.Event) event.Commit {
	return event.Commit{Aggregate: event.WindowAggregate(alice), Version: version, At: begin.Add(d), Events: events}
}

func posted(from, to event.WindowID) event.PeerPosted {
	return event.PeerPosted{Message: event.NewMessageID(), From: from, To: to, Text: "x", Priority: event.PriorityNormal}
}

func fold(commits ...event.Commit) *Store {
	s := New()
	for i, c := range commits {
		s.Apply(uint64(i)+1, "", c)
	}
	return s
}

// Messages, routes and relations are bounded; the oldest leave first.
//
// Covers: WIN-18, WIN-21
func TestWhatIsRetainedIsBounded(t *testing.T) {
	var commits []event.Commit
	var last event.MessageID
	for i := range MaxRelations + 20 {
		m := posted(w1, w2)
		last = m.Message
		other := event.WindowID(fmt.Sprintf("%064x", i+16))
		commits = append(commits, at(0, uint64(i)+1, m, event.PeerDiscovered{Window: w1, Peer: peer(other), Other: other},
			event.WindowRelated{Window: other, Session: event.NewSessionID(), Relation: event.RelationWork}))
	}
	b := fold(commits...).Book(alice)
	if len(b.Messages) != MaxMessages || len(b.Routes) != MaxRoutes || len(b.Relations) != MaxRelations || b.Messages[MaxMessages-1].ID != last {
		t.Errorf("%d messages, %d routes, %d relations", len(b.Messages), len(b.Routes), len(b.Relations))
	}
	first := commits[0].Events[1].(event.PeerDiscovered)
	if b.Knows(w1, first.Other) || len(b.Related(first.Other)) != 0 {
		t.Error("the oldest stayed")
	}
}

// After a day messages and routes end, also where no commit comes; a relation stays.
//
// Covers: WIN-18
func TestAMessageAndARouteEndAfterADay(t *testing.T) {
	m := posted(w1, w2)
	s := fold(at(0, 1, m, event.PeerDiscovered{Window: w1, Peer: peer(w2), Other: w2},
		event.WindowRelated{Window: w1, Session: event.NewSessionID(), Relation: event.RelationWork}))
	for _, c := range []struct {
		after time.Duration
		there bool
	}{{MaxAge - time.Millisecond, true}, {MaxAge, false}} {
		b := s.Book(alice).At(begin.Add(c.after))
		_, found := b.Find(m.Message)
		_, reach := b.Reach(w2, peer(w1), peer)
		if found != c.there || reach != c.there || b.Knows(w1, w2) != c.there || len(b.Related(w1)) != 1 {
			t.Errorf("after %s: message %v, route %v", c.after, found, reach)
		}
	}
	s.Apply(2, "", at(MaxAge, 2, posted(w2, w1)))
	if b := s.Book(alice); len(b.Messages) != 1 || len(b.Routes) != 0 {
		t.Errorf("%+v", b)
	}
}

// A projection and an ACK leave facts, and change nothing else of the message.
//
// Covers: WIN-16, WIN-17
func TestProjectionsAreFacts(t *testing.T) {
	m, plain := posted(w1, w2), posted(w1, w2)
	m.RequiresAck = true
	both := []event.MessageID{m.Message, plain.Message}
	s := fold(at(0, 1, m), at(0, 2, plain), at(time.Second, 3, event.PeerProjected{Messages: both}),
		at(2*time.Second, 4, event.PeerAcknowledged{Messages: both}, event.PeerProjected{Messages: both[:1]}),
		at(3*time.Second, 5, event.PeerAcknowledged{Messages: both}))
	ms := begin.UnixMilli()
	want := []Message{
		{ID: m.Message, From: w1, To: w2, Text: "x", Priority: event.PriorityNormal, RequiresAck: true, At: begin, Told: 1 << toldBits,
			FirstProjected: ms + 1000, LastProjected: ms + 2000, Projections: 2, FirstAck: ms + 2000},
		{ID: plain.Message, From: w1, To: w2, Text: "x", Priority: event.PriorityNormal, At: begin, Told: 2 << toldBits,
			FirstProjected: ms + 1000, LastProjected: ms + 1000, Projections: 1}}
	for i, m := range s.Book(alice).Messages {
		if d := cmp.Diff(want[i], *m); d != "" {
			t.Error(d)
		}
	}
	var members []string
	for i := range reflect.TypeFor[Message]().NumField() {
		members = append(members, reflect.TypeFor[Message]().Field(i).Tag.Get("json"))
	}
	for _, word := range []string{"delivered", "read", "accept", "seen", "online", "present", "done"} {
		if strings.Contains(strings.Join(members, " "), word) {
			t.Errorf("a member is called %q", word)
		}
	}
}

// What is malformed drops itself only.
func TestAMalformedEventDropsItselfOnly(t *testing.T) {
	good := posted(w1, w2)
	bad := posted(w1, "x")
	b := fold(at(0, 1, bad, good, good, event.PeerDiscovered{Window: w1, Peer: "wc_peer_x", Other: w2},
		event.PeerDiscovered{Window: w1, Peer: peer(w1), Other: w1}, event.WindowRelated{Window: w1, Session: "x", Relation: event.RelationWork},
		event.WindowRelated{Window: w1, Session: event.NewSessionID(), Relation: "owns"}, event.PeerProjected{Messages: []event.MessageID{bad.Message}})).Book(alice)
	if len(b.Messages) != 1 || len(b.Routes)+len(b.Relations) != 0 {
		t.Errorf("%+v", b)
	}
}

// genCommits draws the life of one principal's windows.
func genCommits(t *rapid.T, sessions []event.SessionID) (out []event.Commit) {
	windows := rapid.SampledFrom([]event.WindowID{w1, w2, w3})
	var ids []event.MessageID
	now := time.Duration(0)
	for range rapid.IntRange(1, 30).Draw(t, "commits") {
		now += time.Duration(rapid.IntRange(0, 5*3600).Draw(t, "pause")) * time.Second
		var events []event.Event
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			a, b := windows.Draw(t, "window"), windows.Draw(t, "other")
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				events = append(events, event.WindowRelated{Window: a, Session: rapid.SampledFrom(sessions).Draw(t, "session"), Relation: event.RelationRecording})
			case 1:
				events = append(events, event.PeerDiscovered{Window: a, Peer: peer(b), Other: b})
			case 2:
				m := posted(a, b)
				m.RequiresAck = rapid.Bool().Draw(t, "ack")
				ids = append(ids, m.Message)
				events = append(events, m)
			case 3:
				events = append(events, event.PeerProjected{Messages: ids[max(0, len(ids)-3):]})
			case 4:
				events = append(events, event.PeerAcknowledged{Messages: ids[max(0, len(ids)-2):]})
			}
		}
		out = append(out, at(now, uint64(len(out))+1, events...))
	}
	return out
}

func same(t rapid.TB, what string, s *Store, want Book) {
	t.Helper()
	if d := cmp.Diff(want, s.Book(alice), cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%s: %s", what, d)
	}
}

// The fold is the same in memory, on disk over restarts, and from carried state, also where a
// restart comes between its parts.
//
// Covers: WIN-18, RES-12
func TestWindowsFoldTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	sessions := []event.SessionID{event.NewSessionID(), event.NewSessionID(), event.NewSessionID()}
	rapid.Check(t, func(t *rapid.T) {
		log := genCommits(t, sessions)
		if rapid.Bool().Draw(t, "removal") {
			log = append(log, event.Commit{Aggregate: event.RetentionAggregate(), Version: 1, Events: []event.Event{event.SessionRemoved{Session: sessions[0]}}})
		}
		memory := fold(log...)
		want := memory.Book(alice)
		if !soak && rapid.IntRange(0, 7).Draw(t, "disk") > 0 {
			return // a file takes its time
		}
		path := filepath.Join(dir, fmt.Sprintf("state-%d.db", time.Now().UnixNano()))
		var s *Store
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
		run := func(at uint64) {
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
		run(0)
		same(t, "disk", s, want)
		form, body, ok, err := memory.Carry(context.Background(), event.WindowAggregate(alice))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		n := len(log)
		log = append(log, inParts(t, form, body, uint64(n)+1)...)
		run(uint64(n))
		same(t, "disk after carrying", s, want)
		if err := k.Reset("the beginning has left the log"); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			log[i] = event.Commit{Aggregate: event.LogAggregate(), Version: uint64(i) + 1, Events: []event.Event{event.LogFilled{}}}
		}
		run(0)
		same(t, "from carried state", s, want)
	})
}

// inParts cuts the state into two small parts, as a large one would be.
func inParts(t *rapid.T, form int, body []byte, version uint64) (out []event.Commit) {
	parts, err := event.SplitState(form, body)
	if err != nil || len(parts) != 1 {
		t.Fatal(len(parts), err)
	}
	n := min(4*rapid.IntRange(1, 40).Draw(t, "cut"), len(parts[0].Data)/4*4-4)
	for i, data := range []string{parts[0].Data[:n], parts[0].Data[n:]} {
		p := event.CarriedPart{State: form, Part: i + 1, Parts: 2, Data: data}
		if i == 1 {
			p.Hash = parts[0].Hash
		}
		out = append(out, at(1000*time.Hour, version+uint64(i), event.WindowCarried{Part: p}))
	}
	return out
}

// A row that is not what was written makes the whole file be made again.
func TestADamagedRowIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	open := func() (*Store, *state.Keeper) {
		s := New()
		k, err := state.Open(context.Background(), state.Options{Path: path, Fold: "1", Models: []state.Model{s}})
		if err != nil {
			t.Fatal(err)
		}
		return s, k
	}
	_, k := open()
	k.Apply(eventlog.Applied{Seq: 1, Hash: "h", Commit: at(0, 1, posted(w1, w2))})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE window_row SET body = replace(body, ?, ?)`, string(w2), string(w3)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, k := open()
	defer k.Close()
	if cp, err := k.Checkpoint(); err != nil || cp.Seq != 0 || len(s.Book(alice).Messages) != 0 {
		t.Errorf("the damaged file stands at %d and shows %+v (%v)", cp.Seq, s.Book(alice), err)
	}
}
