package history

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/projections/history"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const (
	day = 24 * time.Hour
	mib = int64(1) << 20
)

// blocks of 8 MiB and 1,000 commits, of which the newest days old are given, oldest first; the
// last is the one that is written.
func blocks(ages ...int) []Block {
	out := make([]Block, len(ages))
	for i, a := range ages {
		out[i] = Block{First: uint64(i*1000 + 1), Last: uint64(i*1000 + 1000), Bytes: 8 * mib, Newest: noon.Add(-time.Duration(a) * day)}
	}
	return out
}

func stateOf(b []Block) State {
	return State{Blocks: b, Budget: 1000 * mib, Facts: history.Facts{First: 1, Last: uint64(len(b) * 1000), Newest: noon.Add(-time.Hour)}}
}

// Covers: EVT-04
func TestDecide(t *testing.T) {
	t.Parallel()
	full := Policy{MaxAge: 90 * day, MaxBytes: 4 << 30}
	many := func(old, young int) []Block {
		var ages []int
		for range old {
			ages = append(ages, 100)
		}
		for range young {
			ages = append(ages, 1)
		}
		return blocks(ages...)
	}
	with := func(s State, change func(*State)) State { change(&s); return s }
	for name, c := range map[string]struct {
		s    State
		p    Policy
		now  time.Time
		want Decision
	}{
		"nothing there":             {State{}, full, noon, Decision{}},
		"all young":                 {stateOf(blocks(80, 10, 0)), full, noon, Decision{Next: noon.Add(10 * day)}},
		"one old of twenty":         {stateOf(many(1, 19)), full, noon, Decision{Cut: 1001, Reason: ReasonAge}},
		"half is old: a tenth goes": {stateOf(many(10, 10)), full, noon, Decision{Cut: 2001, Reason: ReasonAge}},
		"a block is a third":        {stateOf(many(2, 1)), full, noon, Decision{Cut: 1001, Reason: ReasonAge}},
		"only the newest block":     {stateOf(blocks(400)), full, noon, Decision{}},
		"the newest never goes":     {stateOf(blocks(400, 400)), full, noon, Decision{Cut: 1001, Reason: ReasonAge}},
		"the share has left": {with(stateOf(many(10, 10)), func(s *State) { s.Facts.RestUntil = noon.Add(time.Hour) }), full, noon,
			Decision{Hold: HoldDailyShare, Next: noon.Add(time.Hour)}},
		"a step nobody confirmed": {with(stateOf(many(10, 10)), func(s *State) { s.Facts.Step = &history.Step{Seq: 9} }), full, noon,
			Decision{Hold: HoldClock}},
		"a year forward":         {stateOf(blocks(80, 10, 0)), full, noon.Add(365 * day), Decision{Hold: HoldClock}},
		"an hour back":           {stateOf(many(10, 10)), full, noon.Add(-time.Hour), Decision{Cut: 2001, Reason: ReasonAge}},
		"a day and a bit back":   {stateOf(many(10, 10)), full, noon.Add(-26 * time.Hour), Decision{Hold: HoldClock}},
		"no bound of age":        {stateOf(many(10, 10)), Policy{MaxBytes: 4 << 30}, noon, Decision{}},
		"a time from the future": {with(stateOf(many(2, 18)), func(s *State) { s.Blocks[0].Newest = noon.Add(300 * day) }), full, noon, Decision{Cut: 2001, Reason: ReasonAge}},
		"too many bytes":         {stateOf(many(0, 20)), Policy{MaxBytes: 100 * mib}, noon, Decision{Cut: 8001, Reason: ReasonBytes}},
		"the budget comes first": {with(stateOf(many(0, 20)), func(s *State) { s.Budget = 100 * mib }), full, noon, Decision{Cut: 10001, Reason: ReasonBytes}},
		"a clock stops no room":  {with(stateOf(many(0, 20)), func(s *State) { s.Facts.Step = &history.Step{} }), Policy{MaxBytes: 100 * mib}, noon.Add(9000 * day), Decision{Cut: 8001, Reason: ReasonBytes}},
		"one block is all":       {stateOf(blocks(0)), Policy{MaxBytes: mib}, noon, Decision{Hold: HoldNewest}},
		"the living are too big": {with(stateOf(many(0, 20)), func(s *State) { s.LastBytes = Round{Freed: 8 * mib, Carried: 9 * mib, After: 159 * mib} }), Policy{MaxBytes: 100 * mib}, noon, Decision{Hold: HoldLiving}},
		"they are, and it grew":  {with(stateOf(many(0, 20)), func(s *State) { s.LastBytes = Round{Freed: 8 * mib, Carried: 9 * mib, After: 100 * mib} }), Policy{MaxBytes: 100 * mib}, noon, Decision{Cut: 8001, Reason: ReasonBytes}},
		"tail, nothing beyond":   {stateOf(blocks(0, 0)), Policy{Tail: true, MaxAge: 90 * day}, noon, Decision{Next: noon.Add(90 * day)}},
		"tail":                   {with(stateOf(blocks(0, 0)), func(s *State) { s.Beyond = true }), Policy{Tail: true}, noon, Decision{Roll: true, Reason: ReasonTail}},
		"tail, a round ago": {with(stateOf(blocks(0, 0)), func(s *State) { s.Beyond, s.LastTail = true, noon.Add(-TailEvery) }), Policy{Tail: true}, noon,
			Decision{Roll: true, Reason: ReasonTail}},
		"tail, just now":                     {with(stateOf(blocks(0)), func(s *State) { s.Beyond, s.LastTail = true, noon.Add(-time.Second) }), Policy{Tail: true}, noon, Decision{}},
		"tail, the clock was set back since": {with(stateOf(blocks(0)), func(s *State) { s.Beyond, s.LastTail = true, noon.Add(day) }), Policy{Tail: true}, noon, Decision{Roll: true, Reason: ReasonTail}},
	} {
		if diff := cmp.Diff(c.want, Decide(c.s, c.p, c.now)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// Whatever the blocks and clocks are: a cut is the beginning of a block and never lies in the
// first or behind the beginning of the last, age takes no more than the day's share or one
// block and only old ones, and what is within its bounds stays.
func TestDecideKeepsItsPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "blocks")
		s := State{Budget: rapid.Int64Range(0, 300).Draw(t, "budget") * mib, Beyond: rapid.Bool().Draw(t, "beyond")}
		seq := uint64(rapid.IntRange(1, 1000).Draw(t, "first"))
		for range n {
			size := uint64(rapid.IntRange(1, 5000).Draw(t, "size"))
			b := Block{First: seq, Last: seq + size - 1, Bytes: rapid.Int64Range(1, 8*mib).Draw(t, "bytes"),
				Newest: noon.Add(-time.Duration(rapid.IntRange(-400, 400).Draw(t, "age")) * day)}
			if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
				b.Newest = time.Time{}
			}
			s.Blocks = append(s.Blocks, b)
			seq += size
		}
		s.Facts = history.Facts{First: s.Blocks[0].First, Last: seq - 1, Newest: noon.Add(time.Duration(rapid.IntRange(-50, 50).Draw(t, "newest")) * time.Hour)}
		if rapid.Bool().Draw(t, "step") {
			s.Facts.Step = &history.Step{}
		}
		p := Policy{Tail: rapid.Bool().Draw(t, "tail"), MaxAge: time.Duration(rapid.IntRange(0, 100).Draw(t, "max age")) * day,
			MaxBytes: rapid.Int64Range(0, 300).Draw(t, "max bytes") * mib}
		now := noon.Add(time.Duration(rapid.IntRange(-500, 500).Draw(t, "now")) * time.Hour)
		d := Decide(s, p, now)
		if d.Roll && (d.Cut != 0 || !p.Tail || !s.Beyond) {
			t.Fatalf("%+v", d)
		}
		if d.Cut == 0 {
			return
		}
		at := -1
		for i, b := range s.Blocks {
			if b.First == d.Cut {
				at = i
			}
		}
		if at < 1 {
			t.Fatalf("a cut at %d", d.Cut)
		}
		switch d.Reason {
		case ReasonBytes:
			if rest := Total(s.Blocks[at-1:]); rest <= Limit(s, p) {
				t.Fatalf("%d of %d bytes were within the bound", rest, Limit(s, p))
			}
		case ReasonAge:
			all := float64(s.Facts.Last - s.Blocks[0].First + 1)
			if at > 1 && float64(d.Cut-s.Blocks[0].First) > all*history.DailyShare {
				t.Fatalf("%d of %v commits left", d.Cut-s.Blocks[0].First, all)
			}
			for _, b := range s.Blocks[:at] {
				if young := now.Sub(b.Newest) < p.MaxAge; young && !b.Newest.After(now.Add(MaxSkew)) {
					t.Fatalf("a block of %v left at %v", b.Newest, now)
				}
			}
			if s.Facts.Step != nil || now.Sub(s.Facts.Newest).Abs() > history.MaxStep {
				t.Fatal("the clock was not to be trusted")
			}
		default:
			t.Fatalf("%+v", d)
		}
	})
}

// A block is filled up only where carrying still finds room: 8 MiB take what is missing of it,
// and a fifth of the budget stays.
func TestBlockIsEndedWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	of := func(budget int64, newest int64) State {
		s := stateOf(blocks(3, 2, 1))
		s.Budget, s.Blocks[2].Bytes = budget, newest
		return s
	}
	for _, c := range []struct {
		s    State
		want bool
	}{{of(30*mib, mib), true}, {of(30*mib-100, mib), false}, {of(30*mib, 8*mib), true}, {of(29*mib, 8*mib), false}} {
		if c.s.rollable() != c.want {
			t.Errorf("budget %d, newest %d: %v", c.s.Budget, c.s.Blocks[2].Bytes, !c.want)
		}
	}
}
