package eventlog

import (
	"fmt"
	"slices"
	"strconv"

	"webcodex/internal/fault"
)

// release hands out what is settled, oldest first. A commit behind an unsettled one waits,
// since folds see the log's order. In durability group what is settled first goes through a
// sync of its own group, one at a time.
func (c *committer) release() {
	if c.l.Err() != nil {
		return
	}
	c.hurry()
	if c.syncing > 0 {
		return
	}
	n, top := c.group()
	if n == 0 {
		return
	}
	if top > 0 && c.l.opts.Durability == Group {
		c.syncing = n
		c.pending -= bytesOf(c.line[:n])
		c.syncs <- struct{}{}
		return
	}
	if top > 0 && !c.syncDir(n) {
		return
	}
	c.finish(n, top)
}

// syncDir makes the entry of a new block durable before the first n entries are told. The
// blocks themselves JetStream has synced (always), or nobody asks for it yet (process); then
// the look, which costs a system call, is not worth it for each commit.
func (c *committer) syncDir(n int) bool {
	if c.l.opts.Durability == Process {
		if c.unseen += bytesOf(c.line[:n]); c.unseen < lookBytes {
			return true
		}
		c.unseen = 0
	}
	if err := c.blocks.syncDir(); err != nil {
		c.syncFailed(err)
		return false
	}
	if c.l.opts.Durability == Always {
		c.l.block.Store(int64(c.blocks.last))
	}
	return true
}

// group is the settled beginning of the line: its length and its highest sequence, 0 without
// a commit. In durability group it is bounded, since everybody in it waits for all of it.
func (c *committer) group() (n int, top uint64) {
	bytes := 0
	for n < len(c.line) && c.line[n].settled {
		e := c.line[n]
		if c.l.opts.Durability == Group && n > 0 && bytes+len(e.body) > c.maxGroup() {
			break
		}
		bytes += len(e.body)
		if e.err == nil {
			top = e.seq
		}
		n++
	}
	return n, top
}

// syncer syncs when it is told to, so that publications go on meanwhile: what they write may
// be on the disk earlier than it counts as such.
func (c *committer) syncer() {
	defer c.blocks.close()
	for range c.syncs {
		c.synced <- c.blocks.sync()
	}
}

// durable releases the group that the sync covered.
func (c *committer) durable(err error) {
	if c.l.Err() != nil {
		return
	}
	if err != nil {
		c.syncFailed(err)
		return
	}
	c.l.block.Store(int64(c.blocks.last))
	top := uint64(0)
	for _, e := range c.line[:c.syncing] {
		if e.err == nil {
			top = e.seq
		}
	}
	c.finish(c.syncing, top)
}

func (c *committer) syncFailed(err error) {
	c.l.fail(err, "sync_failed", "the disk did not confirm a write")
}

// finish moves the horizon over the first n entries, applies them and releases their callers.
func (c *committer) finish(n int, top uint64) {
	if top > 0 {
		if err := hook(c.faults.AfterSync, top); err != nil {
			c.syncFailed(err)
			return
		}
		if c.l.opts.Durability != Process {
			c.l.synced.Store(top)
		}
	}
	if c.syncing == 0 {
		c.pending -= bytesOf(c.line[:n])
	}
	c.syncing = 0
	for _, e := range c.line[:n] {
		c.settle(e)
	}
	c.line = slices.Delete(c.line, 0, n)
}

func bytesOf(line []*entry) (sum int) {
	for _, e := range line {
		sum += len(e.body)
	}
	return sum
}

// settle applies one entry and releases its caller.
func (c *committer) settle(e *entry) {
	delete(c.busy, e.agg)
	if e.err != nil {
		e.done <- e.err
		return
	}
	if e.seq != c.last+1 {
		c.foreign(fmt.Errorf("sequence %d after %d", e.seq, c.last))
		e.done <- c.l.Err()
		return
	}
	c.last = e.seq
	c.l.committed(e)
	err := hook(c.faults.AfterApply, e.seq)
	if err != nil {
		err = fault.Wrap(err, fault.Internal, "the commit stands, its reply was lost")
	}
	e.done <- err
}

// committed feeds the folds, then moves the chain.
func (l *Log) committed(e *entry) {
	a := l.chain.take(e.agg, e.seq, e.hash, e.commit, e.commit.Version == 1)
	l.space.add(recordSize(e))
	l.apply(a)
	l.chain.ends(a)
	l.applied.move(e.seq, e.hash)
}

// recordSize is what JetStream writes for an entry: lengths, sequence, time, checksum, the
// subject, the header block and the body.
func recordSize(e *entry) int64 {
	header := len("NATS/1.0\r\n") + len(expectHeader) + len(": \r\n\r\n") + len(strconv.FormatUint(e.expect.Seq, 10))
	return int64(22 + 4 + 8 + len(e.subject) + header + len(e.body))
}
