// Package aggregate is how a decision becomes a commit: under the aggregate's lock it reads
// the chain's end, lets a pure function decide, and appends at the expected sequence.
package aggregate

import (
	"context"
	"errors"
	"sync"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// MaxAttempts bounds how often a decision is made again because another writer came first.
const MaxAttempts = 3

// Writer turns decisions into commits. The lock per aggregate only saves work, for those who
// share the Writer: the expected sequence is what decides a race, also between servers.
type Writer struct {
	log eventlog.Appender
	now func() time.Time

	mu    sync.Mutex
	locks map[event.Aggregate]*lock // entries live while held or waited for
}

type lock struct {
	turn chan struct{} // holds one token
	refs int           // guarded by Writer.mu
}

// NewWriter makes a Writer on the log; now is the server's clock.
func NewWriter(log eventlog.Appender, now func() time.Time) *Writer {
	return &Writer{log: log, now: now, locks: map[event.Aggregate]*lock{}}
}

// Command says on whose behalf a decision is made.
type Command struct {
	Aggregate  event.Aggregate
	Actor      event.Actor
	Invocation event.InvocationID
	// Reserve lets the commit use the space kept for finishing work (faults.md 2.13).
	Reserve bool
}

// Decide sees the state as of the lock and returns events, none (nothing is written), or a
// refusal. It is pure: now is its only clock. It may be called again after a lost race.
type Decide func(now time.Time) ([]event.Event, error)

// Do makes one decision durable. A zero receipt with a nil error means that there was
// nothing to write. Errors: the refusal of decide; fault conflict after MaxAttempts; the
// log's own faults.
func (w *Writer) Do(ctx context.Context, cmd Command, decide Decide) (eventlog.Receipt, error) {
	release, err := w.acquire(ctx, cmd.Aggregate)
	if err != nil {
		return eventlog.Receipt{}, err
	}
	defer release()
	for range MaxAttempts {
		head, err := w.log.Head(cmd.Aggregate)
		if err != nil {
			return eventlog.Receipt{}, err
		}
		now := w.now().UTC().Truncate(time.Millisecond)
		events, err := decide(now)
		if err != nil || len(events) == 0 {
			return eventlog.Receipt{}, err
		}
		receipt, err := w.log.Append(ctx, eventlog.Draft{ID: event.NewCommandID(), Aggregate: cmd.Aggregate, Expect: head,
			At: now, Actor: cmd.Actor, Invocation: cmd.Invocation, Events: events, Reserve: cmd.Reserve})
		if errors.Is(err, eventlog.ErrConflict) {
			continue
		}
		return receipt, err
	}
	return eventlog.Receipt{}, fault.New(fault.Conflict, "other calls kept changing this record; nothing was written").
		WithNext("call again")
}

func (w *Writer) acquire(ctx context.Context, a event.Aggregate) (func(), error) {
	w.mu.Lock()
	l := w.locks[a]
	if l == nil {
		l = &lock{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		w.locks[a] = l
	}
	l.refs++
	w.mu.Unlock()
	drop := func() {
		w.mu.Lock()
		if l.refs--; l.refs == 0 {
			delete(w.locks, a)
		}
		w.mu.Unlock()
	}
	select {
	case <-l.turn:
		return func() { l.turn <- struct{}{}; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, fault.Wrap(ctx.Err(), fault.Cancelled, "the call ended while it waited for its turn; nothing was written")
	}
}
