package runner

import (
	"context"
	"slices"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// DefaultJobs and MaxJobs are how many Jobs run at once on one Runner, and how many may.
const (
	DefaultJobs = 4
	MaxJobs     = 64
)

func jobSlots(asked int) int {
	if asked == 0 {
		return DefaultJobs
	}
	return min(max(asked, 1), MaxJobs)
}

// queue gives Jobs their slots: at most so many at once, first come first served. What waits has
// no grant, no process and nothing prepared. Only Jobs take slots: who waits for the answer of a
// call does not wait in line, also where the call becomes a Job later.
type queue struct {
	mu      sync.Mutex
	slots   int
	taken   int
	waiting []*execution // oldest first
}

// enter takes a slot, or a place in line. Error: too_many_calls with reason job_queue_full.
func (q *queue) enter(e *execution) *fault.Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.taken < q.slots:
		q.taken++
		close(e.turn)
	case len(q.waiting) >= maxQueued:
		return fault.New(fault.TooManyCalls, "%d Jobs wait for a slot of this Runner already", maxQueued).
			WithReason("job_queue_full").WithNext("wait for Jobs to end, or stop some; list_jobs names them")
	default:
		q.waiting = append(q.waiting, e)
	}
	return nil
}

// leave gives the slot to the next in line, or the place up.
func (q *queue) leave(e *execution) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiting, e); at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		return
	}
	if q.taken--; len(q.waiting) > 0 && q.taken < q.slots {
		next := q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		q.taken++
		close(next.turn)
	}
}

// resume takes a slot for a Job of an earlier life that runs already, whether there is one or not.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken++
}

// ahead is how many wait before it; false: it does not wait.
func (q *queue) ahead(e *execution) (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.waiting, e)
	return max(at, 0), at >= 0
}

// slots tells how many Jobs run now and how many wait.
func (r *Runner) slots() *wire.JobSlots {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return &wire.JobSlots{Limit: r.queue.slots, Running: r.queue.taken, Queued: len(r.queue.waiting)}
}

// shelf keeps what has ended for observers: the newest, by number and by what they hold.
type shelf struct {
	count int
	bytes int64
	ids   []event.ExecutionID // oldest first
	sizes []int64
	held  int64
}

// put adds one and gives those that have to go.
func (s *shelf) put(id event.ExecutionID, size int64) (gone []event.ExecutionID) {
	s.ids, s.sizes, s.held = append(s.ids, id), append(s.sizes, size), s.held+size
	for len(s.ids) > s.count || len(s.ids) > 1 && s.held > s.bytes {
		gone = append(gone, s.ids[0])
		s.held -= s.sizes[0]
		s.ids, s.sizes = s.ids[1:], s.sizes[1:]
	}
	return gone
}

// retain lets old ends go. Foreground calls have told their output; Jobs have a shelf of their
// own, so that no number of calls takes a Job's log away.
func (r *Runner) retain(e *execution) {
	s := &r.ended
	if e.offer.Bounds.Job {
		s = &r.endedJobs
	}
	for _, id := range s.put(e.offer.ID, e.held()) {
		delete(r.execs, id)
	}
}

// held is what its output takes.
func (e *execution) held() int64 {
	if e.stdout == nil {
		return 0
	}
	e.stdout.Trim()
	e.stderr.Trim()
	return e.stdout.Held() + e.stderr.Held()
}

// execution makes what an accepted offer is carried by.
func (r *Runner) execution(link context.Context, o wire.Offer, p *Project) *execution {
	size := proc.KeptBytes
	if o.Bounds.Job {
		size = jobBytes
	}
	e := &execution{offer: o, project: p, state: wire.JAccepted, stdout: proc.NewTail(size), stderr: proc.NewTail(size),
		now: r.o.Now, accepted: r.o.Now(), turn: make(chan struct{}), done: make(chan struct{})}
	if o.Op == wire.OpDetached {
		e.log = event.InstanceID(event.NewNonce())
	}
	e.ctx, e.stop = context.WithCancelCause(context.WithoutCancel(link))
	return e
}

// awaitTurn waits for the slot of a Job; false: it was called off before.
func (e *execution) awaitTurn() bool {
	if e.offer.Bounds.Job {
		select {
		case <-e.turn:
		case <-e.ctx.Done():
		}
	}
	return !e.offer.Bounds.Job || e.ctx.Err() == nil
}

// never ends an id that has no grant; the journal proves that it did not and will not start.
func (r *Runner) never(e *execution, res wire.Result) wire.Result {
	step := record{ID: e.offer.ID, State: wire.JNever}
	if f := e.calledOff(); f != nil {
		res.Fault, step.Result = f, &res
	}
	if err := r.journal.step(step, true); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	return res
}

// calledOff says that a Job was stopped before it started; nil: it was not.
func (e *execution) calledOff() *fault.Error {
	if !e.stopping() {
		return nil
	}
	f := fault.New(fault.Cancelled, "it was stopped before it started")
	f.FailureKind, f.ExecutionState = string(event.Cancelled), string(event.NotStarted)
	return f
}

// stopping reports that somebody asked for its end.
func (e *execution) stopping() bool { return context.Cause(e.ctx) == reasonCancelled }
