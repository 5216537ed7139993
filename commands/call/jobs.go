package call

import (
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// maxJobs bounds the table; beyond it the oldest ended entry leaves first.
const maxJobs = 10_000

// Job is an execution that a caller may observe or stop by its id.
type Job struct {
	ID        event.ExecutionID
	Target    Target
	Authority string // authority group that may see it
	Session   event.SessionID
	Tool      string
	Ended     bool
}

// jobTable remembers executions of this server life by id. What is durable about them is in
// their Sessions and in the Runner's journal; losing the table loses nothing.
type jobTable struct {
	mu    sync.Mutex
	byID  map[event.ExecutionID]*Job
	order []event.ExecutionID
}

func newJobTable() *jobTable { return &jobTable{byID: map[event.ExecutionID]*Job{}} }

func (t *jobTable) add(j Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[j.ID] = &j
	t.order = append(t.order, j.ID)
	for i := 0; len(t.byID) > maxJobs && i < len(t.order); i++ {
		if old := t.byID[t.order[i]]; old == nil || old.Ended {
			delete(t.byID, t.order[i])
			t.order = append(t.order[:i], t.order[i+1:]...)
			i--
		}
	}
}

func (t *jobTable) end(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		j.Ended = true
	}
}

func (t *jobTable) drop(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
}

func (t *jobTable) find(id event.ExecutionID) (Job, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		return *j, true
	}
	return Job{}, false
}

func (c *Call) job(offer wire.Offer) Job {
	j := Job{ID: offer.ID, Target: *c.Target, Authority: c.Principal.Actor.Authority, Tool: c.req.Spec.Name}
	if c.Session != nil {
		j.Session = c.Session.ID
	}
	return j
}

// Job finds a Job that the caller's authority group may see; anything else is unknown_job.
func (c *Call) Job(id string) (Job, error) {
	j, ok := c.kernel.jobs.find(event.ExecutionID(id))
	if !ok || j.Authority != c.Principal.Actor.Authority {
		return Job{}, fault.New(fault.UnknownJob, "no such Job is known in this server's life").WithField("job_id").
			WithNext("read_session_summary shows how the call ended")
	}
	return j, nil
}
