package access

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// A page whose Sessions have all gone, or that has reservations alone, is carried from the file
// too: its numbers stay taken.
//
// Covers: SES-11
func TestAPageWithoutRefsIsCarriedFromTheFile(t *testing.T) {
	h := newHistory()
	o := owner{strings.Repeat("a", 64), event.RefSession}
	id := event.NewSessionID()
	h.start(o, id, event.NewNonce())
	h.drop(id)
	h.reserve(o)
	r := NewRefs()
	k, err := state.Open(t.Context(), state.Options{Path: filepath.Join(t.TempDir(), "state.db"), Fold: "1", Models: []state.Model{r}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for i, c := range h.commits {
		k.Apply(eventlog.Applied{Seq: uint64(i) + 1, Hash: fmt.Sprint(i), Commit: c})
	}
	if err := k.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, body, ok, err := r.Carry(t.Context(), o.page(1))
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if p, ok := readPage(event.CarriedState{Form: pageForm, State: body}); !ok || p.Last != 2 || len(p.Refs) != 0 {
		t.Errorf("%s", body)
	}
}

// Where a counter goes on behind a rift no number was given before: at least 100,000 are left
// out behind a restore and 10,000 behind an unclean stop, a page begins there, and two histories
// with the same beginning go on apart. More numbers given never lead to a lower place.
//
// Covers: SES-11, NEG-06
func TestCountersJumpWhereAnotherHistoryBegins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, event.MaxRefNumber).Draw(t, "number")
		m := rapid.Uint64Range(n, event.MaxRefNumber).Draw(t, "greater")
		epoch := rapid.String().Draw(t, "epoch")
		x := rift{epoch: epoch, lost: rapid.Bool().Draw(t, "lost")}
		least := uint64(100_000)
		if x.lost {
			least = 10_000
		}
		a, b := x.jump(n), x.jump(m)
		if a > b || a < min(n+least, event.MaxRefNumber) || a > event.MaxRefNumber || a != event.MaxRefNumber && a%event.RefsPage != 0 {
			t.Fatalf("%d jumps to %d, %d to %d", n, a, m, b)
		}
	})
	for lost, rifts := range map[bool]int{false: 500, true: 20_000} {
		apart, n := map[uint64]bool{}, uint64(0)
		for i := range 20 {
			apart[rift{epoch: fmt.Sprint("epoch", i), lost: lost}.jump(105)] = true
		}
		if len(apart) < 19 {
			t.Errorf("lost %v: 20 histories go on at %d places", lost, len(apart))
		}
		for i := range rifts {
			n = rift{epoch: fmt.Sprint("epoch", i), lost: lost}.jump(n)
		}
		if n >= event.MaxRefNumber {
			t.Errorf("lost %v: %d rifts use up every number", lost, rifts)
		}
	}
}
