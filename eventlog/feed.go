package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
//
// JetStream begins silently at the first commit it has when from lies before, and waits
// silently for what is to come when it lies behind the end. Neither is ever opened: fault
// log_damaged with reason before_the_start or beyond_the_end.
func (l *Log) feed(ctx context.Context, from, last uint64, fn func(message) error) error {
	if from > last {
		return nil
	}
	err := l.feedAll(ctx, from, last, fn)
	if err != nil && ctx.Err() != nil {
		return cancelled(ctx)
	}
	return err
}

func (l *Log) feedAll(ctx context.Context, from, last uint64, fn func(message) error) error {
	if err := l.feedable(ctx, from, last); err != nil {
		return err
	}
	if err := l.evidence.before(ctx, from, last); err != nil {
		return err
	}
	nc, err := l.auth.connect(grant{"feed", accountLog, everything()}, nats.SyncQueueLen(feedQueue))
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the log cannot be read")
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, nc.Close)() // wakes what waits on it
	js, err := nc.JetStream(nats.MaxWait(readTimeout))
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the log cannot be read")
	}
	for next := from; next <= last; {
		began := next
		next, err = l.feedFrom(ctx, js, next, last, fn)
		var broke *brokenFeed
		switch {
		case err == nil:
		case errors.As(err, &broke) && next > began:
			// Folds that wait long for their disk can outlast a consumer: the next one goes on.
			l.log.Debug("log: a feed broke and is opened again", slog.Uint64("seq", next), slog.Any("error", broke.cause))
		case broke != nil:
			return fault.Wrap(broke.cause, fault.Internal, "the log cannot be read")
		default:
			return err
		}
	}
	return nil
}

var errSkipped = errors.New("the feed left a commit out that the stream has")

// brokenFeed is an error of the consumer, not of the log.
type brokenFeed struct{ cause error }

func (b *brokenFeed) Error() string { return "feed: " + b.cause.Error() }

// feedFrom feeds from one consumer, and gives the sequence that comes next.
func (l *Log) feedFrom(ctx context.Context, js nats.JetStreamContext, from, last uint64, fn func(message) error) (next uint64, err error) {
	sub, err := js.SubscribeSync("", nats.BindStream(streamName), nats.OrderedConsumer(),
		nats.StartSequence(from), nats.InactiveThreshold(feedInactivity))
	if err != nil {
		return from, &brokenFeed{err}
	}
	defer func() { _ = sub.Unsubscribe() }() // deletes the consumer
	// A fold that waits for its disk makes the feed wait: the server's flow control bounds what
	// is on the way, and the client's own limits would drop it instead.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return from, &brokenFeed{err}
	}
	for next = from; next <= last; next++ {
		if ctx.Err() != nil {
			return next, cancelled(ctx)
		}
		m, err := l.nextMessage(ctx, sub, next)
		if err != nil {
			return next, err
		}
		seq, ok := streamSeq(m.Reply)
		if !ok || seq != next {
			if _, err := l.get(ctx, next); !errors.Is(err, jetstream.ErrMsgNotFound) {
				return next, &brokenFeed{fmt.Errorf("sequence %d came for %d: %w", seq, next, errors.Join(err, errSkipped))}
			}
			return next, l.missing(next)
		}
		if err := fn(message{seq: seq, subject: m.Subject, body: m.Data}); err != nil {
			return next, err
		}
	}
	return next, nil
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
			return nil, &brokenFeed{err}
		}
		if _, err := l.get(ctx, seq); errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil, l.missing(seq)
		}
		if time.Since(start) > feedStall {
			return nil, fault.New(fault.LogDamaged, "the log stopped giving commits at sequence %d", seq).WithReason("feed_stalled")
		}
	}
}

// get reads one stored message by its sequence.
func (l *Log) get(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	if err := l.evidence.before(ctx, seq, seq); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return l.stream.GetMsg(ctx, seq)
}

// feedable compares what is to be fed with what the stream has.
func (l *Log) feedable(ctx context.Context, from, last uint64) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	stream, err := l.js.Stream(ctx, streamName)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the log cannot be read")
	}
	switch s := stream.CachedInfo().State; {
	case s.Msgs == 0 || last > s.LastSeq:
		return fault.New(fault.LogDamaged, "the log ends before sequence %d", last).WithReason(ResetBeyondEnd)
	case from < s.FirstSeq && from >= l.opened.first:
		return prunedMeanwhile(from)
	case from < s.FirstSeq:
		return fault.New(fault.LogDamaged, "the log begins after sequence %d", from).WithReason(ResetBeforeStart)
	}
	return nil
}

// missing is why a sequence cannot be had that the stream does not find: a prune took it since
// the reader began, or it is damage.
func (l *Log) missing(seq uint64) error {
	if seq < l.first.Load() {
		return prunedMeanwhile(seq)
	}
	l.evidence.hole(seq)
	return hole(seq)
}

func prunedMeanwhile(seq uint64) error {
	return fault.New(fault.Unavailable, "sequence %d left the log while it was read", seq).
		WithReason("pruned").WithNext("read again; the log begins later now")
}

// cancelled is why a reader's context ended: its caller's, or the log that closes.
func cancelled(ctx context.Context) error {
	if cause := context.Cause(ctx); fault.KindOf(cause) == fault.ShuttingDown {
		return cause
	}
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

// catchUp folds [from, last] at start.
func (l *Log) catchUp(ctx context.Context, from, last uint64) error {
	err := l.records(ctx, from, last, "", func(r record) error {
		a, v, err := l.chain.add(r)
		if err != nil {
			return err
		}
		switch v {
		case given:
			l.apply(a)
		case broke:
			l.broken(r.agg)
		case withheld, closed: // not for the folds
		}
		l.applied.move(r.seq, r.hash)
		l.progress(r.seq, last)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	return nil
}

// progress tells of a long start now and then.
func (l *Log) progress(done, last uint64) {
	if l.opts.Progress != nil && (done%progressStep == 0 || done == last && last > progressStep) {
		l.opts.Progress(done, last)
	}
}

// broken tells the base of an aggregate that the chain has closed.
func (l *Log) broken(a event.Aggregate) {
	if l.opts.Base != nil {
		l.opts.Base.Damage(a, l.chain.damage(a))
	}
}

// apply feeds one commit to the base and to every fold.
func (l *Log) apply(a Applied) {
	if a.Commit.Aggregate.Domain == event.DomainLog {
		l.own(a.Commit.Events)
	}
	if l.opts.Base != nil {
		l.opts.Base.Apply(a)
	}
	for _, f := range l.opts.Folds {
		f.Apply(a.Seq, a.Hash, a.Commit)
	}
}

// own folds what the log says of itself.
func (l *Log) own(events []event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case event.LogCreated:
			l.epoch = e.Epoch
		case event.LogTailLost:
			l.epoch = e.Epoch
		case event.LogRestored:
			l.epoch = e.Epoch
		case event.LogPruned:
			l.epoch = e.Epoch
			l.pruned = max(l.pruned, e.FirstSeq)
		default: // of other domains
		}
	}
}
