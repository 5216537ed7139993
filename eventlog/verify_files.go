package eventlog

import (
	"context"
	"errors"
	"os"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// VerifyFiles is Verify for a log that nobody has open. It reads the block files itself and starts
// no JetStream, which would write an index, make meta files again and cut a torn end: apart
// from taking the lock it changes nothing. A record that a stop in mid-write cut short is no
// damage, as at a start. Errors: as Open; damage of blocks is in the report.
func VerifyFiles(ctx context.Context, o Options) (VerifyReport, error) {
	r := VerifyReport{Damaged: []BlockDamage{}, Records: []Damage{}}
	o.ReadOnly, o.Base = true, nil
	if err := o.check(); err != nil {
		return r, err
	}
	if _, err := os.Stat(o.Dir); err != nil {
		return r, fault.New(fault.Unavailable, "there is no log in this data directory")
	}
	l := newLog(o)
	var err error
	if l.dir, err = openDir(o.Dir, true); err != nil {
		return r, err
	}
	defer l.dir.close()
	f, cp, has, err := l.readState()
	if err != nil {
		return r, err
	}
	x := l.examination(cp, has)
	r.EndUnknown = l.unwitnessed
	_, err = x.look(ctx)
	if err != nil {
		if blocks, is := fault.As(err).Details["blocks"].([]BlockDamage); is {
			r.Damaged = blocks
			return r, nil
		}
	}
	if err == nil {
		_, err = l.settleFormat(f)
	}
	if err != nil || len(x.index) == 0 {
		return r, err
	}
	return r, x.walk(ctx, &r)
}

// walk follows the chain of every commit in the block files, which were found whole.
func (x *examination) walk(ctx context.Context, r *VerifyReport) error {
	w := &walker{x: x, pruned: x.cp.Pruned}
	for _, i := range x.index {
		first, err := firstSeq(x.dir, i)
		if err == nil {
			w.first = max(first, x.cp.Pruned)
			break
		}
		if !errors.Is(err, errNoRecord) && i != x.tail {
			return err
		}
	}
	x.l.first.Store(w.first)
	if err := x.e.verify(ctx, 0, r); err != nil || len(r.Damaged) > 0 {
		return err
	}
	w.check = newChain(nil)
	w.check.pruned = w.first > 1
	err := decoded(ctx, "", w.feed, func(rec record) error {
		r.Commits++
		return w.take(ctx, rec)
	})
	w.check.settle()
	r.Records = append(r.Records, w.check.list()...)
	if err == nil {
		err = w.end()
	}
	return r.take(ctx, err)
}

// walker reads the commits of a log from its files.
type walker struct {
	x      *examination
	check  *chain
	first  uint64 // where the log begins
	last   uint64 // sequence read last
	pruned uint64 // first sequence that a prune allows
}

// feed gives the messages of every block up to the first byte that cannot be read.
func (w *walker) feed(ctx context.Context, give func(message) error) error {
	var prev uint64
	for _, i := range w.x.index {
		b, err := os.ReadFile(w.x.file(i))
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "block %d of the log cannot be read", i)
		}
		s := newBlockScan(i, b)
		for {
			r, ok := s.next()
			if !ok || !r.intact {
				break
			}
			if r.gone || r.seq < w.first {
				continue
			}
			if prev > 0 && r.seq != prev+1 {
				return hole(prev + 1)
			}
			prev = r.seq
			if err := give(message{seq: r.seq, subject: string(r.subject), body: r.body}); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return cancelled(ctx)
		}
		if i == w.x.cut {
			return nil
		}
	}
	return nil
}

func (w *walker) take(ctx context.Context, rec record) error {
	w.last = rec.seq
	if rec.seq == w.x.cp.Seq && rec.hash != w.x.cp.Hash {
		return fault.New(fault.LogDamaged, "sequence %d is not the commit that was made durable there", rec.seq).
			WithReason(damageForeign).With("seq", rec.seq)
	}
	if rec.ok && rec.agg == event.LogAggregate() {
		for _, e := range rec.commit.Events {
			if p, is := e.(event.LogPruned); is {
				w.pruned = max(w.pruned, p.FirstSeq)
			}
		}
	}
	if _, _, err := w.check.add(rec); err != nil {
		return err
	}
	return ctx.Err()
}

// end looks at where the log begins and ends, when all of it was read.
func (w *walker) end() error {
	if w.last > 0 && w.first > max(w.pruned, 1) {
		return hole(1)
	}
	if w.last < w.x.durable && !w.x.mayLose(w.last) {
		return fault.New(fault.LogDamaged, "the log ends at sequence %d, but sequence %d was made durable", w.last, w.x.durable).
			WithReason(damageTail).With("seq", w.last+1)
	}
	return nil
}
