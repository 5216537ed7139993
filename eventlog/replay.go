package eventlog

import (
	"context"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Entry is one commit as it lies in the log.
type Entry struct {
	Seq    uint64
	Hash   string // of the stored body
	Size   int    // bytes of the stored body
	Commit event.Commit
}

// Range says what Replay gives.
type Range struct {
	// Aggregate is the one to give; zero: all, in the log's total order.
	Aggregate event.Aggregate
}

// Replay reads the log afresh from its first commit to the last one applied when it began,
// checks the chain of what it gives, and calls fn in order; an error of fn ends it. It uses
// no fold and no checkpoint. Where the log's beginning was pruned it gives what is stored all
// the same, so a record may begin with any version. Errors: fault log_damaged with the
// sequence, cancelled, shutting_down as soon as the log closes, unavailable with reason pruned
// when a prune overtook it, fn's.
func (l *Log) Replay(ctx context.Context, r Range, fn func(Entry) error) error {
	if l.closed.Load() {
		return shuttingDown()
	}
	ctx, done := l.reading(ctx)
	defer done()
	subject := ""
	if r.Aggregate != (event.Aggregate{}) {
		if !r.Aggregate.Valid() {
			return fault.New(fault.InvalidArguments, "this is not the name of a record in the log")
		}
		subject = subjectOf(r.Aggregate)
	}
	first := l.first.Load()
	last, _ := l.applied.read()
	check := newChain(nil)
	check.pruned = first > 1
	return l.records(ctx, first, last, subject, func(rec record) error {
		if err := l.mayRead(ctx); err != nil {
			return err
		}
		_, v, err := check.add(rec)
		if err != nil {
			return err
		}
		if v == broke || v == closed {
			return check.damage(rec.agg).fault()
		}
		return fn(Entry{Seq: rec.seq, Hash: rec.hash, Size: rec.size, Commit: rec.commit})
	})
}
