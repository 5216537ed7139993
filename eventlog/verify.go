package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"webcodex/internal/fault"
)

// VerifyReport is what Verify found.
type VerifyReport struct {
	Blocks  int           `json:"blocks"`  // compared with the ledger
	Bytes   int64         `json:"bytes"`   // of them
	Unknown int           `json:"unknown"` // sealed blocks that the ledger lacks; their records were read
	Commits uint64        `json:"commits"` // whose chain was followed
	Damaged []BlockDamage `json:"damaged"`
	Records []Damage      `json:"damaged_records"`
	// EndUnknown: what is kept beside the log could not tell how far it went after a stop that
	// was not clean, so commits missing from its end are told up to the checkpoint alone.
	EndUnknown bool `json:"end_unknown,omitempty"`
}

// OK tells that nothing is damaged.
func (r VerifyReport) OK() bool { return len(r.Damaged) == 0 && len(r.Records) == 0 }

// Verify compares every sealed block with the ledger, and then follows the chain of every
// commit. Damage is in the report, with every block named; where a block is damaged the
// commits are not read, because JetStream would cut the file. Errors: fault cancelled,
// shutting_down as soon as the log closes, unavailable.
func (l *Log) Verify(ctx context.Context) (VerifyReport, error) {
	r := VerifyReport{Damaged: []BlockDamage{}, Records: []Damage{}}
	if l.closed.Load() {
		return r, shuttingDown()
	}
	ctx, done := l.reading(ctx)
	defer done()
	first := l.first.Load()
	last, _ := l.applied.read()
	err := l.evidence.verify(ctx, last, &r)
	if l.evidence.noteAll(r.Damaged); len(r.Damaged) > 0 && !l.opts.ReadOnly {
		l.evidence.lookAtTail()
	}
	if err != nil || len(r.Damaged) > 0 {
		return r, err
	}
	check := newChain(nil)
	check.pruned = first > 1
	err = l.records(ctx, first, last, "", func(rec record) error {
		r.Commits++
		if _, _, err := check.add(rec); err != nil {
			return err
		}
		return l.mayRead(ctx)
	})
	check.settle()
	r.Records = append(r.Records, check.list()...)
	return r, r.take(ctx, err)
}

// take puts damage that ended the reading of the commits into the report.
func (r *VerifyReport) take(ctx context.Context, err error) error {
	switch f := fault.As(err); {
	case err == nil:
	case ctx.Err() != nil:
		return cancelled(ctx)
	case f.Kind == fault.ShuttingDown:
		return err
	case f.Kind == fault.LogDamaged:
		d := BlockDamage{Reason: f.Reason}
		d.FirstSeq, _ = f.Details["seq"].(uint64)
		r.Damaged = append(r.Damaged, d)
	default:
		return err
	}
	return nil
}

func (e *evidence) verify(ctx context.Context, last uint64, r *VerifyReport) error {
	index, err := blockIndexes(e.l.dir.blocks())
	if err != nil || len(index) == 0 {
		return err
	}
	var todo []int
	for _, s := range e.list() {
		todo = append(todo, s.block)
		r.Blocks++
		r.Bytes += s.size
	}
	for _, i := range index {
		if _, known := e.sealed(i); !known && i < slices.Max(index) {
			todo = append(todo, i)
			r.Unknown++
		}
	}
	found := make(chan BlockDamage, len(todo))
	err = eachBlock(ctx, todo, func(i int) error {
		d, err := e.verifyBlock(i)
		if d != nil {
			found <- *d
		}
		return err
	})
	close(found)
	for d := range found {
		r.Damaged = append(r.Damaged, d)
	}
	tail, terr := e.tailDamage(last)
	if tail != nil {
		r.Damaged = append(r.Damaged, *tail)
	}
	slices.SortFunc(r.Damaged, byBlock)
	if err == nil && terr != nil {
		err = fault.Wrap(terr, fault.Unavailable, "the log's newest block cannot be read")
	}
	return err
}

func (e *evidence) verifyBlock(i int) (*BlockDamage, error) {
	if s, known := e.sealed(i); known {
		return e.hash(s, nil)
	}
	f, err := readFacts(e.file(i), i, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !e.exists(i):
		return nil, nil
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "block %d of the log cannot be read", i)
	case f.bad():
		return &BlockDamage{Block: i, Reason: damageFlipped, FirstSeq: f.last + 1}, nil
	}
	return nil, nil
}
