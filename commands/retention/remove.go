package retention

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/projections/retention"
	"webcodex/projections/session"
)

// Options of New.
type Options struct {
	Writer     *aggregate.Writer
	Sessions   *session.Store
	Tombstones *retention.Tombstones
	// Limit is how many Closed Sessions are retained; 0: none.
	Limit  int
	Logger *slog.Logger
}

// Remover keeps Closed history within its bound. It is safe for concurrent use.
type Remover struct {
	o Options

	mu sync.Mutex // one run at a time
}

// New makes a Remover. Nothing happens before Run.
func New(o Options) *Remover {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Remover{o: o}
}

// Run removes the Closed Sessions beyond the limit that came to rest first and drops the oldest
// tombstones beyond it. The order is the log's: no clock decides. It is called at start, and by Closed. What fails is logged and done the next time.
func (r *Remover) Run(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ctx.Err() == nil && r.over() {
		wrote, err := r.step(ctx)
		if err != nil {
			r.o.Logger.Warn("closed history could not be bounded; it is tried again at the next close", "cause", err)
		}
		if err != nil || !wrote {
			return
		}
	}
}

func (r *Remover) over() bool {
	return r.excess() > 0 || r.o.Tombstones.Standing(0).Count > r.o.Limit
}

func (r *Remover) excess() int { return r.o.Sessions.Totals().Closed - r.o.Limit }

// step makes one commit of the retention aggregate. Which Sessions it removes is decided on
// their state under the aggregate's lock.
func (r *Remover) step(ctx context.Context) (wrote bool, err error) {
	oldest, err := r.o.Sessions.Resting(max(0, min(r.excess(), maxRemoved)))
	if err != nil {
		return false, err
	}
	cmd := aggregate.Command{Aggregate: event.RetentionAggregate(), Actor: event.Actor{Credential: "system"},
		Invocation: event.NewInvocationID(), Reserve: true}
	receipt, err := r.o.Writer.Do(ctx, cmd, func(time.Time) ([]event.Event, error) {
		var remove []session.Core
		for _, c := range oldest {
			if core, ok := r.removable(c.ID); ok && MayRemove(core) {
				remove = append(remove, core)
			}
		}
		return Decide(r.o.Tombstones.Standing(maxDropped), remove, r.o.Limit), nil
	})
	return receipt.Seq > 0, err
}

// removable gives a retained Closed Session that has no tombstone.
func (r *Remover) removable(id event.SessionID) (session.Core, bool) {
	if _, gone := r.o.Tombstones.Find(id); gone {
		return session.Core{}, false
	}
	core, ok := r.o.Sessions.Core(id)
	return core, ok && core.Lifecycle == session.Closed
}

// Closed tells that a Session was closed, or came to rest, now. The call that closed it has its
// answer whatever comes of this, and however it ends.
func (r *Remover) Closed(ctx context.Context, _ session.Core) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	r.Run(ctx)
}
