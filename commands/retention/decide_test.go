package retention

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/projections/retention"
	"webcodex/projections/session"
)

var owner = strings.Repeat("a", 64)

func closed() session.Core {
	return session.Core{ID: event.NewSessionID(), Nonce: event.NewNonce(), Authority: owner, Principal: owner, Lifecycle: session.Closed}
}

// fold gives the tombstones that commits leave.
func fold(commits ...[]event.Event) *retention.Tombstones {
	s := retention.New()
	for i, events := range commits {
		if len(events) > 0 {
			s.Apply(uint64(i)+1, "", event.Commit{Aggregate: event.RetentionAggregate(), Version: uint64(i) + 1, Events: events})
		}
	}
	return s
}

func ids(list []retention.Tombstone) (out []event.SessionID) {
	for _, t := range list {
		out = append(out, t.Session)
	}
	return out
}

// With the newest ordinal at the type's maximum the tombstones are numbered anew first: ids,
// owners, incarnations and the order in which they leave stay.
//
// Covers: SES-35
func TestTheGreatestOrdinal(t *testing.T) {
	var seeded []event.Event
	var want []event.SessionID
	for i, ordinal := range []uint64{3, math.MaxUint64 - 7, math.MaxUint64} {
		c := closed()
		seeded = append(seeded, event.SessionRemoved{Session: c.ID, Authority: owner, Principal: owner, Incarnation: event.Incarnation(c.ID, c.Nonce), Ordinal: ordinal})
		if want = append(want, c.ID); i == 0 {
			want = want[:0] // the oldest is the victim
		}
	}
	s := fold(seeded)
	before := s.All()
	one := closed()
	events := Decide(s.Standing(maxDropped), []session.Core{one}, 3)
	s.Apply(100, "", event.Commit{Aggregate: event.RetentionAggregate(), Version: 2, Events: events})
	all := s.All()
	if d := cmp.Diff(append(want, one.ID), ids(all)); d != "" {
		t.Fatal(d)
	}
	for i, x := range all[:2] {
		was := before[i+1]
		was.Ordinal = x.Ordinal
		if x != was || x.Ordinal != uint64(i)+2 {
			t.Errorf("%+v was %+v", x, before[i+1])
		}
	}
	if all[2].Ordinal != 4 || all[2].Incarnation != event.Incarnation(one.ID, one.Nonce) {
		t.Errorf("%+v", all[2])
	}
	if _, ok := events[0].(event.TombstonesRenumbered); !ok || len(events) != 3 {
		t.Errorf("%+v", events)
	}
	// One below it, a greater one is left: nothing is renumbered.
	if events := Decide(retention.Standing{Count: 1, Newest: math.MaxUint64 - 1, Oldest: []event.SessionID{one.ID}}, []session.Core{closed()}, 3); len(events) != 1 {
		t.Errorf("%+v", events)
	}
}

// Whatever is removed under whatever limits: the tombstones are the newest, in the order of
// removal, within the limit once there is nothing left to do, and their ordinals rise.
//
// Covers: SES-34, SES-36
func TestTombstonesStayWithinTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := fold()
		var removed []event.SessionID
		for seq := uint64(1); seq < 20; seq++ {
			limit := rapid.IntRange(0, 4).Draw(t, "limit")
			var batch []session.Core
			for range rapid.IntRange(0, 5).Draw(t, "batch") {
				batch = append(batch, closed())
				removed = append(removed, batch[len(batch)-1].ID)
			}
			events := Decide(s.Standing(maxDropped), batch, limit)
			s.Apply(seq, "", event.Commit{Aggregate: event.RetentionAggregate(), Version: seq, Events: events})
			all := s.All()
			if len(all) > limit {
				t.Fatalf("%d tombstones, %d allowed", len(all), limit)
			}
			if d := cmp.Diff(removed[len(removed)-len(all):], ids(all)); len(all) > 0 && d != "" {
				t.Fatal(d)
			}
			for i := range all[:max(0, len(all)-1)] {
				if all[i].Ordinal >= all[i+1].Ordinal {
					t.Fatalf("%+v", all)
				}
			}
			if again := Decide(s.Standing(maxDropped), nil, limit); len(again) != 0 {
				t.Fatalf("there is more to do: %+v", again)
			}
		}
	})
}

// Where many have to go, each commit names as many of the oldest as it may, and no newer one.
func TestManyTombstonesLeaveInSteps(t *testing.T) {
	s := fold()
	var removed []event.SessionID
	for seq := uint64(1); len(removed) < maxDropped+3*maxRemoved; seq++ {
		var batch []session.Core
		for range maxRemoved {
			batch = append(batch, closed())
			removed = append(removed, batch[len(batch)-1].ID)
		}
		s.Apply(seq, "", event.Commit{Aggregate: event.RetentionAggregate(), Version: seq, Events: Decide(s.Standing(maxDropped), batch, 1<<20)})
	}
	one := closed()
	removed = append(removed, one.ID)
	for seq, batch := uint64(1000), []session.Core{one}; ; seq, batch = seq+1, nil {
		events := Decide(s.Standing(maxDropped), batch, 5)
		if len(events) == 0 {
			break
		}
		c := event.Commit{Format: event.Format, ID: event.NewCommandID(), Aggregate: event.RetentionAggregate(), Version: seq, Events: events}
		if body, err := c.Encode(); err != nil || len(body) > event.MaxCommitBytes {
			t.Fatalf("a commit of %d bytes (%v)", len(body), err)
		}
		before := len(s.All())
		s.Apply(seq, "", c)
		if d := cmp.Diff(removed[len(removed)-len(s.All()):], ids(s.All())); d != "" || before-len(s.All()) > maxDropped {
			t.Fatal(d)
		}
	}
	if n := len(s.All()); n != 5 {
		t.Errorf("%d are left", n)
	}
}

// An Active Session, and a Closed one with anything open, may not be removed.
//
// Covers: SES-40
func TestMayRemove(t *testing.T) {
	if c := closed(); !MayRemove(c) {
		t.Error("a Closed Session at rest stays")
	}
	active, calls, jobs := closed(), closed(), closed()
	active.Lifecycle = session.Active
	calls.Open = map[event.CallID]session.OpenCall{"c": {}}
	jobs.Jobs = map[event.ExecutionID]session.OpenJob{"j": {}}
	for _, c := range []session.Core{active, calls, jobs, {}} {
		if MayRemove(c) {
			t.Errorf("%+v may be removed", c)
		}
	}
}
