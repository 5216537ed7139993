// Package history folds what the log says of itself: when its commits were made, what has left
// it and why, and whether the clock can be trusted to decide what leaves next.
package history

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"webcodex/eventlog/event"
)

// Bounds of the ledger.
const (
	// MaxStep between the times of two commits in a row. A longer one is a clock that was set,
	// or a server that slept: until somebody confirms the clock, nothing leaves the log for
	// its age (faults.md 2.14).
	MaxStep = 24 * time.Hour
	// DailyShare of the log may leave it for its age within a day (faults.md 2.14). The
	// smallest piece is a block: where one is more, the days that it is worth pass before the next.
	DailyShare = 0.10
	// markEvery commits, or markAfter, their time is remembered, to tell the age of a block.
	markEvery = 512
	markAfter = time.Hour
)

// ReasonAge is the reason of log.pruned by which the daily share is counted.
const ReasonAge = "age"

// Mark is the time of one commit.
type Mark struct {
	Seq uint64
	At  time.Time
}

// Step is a suspicious difference between the times of two commits in a row.
type Step struct {
	Seq    uint64    `json:"seq"` // of the second
	Before time.Time `json:"before"`
	After  time.Time `json:"after"`
}

// Prune is one that the log announced.
type Prune struct {
	Seq      uint64    `json:"seq"` // of the announcement
	At       time.Time `json:"at"`
	FirstSeq uint64    `json:"first_seq"`
	Reason   string    `json:"reason"`
}

// Facts are what the ledger knows at one moment.
type Facts struct {
	// First is the first sequence that the log keeps, 0: it is empty; Since is its time, exact
	// to an hour or markEvery commits.
	First uint64    `json:"first"`
	Since time.Time `json:"since"`
	// Last is the newest commit, and Newest its time.
	Last   uint64    `json:"last"`
	Newest time.Time `json:"newest"`
	// Step is the newest one that nobody confirmed.
	Step *Step `json:"step,omitempty"`
	// RestUntil nothing leaves for its age: the day's share has left.
	RestUntil time.Time `json:"rest_until,omitzero"`
	LastPrune *Prune    `json:"last_prune,omitempty"`
	// Removed is the newest commit that removed a Session, 0: none. The log may hold what was
	// removed for as long as it holds that commit.
	Removed uint64 `json:"removed,omitempty"`
}

// Ledger is the fold. It is safe for concurrent use.
type Ledger struct {
	mu    sync.RWMutex
	facts Facts
	marks []Mark // rising by Seq; the first is at or before facts.First
	table table
}

// New is an empty ledger; feed it through Apply.
func New() *Ledger { return &Ledger{} }

// Apply folds one commit (eventlog.Fold).
func (l *Ledger) Apply(seq uint64, _ string, c event.Commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &l.facts
	if seq <= f.Last {
		return
	}
	if f.Last == 0 {
		f.First, f.Since = seq, c.At
	} else if step := c.At.Sub(f.Newest).Abs(); step > MaxStep {
		f.Step = &Step{Seq: seq, Before: f.Newest, After: c.At}
	}
	f.Last, f.Newest = seq, c.At
	l.mark(Mark{seq, c.At})
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.LogPruned:
			l.pruned(seq, c.At, e)
		case event.LogClockConfirmed:
			f.Step = nil
		case event.SessionRemoved:
			f.Removed = seq
		default: // says nothing of what is kept
		}
	}
	l.table.dirty = true
}

func (l *Ledger) mark(m Mark) {
	if n := len(l.marks); n > 0 {
		last := l.marks[n-1]
		if m.Seq-last.Seq < markEvery && m.At.Sub(last.At).Abs() < markAfter {
			return
		}
	}
	l.marks = append(l.marks, m)
	l.table.marks = append(l.table.marks, m)
}

func (l *Ledger) pruned(seq uint64, at time.Time, e event.LogPruned) {
	f := &l.facts
	// A ledger made again from a pruned log begins with the first commit that folds are given,
	// so only an earlier announcement tells that this one is old.
	if e.FirstSeq > seq || f.LastPrune != nil && e.FirstSeq <= f.LastPrune.FirstSeq {
		return
	}
	if e.Reason == ReasonAge {
		// Where the log begins with what it left, how much that was cannot be told any more.
		share := DailyShare
		if e.FirstSeq > f.First {
			share = float64(e.FirstSeq-f.First) / float64(seq-f.First+1)
		}
		f.RestUntil = at.Add(time.Duration(share / DailyShare * float64(24*time.Hour)))
	}
	f.First = e.FirstSeq
	f.LastPrune = &Prune{Seq: seq, At: at, FirstSeq: e.FirstSeq, Reason: e.Reason}
	// The mark before the first sequence stays: it tells its age.
	i, exact := markAt(l.marks, e.FirstSeq)
	if !exact {
		i--
	}
	if i > 0 {
		l.marks = slices.Clone(l.marks[i:])
		l.table.from = l.marks[0].Seq
	}
	if len(l.marks) > 0 {
		f.Since = l.marks[0].At
	}
}

// Facts gives what is known now.
func (l *Ledger) Facts() Facts {
	l.mu.RLock()
	defer l.mu.RUnlock()
	f := l.facts
	if f.Step != nil {
		s := *f.Step
		f.Step = &s
	}
	if f.LastPrune != nil {
		p := *f.LastPrune
		f.LastPrune = &p
	}
	return f
}

// NewestIn is a time that no commit from first to last is newer than, exact to markAfter: a
// commit without a mark is no further than that from the mark before it. The zero time:
// nothing is known.
func (l *Ledger) NewestIn(first, last uint64) time.Time {
	l.mu.RLock()
	defer l.mu.RUnlock()
	i, exact := markAt(l.marks, first)
	if !exact && i > 0 {
		i--
	}
	var newest time.Time
	for _, m := range l.marks[i:] {
		if m.Seq > last {
			break
		}
		if at := m.At.Add(markAfter); at.After(newest) {
			newest = at
		}
	}
	return newest
}

func markAt(marks []Mark, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(marks, seq, func(m Mark, seq uint64) int { return cmp.Compare(m.Seq, seq) })
}
