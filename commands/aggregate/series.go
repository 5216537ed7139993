package aggregate

import (
	"context"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// Series sees the state as of the lock and returns the events of each of several commits, in
// order, and where the aggregate ended before. It is pure like Decide.
type Series func(now time.Time, head eventlog.Head) ([][]event.Event, error)

// DoSeries writes commits one after the other while it holds the aggregate's lock, so that no
// other decision of this Writer comes between; those of others are lost races. They are not one decision: a crash may leave
// the first of them alone. It gives the receipts of those that stand. Errors are those of Do;
// a lost race is eventlog.ErrConflict, since the rest would no longer follow.
func (w *Writer) DoSeries(ctx context.Context, cmd Command, decide Series) ([]eventlog.Receipt, error) {
	release, err := w.acquire(ctx, cmd.Aggregate)
	if err != nil {
		return nil, err
	}
	defer release()
	// The end is read before the state, so a commit that another writer makes in between is a
	// lost race and never something that the state does not know of.
	head, err := w.log.Head(cmd.Aggregate)
	if err != nil {
		return nil, err
	}
	now := w.now().UTC().Truncate(time.Millisecond)
	commits, err := decide(now, head)
	if err != nil {
		return nil, err
	}
	out := make([]eventlog.Receipt, 0, len(commits))
	for _, events := range commits {
		receipt, err := w.log.Append(ctx, eventlog.Draft{ID: event.NewCommandID(), Aggregate: cmd.Aggregate, Expect: head,
			At: now, Actor: cmd.Actor, Invocation: cmd.Invocation, Events: events, Reserve: cmd.Reserve})
		if err != nil {
			return out, err
		}
		out = append(out, receipt)
		head = eventlog.Head{Version: receipt.Commit.Version, Seq: receipt.Seq, Hash: receipt.Hash}
	}
	return out, nil
}
