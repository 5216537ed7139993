package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Span says which part of a history a copy holds, and of which.
type Span struct {
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
	// Hash is of the commit at Last.
	Hash string `json:"last_hash"`
	// Digest is a SHA-256 over the hashes of all commits in order. The chains alone do not
	// cover the newest commit of each record.
	Digest string `json:"digest"`
	Epoch  string `json:"epoch"`
}

// Export gives the stored body of every commit, in order, from the log's first to the newest
// one acknowledged when it begins, once that is on the disk; what is written meanwhile is not
// in it. Begin hears first how far it goes. Chains are checked on the way. Errors: fault
// log_damaged, cancelled, shutting_down as soon as the log closes, unavailable with reason pruned
// when a prune overtook it, those of begin and fn.
func (l *Log) Export(ctx context.Context, begin func(first, last uint64) error, fn func(body []byte) error) error {
	if l.closed.Load() {
		return shuttingDown()
	}
	if bad := l.chain.list(); len(bad) > 0 {
		return bad[0].fault()
	}
	ctx, done := l.reading(ctx)
	defer done()
	first := l.first.Load()
	last, err := l.horizon(ctx)
	if err != nil {
		return err
	}
	if err := begin(first, last); err != nil {
		return err
	}
	check := NewCheck(first)
	return l.feed(ctx, first, last, func(m message) error {
		if err := l.mayRead(ctx); err != nil {
			return err
		}
		if err := check.add(m); err != nil {
			return err
		}
		return fn(m.body)
	})
}

// horizon is the newest commit applied, once no power cut can take it. In durability process
// that takes about a second.
func (l *Log) horizon(ctx context.Context) (uint64, error) {
	last, _ := l.applied.read()
	if l.opts.ReadOnly {
		return last, nil
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for l.synced.Load() < last {
		select {
		case <-tick.C:
		case <-l.failed:
			return 0, l.Err()
		case <-l.stop:
			return 0, shuttingDown()
		case <-ctx.Done():
			return 0, cancelled(ctx)
		}
	}
	return last, nil
}

// Check verifies a copy of a log, body by body: that each is a commit, that the sequence has no
// hole (by their order), and that every chain holds. It uses no log.
type Check struct {
	chain  *chain
	span   Span
	next   uint64
	digest hash.Hash
}

// NewCheck begins at the copy's first sequence.
func NewCheck(first uint64) *Check {
	c := &Check{chain: newChain(nil), span: Span{First: first}, next: first, digest: sha256.New()}
	c.chain.pruned = first > 1
	return c
}

// Add takes the next body and gives the name of the record it belongs to. Errors: fault
// log_damaged.
func (c *Check) Add(body []byte) (event.Aggregate, error) {
	commit, err := event.Decode(body)
	if err != nil {
		return event.Aggregate{}, fault.Wrap(err, fault.LogDamaged, "sequence %d of the copy is not a commit", c.next).WithReason(damageUnreadable)
	}
	return commit.Aggregate, c.add(message{seq: c.next, subject: subjectOf(commit.Aggregate), body: body})
}

func (c *Check) add(m message) error {
	r, err := readRecord(m)
	if err != nil {
		return err
	}
	if slices.Contains(m.body, '\n') {
		return fault.New(fault.LogDamaged, "sequence %d is not in the form of a commit", m.seq).WithReason(damageUnreadable)
	}
	_, v, err := c.chain.add(r)
	if err != nil {
		return err
	}
	if v == broke || v == closed {
		return c.chain.damage(r.agg).fault()
	}
	if r.agg == event.LogAggregate() {
		for _, e := range r.commit.Events {
			if epoch, ok := epochOf(e); ok {
				c.span.Epoch = epoch
			}
		}
	}
	_, _ = io.WriteString(c.digest, r.hash)
	c.span.Last, c.span.Hash, c.next = r.seq, r.hash, r.seq+1
	return nil
}

// epochOf is the history that an event of the log's own record names.
func epochOf(e event.Event) (string, bool) {
	switch e := e.(type) {
	case event.LogCreated:
		return e.Epoch, true
	case event.LogTailLost:
		return e.Epoch, true
	case event.LogRestored:
		return e.Epoch, true
	case event.LogPruned:
		return e.Epoch, true
	default: // names none
		return "", false
	}
}

// End tells what was checked. Errors: fault log_damaged where a record whose beginning is
// missing did not get a state.
func (c *Check) End() (Span, error) {
	if c.span.Last == 0 || c.span.Epoch == "" {
		return Span{}, fault.New(fault.LogDamaged, "the copy does not say which history it is of")
	}
	if bad := c.chain.settle(); len(bad) > 0 {
		return Span{}, bad[0].fault()
	}
	c.span.Digest = hex.EncodeToString(c.digest.Sum(nil))
	return c.span, nil
}

// String is the span for people.
func (s Span) String() string { return fmt.Sprintf("commits %d to %d", s.First, s.Last) }
