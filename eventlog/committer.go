package eventlog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// committer writes: it publishes drafts in a pipelined window on a connection of its own,
// takes the acknowledgements, makes groups of them durable, moves the horizon, feeds the
// folds and only then releases the replies, all in the log's order.
//
// Publication is at once and nothing waits on a timer (SES-45): in durability group a sync
// begins as soon as the one before has ended, over what is acknowledged by then; what comes
// later is in the next one and delays nobody.
type committer struct {
	l      *Log
	nc     *nats.Conn
	acks   chan *nats.Msg
	inbox  string // acknowledgements arrive at inbox + token
	blocks *blocks
	faults Faults
	syncs  chan struct{} // orders the syncer to sync, in durability group
	synced chan error    // its answers
	wake   chan struct{} // an offered draft was settled without an acknowledgement

	// mu is held for a step, never while the disk or a caller is waited for.
	mu      sync.Mutex
	line    []*entry // published, oldest first; tokens are contiguous
	syncing int      // so many of the oldest are what the running sync covers
	pending int      // bytes of the others
	unseen  int      // bytes finished since the last look for a new block, in durability process
	busy    map[event.Aggregate]struct{}
	next    uint64 // token of the next entry
	last    uint64 // sequence of the last commit released
	due     bool   // an attempt was expired and waits for a look into the log
	msg     nats.Msg
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
		acks: make(chan *nats.Msg, 4*window), busy: map[event.Aggregate]struct{}{},
		syncs: make(chan struct{}, 1), synced: make(chan error, 1), wake: make(chan struct{}, 1),
		msg: nats.Msg{Header: nats.Header{expectHeader: make([]string, 1)}}}
	if l.opts.Faults != nil {
		c.faults = *l.opts.Faults
	}
	if f := c.faults.Fdatasync; f != nil {
		b.fdatasync = f
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
	defer close(c.syncs)
	go c.syncer()
	var acks sync.WaitGroup
	defer acks.Wait()
	acks.Go(c.listen)
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		if c.l.Err() != nil {
			c.drown()
			return
		}
		submit := c.l.submit
		if c.full() {
			submit = nil
		}
		var step func()
		select {
		case e := <-submit:
			step = func() { c.accept(e) }
		case err := <-c.synced:
			step = func() { c.durable(err) }
		case <-c.wake:
			step = func() {}
		case <-tick.C:
			step = c.overdue
		case <-c.l.failed:
			continue
		case <-c.l.stop:
			return
		}
		c.do(step)
	}
}

// listen takes the acknowledgements; a goroutine of its own, since waiting for one thing is
// cheaper than for six.
func (c *committer) listen() {
	for {
		select {
		case m := <-c.acks:
			c.do(func() { c.take(m) })
		case <-c.l.stop:
			return
		}
	}
}

// do takes one step and hands out what it settled.
func (c *committer) do(step func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	step()
	if c.due {
		c.overdue()
	}
	c.release()
}

// full tells that a draft has to wait: the window is, or what the next sync will cover.
func (c *committer) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fullLocked()
}

func (c *committer) fullLocked() bool { return len(c.line) >= window || c.pending >= c.maxGroup() }

func (c *committer) maxGroup() int {
	if c.faults.GroupBytes > 0 {
		return c.faults.GroupBytes
	}
	return maxGroup
}

// offer publishes from the caller's own goroutine when the committer has nothing else to do,
// which saves the caller's wait for another goroutine to wake. False: hand it over.
func (c *committer) offer(e *entry) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	if len(c.l.submit) > 0 || c.fullLocked() || c.l.Err() != nil {
		return false
	}
	c.accept(e)
	if c.due { // nothing may be published before the look at it
		c.overdue()
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return true
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
	c.pending += len(e.body)
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
	c.msg.Subject, c.msg.Reply, c.msg.Data = e.subject, c.inbox+strconv.FormatUint(e.token, 10), e.body
	c.msg.Header[expectHeader][0] = strconv.FormatUint(e.expect.Seq, 10)
	if err := c.nc.PublishMsg(&c.msg); err != nil {
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
//
// The draft was made on the head that the folds have seen, and nothing else of its record is
// on the way. A stream that ends it elsewhere has a commit that no fold of this life will see,
// or lacks one that they saw: deciding again on the same state would go on for ever.
func (c *committer) refused(e *entry, a ack) {
	mine, other := c.look(e)
	if mine || c.l.Err() != nil {
		return
	}
	wrongLast := a.code == codeWrongLastSeq || a.code == codeWrongLastSeqConstant
	if wrongLast && other {
		c.foreign(fmt.Errorf("%s has commits after sequence %d", e.subject, e.expect.Seq))
		return
	}
	e.settled = true
	switch {
	case wrongLast:
		c.l.evidence.hole(e.expect.Seq)
		e.err = Damage{Aggregate: e.agg.String(), Seq: e.expect.Seq, Reason: damageHole}.fault()
	case a.code == codeStoreFailed:
		e.err = storageFull()
	default:
		e.err = fault.Wrap(fmt.Errorf("code %d: %s", a.code, a.text), fault.Internal, "the log refused the commit; nothing was written")
	}
}

// foreign ends writing: one process is the law, and its folds have not seen what somebody
// else wrote. The next start reads it like any other commit.
func (c *committer) foreign(cause error) {
	c.l.fail(cause, "foreign_commit", "somebody else writes to it")
}

// overdue looks for entries whose acknowledgement did not come.
func (c *committer) overdue() {
	c.due = false
	for _, e := range c.line {
		if e.settled || time.Since(e.sent) < ackTimeout {
			continue
		}
		if mine, _ := c.look(e); mine || c.l.Err() != nil {
			continue
		}
		if e.attempts >= maxAttempts {
			c.l.fail(errSilent, "no_acknowledgement", "a commit was not acknowledged and is not in the log")
			return
		}
		c.publish(e)
	}
}

// hurry makes the oldest open entry due when a later one is acknowledged: its own answer is
// lost.
func (c *committer) hurry() {
	first := slices.IndexFunc(c.line, func(e *entry) bool { return !e.settled })
	if first < 0 || c.line[first].sent.IsZero() {
		return
	}
	for _, e := range c.line[first+1:] {
		if e.settled && e.err == nil {
			c.expire(c.line[first])
			return
		}
	}
}

// drown answers everybody after writing has ended, until the log is closed.
func (c *committer) drown() {
	c.mu.Lock()
	for _, e := range c.line {
		e.done <- c.l.failure
	}
	c.line = nil
	c.mu.Unlock()
	for {
		select {
		case e := <-c.l.submit: // nothing of it was published
			e.done <- c.l.ended()
		case <-c.l.stop:
			return
		}
	}
}

func hook(f func(uint64) error, seq uint64) error {
	if f == nil {
		return nil
	}
	return f(seq)
}
