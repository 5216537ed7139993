package session

import (
	"strconv"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// View is a Session at one moment: core, retained tail and board, three folds over the same
// events. It is immutable and may be kept.
type View struct {
	Core  Core
	Tail  Tail
	Board Board
	// Seq and Hash are of the last commit folded in.
	Seq  uint64
	Hash string
	// Stopping are Jobs that were asked to end and have no end yet, by the word of the server that
	// asks: no part of the fold, and nil where nobody told.
	Stopping map[event.ExecutionID]bool
	// Reconciled are Jobs of earlier server lives that their Runners have in hand, by the word of the
	// server that reads.
	Reconciled map[event.ExecutionID]bool

	gather event.Gather // of carried state, while there is no other
}

// Apply folds the Session's next commit; one already folded (by version) changes nothing.
func (v View) Apply(seq uint64, hash string, c event.Commit) View {
	if c.Version <= v.Core.Version {
		return v
	}
	if !v.rooted(c) {
		return v.begin(seq, hash, c)
	}
	c = sanitised(c)
	return View{Core: v.Core.Apply(c).rest(seq), Tail: v.Tail.Apply(c), Board: v.Board.Apply(c), Seq: seq, Hash: hash}
}

// Stored is a commit with its place in the log.
type Stored struct {
	Seq    uint64
	Hash   string
	Commit event.Commit
}

// Point names a moment of one Session: a version, or a time where Version is 0. The zero
// Point is the end.
type Point struct {
	Version uint64
	Time    time.Time
}

// ParsePoint reads a version (1, 2, …) or an RFC 3339 time.
func ParsePoint(s string) (Point, error) {
	if v, err := strconv.ParseUint(s, 10, 63); err == nil && v > 0 {
		return Point{Version: v}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return Point{Time: t}, nil
	}
	return Point{}, fault.New(fault.InvalidArguments, "that is neither a version (1, 2, …) nor a time like 2026-01-02T15:04:05Z").WithField("at")
}

// Includes reports whether the commit had happened at p.
func (p Point) Includes(c event.Commit) bool {
	switch {
	case p.Version > 0:
		return c.Version <= p.Version
	case !p.Time.IsZero():
		return !c.At.After(p.Time)
	default:
		return true
	}
}
