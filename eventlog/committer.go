package eventlog

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// committer is the one goroutine that writes: it publishes drafts in a pipelined window on
// a connection of its own, takes the acknowledgements, moves the horizon, feeds the folds
// and only then releases the replies, all in the log's order.
type committer struct {
	l      *Log
	nc     *nats.Conn
	acks   chan *nats.Msg
	inbox  string // acknowledgements arrive at inbox + token
	blocks *blocks
	faults Faults

	line []*entry // published, oldest first; tokens are contiguous
	busy map[event.Aggregate]struct{}
	next uint64 // token of the next entry
	last uint64 // sequence of the last commit released
	due  bool   // an attempt was expired and waits for a look into the log
}

func newCommitter(l *Log, last uint64) (*committer, error) {
	b, err := newBlocks(l.dir.blocks())
	if err != nil {
		return nil, err
	}
	nc, err := l.auth.connect(grant{"committer", accountLog, everything()})
	if err != nil {
		return nil, err
	}
	c := &committer{l: l, nc: nc, blocks: b, last: last, inbox: nats.NewInbox() + ".",
		acks: make(chan *nats.Msg, 4*window), busy: map[event.Aggregate]struct{}{}}
	if l.opts.Faults != nil {
		c.faults = *l.opts.Faults
	}
	if _, err := nc.ChanSubscribe(c.inbox+"*", c.acks); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// run ends when stop is closed; by then no Append is in flight.
func (c *committer) run() {
	defer c.l.loops.Done()
	defer c.nc.Close()
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		if c.l.Err() != nil {
			c.drown()
			return
		}
		submit := c.l.submit
		if len(c.line) >= window {
			submit = nil
		}
		select {
		case e := <-submit:
			c.accept(e)
		case m := <-c.acks:
			c.take(m)
		case <-tick.C:
			c.overdue()
		case <-c.l.failed:
			continue
		case <-c.l.stop:
			return
		}
		if c.due {
			c.overdue()
		}
		c.release()
	}
}

// accept publishes one draft or refuses it without a trace.
func (c *committer) accept(e *entry) {
	if !e.state.CompareAndSwap(queued, published) {
		return
	}
	head, err := c.l.Head(e.agg)
	if _, flying := c.busy[e.agg]; flying || err == nil && head != e.expect {
		err = ErrConflict
	}
	if err != nil {
		e.done <- err
		return
	}
	e.token = c.next
	c.next++
	c.busy[e.agg] = struct{}{}
	c.line = append(c.line, e)
	c.publish(e)
}

// publish sends an entry, the first time or again: the expected sequence makes a second
// publication harmless.
func (c *committer) publish(e *entry) {
	e.attempts++
	e.sent, e.deaf = time.Now(), false
	at := c.last + e.token - c.line[0].token + 1
	if err := hook(c.faults.BeforePublish, at); err != nil {
		c.expire(e)
		return
	}
	m := &nats.Msg{Subject: e.subject, Reply: c.inbox + strconv.FormatUint(e.token, 10), Data: e.body,
		Header: nats.Header{expectHeader: {strconv.FormatUint(e.expect.Seq, 10)}}}
	if err := c.nc.PublishMsg(m); err != nil {
		c.expire(e)
		return
	}
	if err := hook(c.faults.AfterPublish, at); err != nil {
		e.deaf = true
		c.expire(e)
	}
}

// expectHeader carries the sequence of the aggregate's last commit: the fence against a
// second writer, also in a cluster.
const expectHeader = "Nats-Expected-Last-Subject-Sequence"

// expire makes an attempt due for a look into the log at once.
func (c *committer) expire(e *entry) { e.sent, c.due = time.Time{}, true }

// take settles an entry by its acknowledgement.
func (c *committer) take(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, c.inbox), 10, 64)
	if err != nil || len(c.line) == 0 || token < c.line[0].token || token >= c.next {
		return // of an attempt that is settled already
	}
	e := c.line[token-c.line[0].token]
	if e.settled || e.deaf {
		return
	}
	a, err := parseAck(m)
	if err != nil {
		return // the time-out looks into the log
	}
	if a.code != 0 {
		c.refused(e, a)
		return
	}
	if hook(c.faults.AfterAck, a.seq) != nil {
		c.expire(e)
		return
	}
	e.seq, e.settled = a.seq, true
}

// refused settles an entry the stream did not take. Of two attempts it may be the second
// that was refused and the first that stood, so the log is read before anything is said.
func (c *committer) refused(e *entry, a ack) {
	if c.look(e) || c.l.Err() != nil {
		return
	}
	e.settled = true
	switch a.code {
	case codeWrongLastSeq, codeWrongLastSeqConstant:
		e.err = ErrConflict
	case codeStoreFailed:
		e.err = storageFull()
	default:
		e.err = fault.Wrap(fmt.Errorf("code %d: %s", a.code, a.text), fault.Internal, "the log refused the commit; nothing was written")
	}
}

// overdue looks for entries whose acknowledgement did not come.
func (c *committer) overdue() {
	c.due = false
	for _, e := range c.line {
		if e.settled || time.Since(e.sent) < ackTimeout {
			continue
		}
		if c.look(e) || c.l.Err() != nil {
			continue
		}
		if e.attempts >= maxAttempts {
			c.l.fail(errSilent, "no_acknowledgement", "a commit was not acknowledged and is not in the log")
			return
		}
		c.publish(e)
	}
}

// release hands out what is settled, oldest first. A commit behind an unsettled one waits,
// since folds see the log's order.
func (c *committer) release() {
	n := 0
	for n < len(c.line) && c.line[n].settled {
		n++
	}
	if n == 0 || c.l.Err() != nil {
		c.hurry()
		return
	}
	group := c.line[:n]
	if !c.sync(group) {
		return
	}
	for _, e := range group {
		c.finish(e)
	}
	c.line = c.line[n:]
	if len(c.line) == 0 {
		c.line = nil
	}
	c.hurry()
}

// hurry makes the oldest entry due when a later one is acknowledged: its own answer is lost.
func (c *committer) hurry() {
	if len(c.line) < 2 || c.line[0].settled || c.line[0].sent.IsZero() {
		return
	}
	for _, e := range c.line[1:] {
		if e.settled && e.err == nil {
			c.expire(c.line[0])
			return
		}
	}
}

// sync makes a group durable as far as JetStream has not, and moves the horizon.
func (c *committer) sync(group []*entry) bool {
	top := uint64(0)
	for _, e := range group {
		if e.err == nil {
			top = e.seq
		}
	}
	if top == 0 {
		return true
	}
	if c.l.opts.Durability == Always {
		if err := c.blocks.syncDir(); err != nil {
			c.l.fail(err, "sync_failed", "the disk did not confirm a write")
			return false
		}
	}
	if err := hook(c.faults.AfterSync, top); err != nil {
		c.l.fail(err, "sync_failed", "the disk did not confirm a write")
		return false
	}
	if c.l.opts.Durability == Always {
		c.l.synced.Store(top)
	}
	return true
}

// finish applies one settled entry and releases its caller.
func (c *committer) finish(e *entry) {
	delete(c.busy, e.agg)
	if e.err != nil {
		e.done <- e.err
		return
	}
	if e.seq != c.last+1 {
		c.l.fail(fmt.Errorf("sequence %d after %d", e.seq, c.last), "foreign_commit", "somebody else writes to it")
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

// drown answers everybody after writing has ended, until the log is closed.
func (c *committer) drown() {
	for _, e := range c.line {
		e.done <- c.l.failure
	}
	c.line = nil
	for {
		select {
		case e := <-c.l.submit:
			e.done <- c.l.failure
		case <-c.l.stop:
			return
		}
	}
}

// committed moves the chain and feeds the folds.
func (l *Log) committed(e *entry) {
	a := l.chain.moved(e.agg, e.seq, e.hash, e.commit, e.commit.Version == 1)
	l.space.add(recordSize(e))
	l.apply(a)
	l.applied.move(e.seq, e.hash)
}

// recordSize is what JetStream writes for an entry: lengths, sequence, time, checksum, the
// subject, the header block and the body.
func recordSize(e *entry) int64 {
	header := len("NATS/1.0\r\n") + len(expectHeader) + len(": \r\n\r\n") + len(strconv.FormatUint(e.expect.Seq, 10))
	return int64(22 + 4 + 8 + len(e.subject) + header + len(e.body))
}

func hook(f func(uint64) error, seq uint64) error {
	if f == nil {
		return nil
	}
	return f(seq)
}
