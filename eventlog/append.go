package eventlog

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// States of an entry: whoever moves it from queued decides.
const (
	queued int32 = iota
	published
	withdrawn
)

// entry is a draft on its way. After the hand-over only the committer touches it, but for
// state, which a cancelled caller may move from queued to withdrawn.
type entry struct {
	agg     event.Aggregate
	subject string
	expect  Head
	commit  event.Commit
	body    []byte
	hash    string
	state   atomic.Int32

	token    uint64
	attempts int
	sent     time.Time // of the last attempt
	deaf     bool      // a fault hook lost this attempt's acknowledgement
	seq      uint64    // where it stood
	settled  bool
	err      error
	done     chan error // buffered: the committer never waits for a caller
}

// Append implements Appender.
func (l *Log) Append(ctx context.Context, d Draft) (Receipt, error) {
	if l.opts.ReadOnly {
		return Receipt{}, fault.New(fault.Unavailable, "the log is open for reading only")
	}
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.closed.Load() {
		return Receipt{}, shuttingDown()
	}
	if err := l.ended(); err != nil {
		return Receipt{}, err
	}
	if !d.Reserve {
		if err := l.admit(); err != nil {
			return Receipt{}, err
		}
	}
	e, err := l.prepare(d)
	if err != nil {
		return Receipt{}, err
	}
	return l.send(ctx, e)
}

// prepare encodes in the caller's goroutine, so that the committer only moves bytes.
func (l *Log) prepare(d Draft) (*entry, error) {
	if d.ID == "" || !d.Aggregate.Valid() || len(d.Events) == 0 {
		return nil, fault.New(fault.Internal, "a draft needs a command id, a record and an event")
	}
	head, err := l.Head(d.Aggregate)
	if err != nil {
		return nil, err
	}
	if head != d.Expect {
		return nil, ErrConflict
	}
	// JetStream reads the aggregate's last commit to compare its sequence.
	if err := l.evidence.before(context.Background(), head.Seq, head.Seq); err != nil {
		return nil, err
	}
	c := event.Commit{Format: event.Format, ID: d.ID, Aggregate: d.Aggregate, Version: head.Version + 1,
		Prev: head.Hash, At: d.At.UTC().Truncate(time.Millisecond), Actor: d.Actor, Invocation: d.Invocation,
		Server: l.opts.Server, Events: d.Events}
	body, err := c.Encode()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "the commit could not be encoded")
	}
	if len(body) > event.MaxCommitBytes {
		return nil, fault.New(fault.InvalidArguments, "this would make a commit of %d bytes; %d are allowed", len(body), event.MaxCommitBytes)
	}
	if bytes.Contains(body, replaced) {
		// The encoder replaces invalid UTF-8; folds must see what a replay will give them.
		if c, err = event.Decode(body); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "the commit could not be encoded")
		}
	}
	return &entry{agg: d.Aggregate, subject: subjectOf(d.Aggregate), expect: d.Expect, commit: c, body: body,
		hash: event.Hash(body), done: make(chan error, 1)}, nil
}

// replaced is how encoding/json writes a byte that is not UTF-8.
var replaced = []byte(`\ufffd`)

func (l *Log) send(ctx context.Context, e *entry) (Receipt, error) {
	if ctx.Err() != nil {
		return Receipt{}, withdrawnBy(ctx)
	}
	if !l.writer.offer(e) {
		select {
		case l.submit <- e:
		case <-ctx.Done():
			return Receipt{}, withdrawnBy(ctx)
		}
	}
	var err error
	select {
	case err = <-e.done:
	case <-ctx.Done():
		if e.state.CompareAndSwap(queued, withdrawn) {
			return Receipt{}, withdrawnBy(ctx)
		}
		// Published: whether it stands is known soon, and only then is an answer true.
		err = <-e.done
	}
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Seq: e.seq, Hash: e.hash, Commit: e.commit}, nil
}

func withdrawnBy(ctx context.Context) *fault.Error {
	return fault.Wrap(ctx.Err(), fault.Cancelled, "the call ended before its commit was written")
}
