package history

import (
	"time"

	"webcodex/projections/history"
)

// Policy is what an operator lets the log keep beyond what is alive (EVT-04).
type Policy struct {
	// Tail keeps nothing beyond what read models still need.
	Tail bool `json:"tail"`
	// MaxAge of a commit that nothing alive needs; 0: no bound.
	MaxAge time.Duration `json:"max_age_ns"`
	// MaxBytes of the whole log; 0: no bound but the log's budget.
	MaxBytes int64 `json:"max_bytes"`
}

// Reasons by which a prefix leaves.
const (
	ReasonBytes    = "bytes"
	ReasonAge      = history.ReasonAge
	ReasonTail     = "tail"
	ReasonOperator = "operator"
)

// Block is one of the log's block files.
type Block struct {
	First, Last uint64
	Bytes       int64
	// Newest is a time that no commit in it is newer than; zero: not known.
	Newest time.Time
}

// Round is what the last one by bytes gained.
type Round struct {
	Freed, Carried int64
	// After is how large the log was when it ended.
	After int64
}

// State is what a decision sees.
type State struct {
	// Blocks, oldest first; the last is the one that is being written.
	Blocks []Block
	// Budget is the log's own, in bytes.
	Budget int64
	Facts  history.Facts
	// LastBytes is the last round by bytes, zero: none in this life.
	LastBytes Round
	// Beyond tells that the log holds events beyond a Session's tail, or a removed Session.
	Beyond bool
	// LastTail is when the last round of policy tail began.
	LastTail time.Time
	// Damaged tells that a block is not what was written.
	Damaged bool
}

// rollable reports whether the newest block may be filled up: what that takes must leave the
// room that carrying needs, or nothing could leave any more.
func (s State) rollable() bool {
	largest := int64(0)
	for _, b := range s.Blocks {
		largest = max(largest, b.Bytes)
	}
	return Total(s.Blocks)+largest-s.Blocks[len(s.Blocks)-1].Bytes <= s.Budget*BudgetShare/100
}

// Holds: why something that is due does not leave.
const (
	HoldClock      = "clock_step"   // the clock stepped and nobody confirmed it
	HoldDailyShare = "daily_share"  // a day's share has left for its age
	HoldLiving     = "living_state" // what is alive is larger than what may be kept
	HoldNewest     = "newest_block" // all that is due lies in the block that is written
	HoldDamage     = "damage"       // a block is damaged, and the evidence stays
)

// Decision is what to do now.
type Decision struct {
	// Cut is the first sequence that stays; 0: nothing leaves.
	Cut uint64 `json:"cut,omitempty"`
	// Roll ends the newest block first and cuts where the next one begins; where the log has no
	// room for that, it cuts where the newest begins.
	Roll   bool   `json:"roll,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Hold says why nothing leaves although something is due.
	Hold string `json:"hold,omitempty"`
	// Next is when something comes due by time, as far as it can be told.
	Next time.Time `json:"next,omitzero"`
}

// Due reports whether there is something to do.
func (d Decision) Due() bool { return d.Cut > 0 || d.Roll }

// Decide says what leaves the log now. It is pure. Room comes before the tail, the tail before
// age.
func Decide(s State, p Policy, now time.Time) Decision {
	if len(s.Blocks) == 0 {
		return Decision{}
	}
	if s.Damaged {
		return Decision{Hold: HoldDamage}
	}
	d := byBytes(s, Limit(s, p))
	if d.Due() || d.Hold != "" && !p.Tail {
		return d
	}
	if t := byTail(s, p, now); t.Due() {
		return t
	}
	a := byAge(s, p, now)
	if d.Hold == "" || a.Due() {
		d = a
	}
	return d
}

// Limit is how large the log may be before its oldest blocks leave.
func Limit(s State, p Policy) int64 {
	limit := s.Budget * BudgetShare / 100
	if p.MaxBytes > 0 && (limit == 0 || p.MaxBytes < limit) {
		limit = p.MaxBytes
	}
	return limit
}

// Total is the size of all blocks.
func Total(blocks []Block) int64 {
	n := int64(0)
	for _, b := range blocks {
		n += b.Bytes
	}
	return n
}

func byBytes(s State, limit int64) Decision {
	used := Total(s.Blocks)
	if limit <= 0 || used <= limit {
		return Decision{}
	}
	if len(s.Blocks) == 1 {
		return Decision{Hold: HoldNewest}
	}
	if r := s.LastBytes; r.Carried > 0 && r.Carried >= r.Freed && used < r.After+limit/100*Regrowth {
		return Decision{Hold: HoldLiving}
	}
	i := 0
	for i < len(s.Blocks)-1 && used > limit {
		used -= s.Blocks[i].Bytes
		i++
	}
	return Decision{Cut: s.Blocks[i].First, Reason: ReasonBytes}
}

func byTail(s State, p Policy, now time.Time) Decision {
	if !p.Tail || !s.Beyond {
		return Decision{}
	}
	if wait := s.LastTail.Add(TailEvery); now.Before(wait) && !now.Before(s.LastTail) {
		return Decision{Next: wait}
	}
	return Decision{Roll: true, Reason: ReasonTail}
}

// byAge lets whole blocks go that are old, at most a day's share of the log or one block.
func byAge(s State, p Policy, now time.Time) Decision {
	if p.MaxAge <= 0 || len(s.Blocks) < 2 {
		return Decision{}
	}
	sealed := s.Blocks[:len(s.Blocks)-1]
	newest := believed(sealed, now)
	old := 0
	for old < len(sealed) && !newest[old].IsZero() && !newest[old].Add(p.MaxAge).After(now) {
		old++
	}
	if old == 0 {
		if newest[0].IsZero() {
			return Decision{}
		}
		return Decision{Next: newest[0].Add(p.MaxAge)}
	}
	f := s.Facts
	if f.Step != nil || now.Sub(f.Newest).Abs() > history.MaxStep {
		return Decision{Hold: HoldClock}
	}
	if now.Before(f.RestUntil) {
		return Decision{Hold: HoldDailyShare, Next: f.RestUntil}
	}
	share := uint64(float64(f.Last-sealed[0].First+1) * history.DailyShare)
	n := 1
	for n < old && sealed[n].Last-sealed[0].First+1 <= share {
		n++
	}
	return Decision{Cut: s.Blocks[n].First, Reason: ReasonAge}
}

// believed gives the newest time in each block. One in the future was written by a clock that
// has been set back since: such a block is as old as the next whose time can be believed.
func believed(blocks []Block, now time.Time) []time.Time {
	out := make([]time.Time, len(blocks))
	next := time.Time{}
	for i := len(blocks) - 1; i >= 0; i-- {
		if b := blocks[i].Newest; !b.IsZero() && !b.After(now.Add(MaxSkew)) {
			next = b
		}
		out[i] = next
	}
	return out
}
