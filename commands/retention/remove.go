package retention

import (
	"cmp"
	"container/heap"
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

	mu     sync.Mutex // one run at a time
	closed queue      // the Closed Sessions, oldest first; it only saves looking for them
	known  map[event.SessionID]bool
}

// New makes a Remover. Nothing happens before Run.
func New(o Options) *Remover {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Remover{o: o}
}

// Run removes the oldest Closed Sessions beyond the limit and drops the oldest tombstones
// beyond it. It is called at start, and by Closed. What fails is logged and done the next time.
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
	oldest, waiting := r.oldest(min(r.excess(), maxRemoved))
	var removed map[event.SessionID]bool
	cmd := aggregate.Command{Aggregate: event.RetentionAggregate(), Actor: event.Actor{Credential: "system"},
		Invocation: event.NewInvocationID(), Reserve: true}
	receipt, err := r.o.Writer.Do(ctx, cmd, func(time.Time) ([]event.Event, error) {
		var remove []session.Core
		removed = map[event.SessionID]bool{}
		for _, c := range oldest {
			if core, ok := r.removable(c.ID); ok && MayRemove(core) {
				remove = append(remove, core)
				removed[c.ID] = true
			}
		}
		return Decide(r.o.Tombstones.Standing(maxDropped), remove, r.o.Limit), nil
	})
	for _, c := range oldest {
		if err != nil || !removed[c.ID] {
			r.push(c)
		}
	}
	for _, c := range waiting {
		r.push(c)
	}
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

// oldest takes the n oldest Sessions that may be removed off the queue, and those before them
// that have to wait.
func (r *Remover) oldest(n int) (ready, waiting []session.Core) {
	if n <= 0 {
		return nil, nil
	}
	if r.known == nil {
		r.look()
	}
	if ready, waiting = r.take(n); len(ready) == 0 && len(waiting) == 0 {
		r.look() // some were closed without a word
		ready, waiting = r.take(n)
	}
	return ready, waiting
}

func (r *Remover) take(n int) (ready, waiting []session.Core) {
	for len(ready) < n && r.closed.Len() > 0 {
		e := heap.Pop(&r.closed).(entry)
		delete(r.known, e.id)
		core, ok := r.removable(e.id)
		switch {
		case !ok:
		case !core.UpdatedAt.Equal(e.at): // a late end came after
			r.push(core)
		case MayRemove(core):
			ready = append(ready, core)
		default:
			waiting = append(waiting, core)
		}
	}
	return ready, waiting
}

// look queues every Closed Session there is.
func (r *Remover) look() {
	if r.known == nil {
		r.known = map[event.SessionID]bool{}
	}
	for _, c := range r.o.Sessions.List(session.Filter{AnyAuthority: true, Lifecycle: session.Closed}) {
		r.push(c)
	}
}

func (r *Remover) push(c session.Core) {
	if !r.known[c.ID] {
		r.known[c.ID] = true
		heap.Push(&r.closed, entry{c.ID, c.UpdatedAt})
	}
}

// Closed tells of one that was closed, or came to rest, now: none has to be looked for. The
// call that closed it has its answer whatever comes of this, and however it ends.
func (r *Remover) Closed(ctx context.Context, c session.Core) {
	r.mu.Lock()
	if r.known != nil {
		r.push(c)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	r.Run(ctx)
}

// entry is a Closed Session by when it came to rest, the id as the tiebreak.
type entry struct {
	id event.SessionID
	at time.Time
}

// queue is a heap of entries, oldest first.
type queue []entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if n := q[i].at.Compare(q[j].at); n != 0 {
		return n < 0
	}
	return cmp.Less(q[i].id, q[j].id)
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(entry)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
