package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// message is one stored message as the feed gives it.
type message struct {
	seq     uint64
	subject string
	body    []byte
}

// feed gives every message of [from, last] in order, over one unfiltered consumer on a
// connection of its own. JetStream skips a record it cannot read without a word: a missing
// sequence is damage and ends the feed before anything behind the hole is seen.
func (l *Log) feed(ctx context.Context, from, last uint64, fn func(message) error) error {
	if from > last {
		return nil
	}
	nc, err := l.auth.connect(grant{"feed", accountLog, everything()})
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the log cannot be read")
	}
	defer nc.Close()
	js, err := nc.JetStream(nats.MaxWait(readTimeout))
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the log cannot be read")
	}
	sub, err := js.SubscribeSync("", nats.BindStream(streamName), nats.OrderedConsumer(),
		nats.StartSequence(from), nats.InactiveThreshold(feedInactivity))
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the log cannot be read")
	}
	defer func() { _ = sub.Unsubscribe() }() // deletes the consumer
	for next := from; next <= last; next++ {
		if ctx.Err() != nil {
			return cancelled(ctx)
		}
		m, err := l.nextMessage(ctx, sub, next)
		if err != nil {
			return err
		}
		seq, ok := streamSeq(m.Reply)
		if !ok || seq != next {
			return hole(next)
		}
		if err := fn(message{seq: seq, subject: m.Subject, body: m.Data}); err != nil {
			return err
		}
	}
	return nil
}

// nextMessage waits for the feed and asks for the sequence itself when it is silent.
func (l *Log) nextMessage(ctx context.Context, sub *nats.Subscription, seq uint64) (*nats.Msg, error) {
	for start := time.Now(); ; {
		m, err := sub.NextMsg(feedPatience)
		if err == nil {
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, cancelled(ctx)
		}
		if !errors.Is(err, nats.ErrTimeout) {
			return nil, fault.Wrap(err, fault.Internal, "the log cannot be read")
		}
		if _, err := l.get(ctx, seq); errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, hole(seq)
		}
		if time.Since(start) > feedStall {
			return nil, fault.New(fault.LogDamaged, "the log stopped giving commits at sequence %d", seq).WithReason("feed_stalled")
		}
	}
}

// get reads one stored message by its sequence.
func (l *Log) get(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	s, err := l.js.Stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	return s.GetMsg(ctx, seq)
}

func cancelled(ctx context.Context) error {
	return fault.Wrap(ctx.Err(), fault.Cancelled, "reading the log was cancelled")
}

func hole(seq uint64) error {
	return fault.New(fault.LogDamaged, "the log has a hole at sequence %d: a stored commit cannot be read", seq).
		WithReason("hole").With("seq", seq).
		WithNext("keep the data directory as it is and restore it from a backup")
}

// streamSeq reads the stream sequence from a delivery's reply subject,
// $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>.
func streamSeq(reply string) (uint64, bool) {
	for range 5 {
		_, rest, ok := strings.Cut(reply, ".")
		if !ok {
			return 0, false
		}
		reply = rest
	}
	text, _, _ := strings.Cut(reply, ".")
	seq, err := strconv.ParseUint(text, 10, 64)
	return seq, err == nil
}

// catchUp folds the whole log at start and compares it with the checkpoint.
func (l *Log) catchUp(ctx context.Context, last uint64, cp checkpoint) error {
	err := l.records(ctx, last, "", func(r record) error {
		if r.seq == cp.Seq && r.hash != cp.Hash {
			return fault.New(fault.LogDamaged, "sequence %d is not the commit that was made durable there", r.seq).
				WithReason("foreign_log").WithNext("restore the data directory from a backup")
		}
		if l.chain.add(r.agg, r.seq, r.hash, r.commit, r.ok) {
			l.apply(r.seq, r.hash, r.commit)
		}
		l.applied.move(r.seq, r.hash)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return nil
}

// apply feeds one commit to every fold.
func (l *Log) apply(seq uint64, hash string, c event.Commit) {
	if c.Aggregate.Domain == event.DomainLog {
		l.mu.Lock()
		for _, e := range c.Events {
			switch e := e.(type) {
			case event.LogCreated:
				l.epoch = e.Epoch
			case event.LogTailLost:
				l.epoch = e.Epoch
			case event.LogRestored:
				l.epoch = e.Epoch
			default: // of other domains
			}
		}
		l.mu.Unlock()
	}
	for _, f := range l.opts.Folds {
		f.Apply(seq, hash, c)
	}
}
