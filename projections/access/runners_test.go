package access

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

func invited(n int, code string) event.RunnerInvited {
	return event.RunnerInvited{Runner: tokenID(n), Client: event.ClientID(fmt.Sprint("box-", n)), Name: "n", Code: code,
		CodeExpiresAt: event.FormatTime(noon.Add(time.Hour)), Projects: []string{"site"}}
}

// feedRunners applies commits of the Runners' aggregate, one an event.
func feedRunners(r *Runners, from uint64, events ...event.Event) uint64 {
	for _, e := range events {
		from++
		agg := event.RunnersAggregate()
		if _, ok := e.(event.LogRestored); ok {
			agg = event.LogAggregate()
		}
		r.Apply(from, "h", event.Commit{Aggregate: agg, Version: from, At: noon, Events: []event.Event{e}})
	}
	return from
}

// A code is good until it expires or a key has taken its place; a key until a rotation or the
// end; a restore takes all of them. A code says what became of it.
func TestRunnerLife(t *testing.T) {
	r := NewRunners()
	seq := feedRunners(r, 0, invited(1, "c1"), invited(2, "c2"), event.RunnerInvited{Runner: tokenID(3), Client: "box-3", Code: "c3", CodeExpiresAt: "no time"})
	check := func(public string, status Status, code bool) {
		t.Helper()
		k, isCode, ok := r.ByKey(public)
		if status == "" && ok || status != "" && (!ok || k.Status(noon) != status || isCode != code) {
			t.Errorf("%s: %v %s %v, want %s", public, ok, k.Status(noon), isCode, status)
		}
	}
	check("c1", StatusInvited, true)
	check("c3", StatusExpired, true)
	check("", "", false)
	if k, _ := r.Get(tokenID(1)); k.Status(noon.Add(time.Hour)) != StatusExpired || !k.Serves("x", "site") || k.Serves("site-1", "other") {
		t.Errorf("%+v", k)
	}
	seq = feedRunners(r, seq, event.RunnerEnrolled{Runner: tokenID(1), Key: "k1"}, event.RunnerEnrolled{Runner: tokenID(1), Key: "k9"},
		event.RunnerEnrolled{Runner: tokenID(2), Key: "k2"})
	check("k1", StatusActive, false)
	check("k9", "", false)
	check("c1", StatusActive, true)
	if _, ok := r.Active("box-1"); !ok {
		t.Error("an enrolled Runner is not active")
	}
	seq = feedRunners(r, seq, event.RunnerReinvited{Runner: tokenID(1), Code: "c5", CodeExpiresAt: event.FormatTime(noon.Add(time.Hour))})
	check("k1", "", false)
	check("c1", "", false)
	check("c5", StatusInvited, true)
	seq = feedRunners(r, seq, event.RunnerRevoked{Runner: tokenID(1)}, event.RunnerEnrolled{Runner: tokenID(1), Key: "k5"})
	check("k5", "", false)
	check("c5", StatusRevoked, true)
	feedRunners(r, seq, event.LogRestored{Epoch: "e"})
	check("k2", "", false)
	check("c2", "", false)
	if k, _ := r.Get(tokenID(2)); k.Status(noon) != StatusSuspended {
		t.Errorf("after a restore: %s", k.Status(noon))
	}
}

var runnerEvents = rapid.Custom(func(t *rapid.T) event.Event {
	n := rapid.IntRange(0, 5).Draw(t, "n")
	public := rapid.StringMatching("[ck][0-9]").Draw(t, "public")
	switch rapid.IntRange(0, 7).Draw(t, "what") {
	case 0, 1, 2:
		return invited(n, public)
	case 3, 4:
		return event.RunnerEnrolled{Runner: tokenID(n), Key: public}
	case 5:
		return event.RunnerReinvited{Runner: tokenID(n), Code: public}
	case 6:
		return event.RunnerRevoked{Runner: tokenID(n)}
	}
	return event.LogRestored{Epoch: "e"}
})

// At any point the rows of the file, and the state carried forward, give the same credentials as
// the fold from the first event.
func TestRunnersOnDiskAndCarried(t *testing.T) {
	db := openState(t)
	for _, s := range NewRunners().Schema() {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *rapid.T, r *Runners) {
		c := r.Capture()
		if c == nil {
			return
		}
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		c.Written()
	}
	rapid.Check(t, func(rt *rapid.T) {
		whole := NewRunners()
		seq := feedRunners(whole, 0, rapid.SliceOf(runnerEvents).Draw(rt, "before")...)
		if _, err := db.Exec(`DELETE FROM access_runner`); err != nil {
			rt.Fatal(err)
		}
		write(rt, whole)
		loaded := NewRunners()
		if err := loaded.Load(t.Context(), db); err != nil {
			rt.Fatal(err)
		}
		form, body, ok, err := whole.Carry(t.Context(), event.RunnersAggregate())
		if err != nil || !ok || whole.Capture() != nil {
			rt.Fatal(ok, err)
		}
		parts, err := event.SplitState(form, body)
		if err != nil {
			rt.Fatal(err)
		}
		carried, at := NewRunners(), seq
		for _, p := range parts {
			at = feedRunners(carried, at, event.AccessCarried{Part: p})
		}
		loaded.applied = at
		after := rapid.SliceOf(runnerEvents).Draw(rt, "after")
		for _, r := range []*Runners{whole, loaded, carried} {
			feedRunners(r, at, after...)
		}
		for name, got := range map[string]*Runners{"file": loaded, "carried": carried} {
			if diff := cmp.Diff(whole.List(), got.List()); diff != "" {
				rt.Errorf("%s: %s", name, diff)
			}
		}
	})
	r := NewRunners()
	feedRunners(r, 0, invited(1, "c1"))
	if _, err := db.Exec(`DELETE FROM access_runner`); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`INSERT INTO access_runner VALUES ('x', '{}', 1)`); err != nil {
		t.Fatal(err)
	}
	if err := r.Load(t.Context(), db); !errors.Is(err, state.ErrRow) {
		t.Errorf("a damaged row: %v", err)
	}
}
