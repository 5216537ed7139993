package call

import (
	"slices"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// maxJobs bounds the table; beyond it the oldest ended entry leaves for each new one. Jobs
// that run are bounded by the Runners.
const maxJobs = 10_000

// Job is an execution that a caller may observe or stop by its id.
type Job struct {
	ID        event.ExecutionID
	Target    Target
	Authority string // authority group that may see it
	Session   event.SessionID
	Tool      string
	Ended     bool
	// Stopping: its Runner took a request to end it, and the end has not come yet.
	Stopping bool
}

// jobTable remembers the Jobs of this server life by id, in order of their promotion. What is durable about them is in
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
	if len(t.order) <= maxJobs {
		return
	}
	if i := slices.IndexFunc(t.order, func(id event.ExecutionID) bool { return t.byID[id].Ended }); i >= 0 {
		delete(t.byID, t.order[i])
		t.order = slices.Delete(t.order, i, i+1)
	}
}

// addNew is add, unless the Job is there already.
func (t *jobTable) addNew(j Job) {
	if _, there := t.find(j.ID); !there {
		t.add(j)
	}
}

func (t *jobTable) end(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		j.Ended = true
	}
}

func (t *jobTable) stop(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		j.Stopping = true
	}
}

// running are those without an end, the newest first.
func (t *jobTable) running() []Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Job
	for _, id := range slices.Backward(t.order) {
		if j := t.byID[id]; !j.Ended {
			out = append(out, *j)
		}
	}
	return out
}

func (t *jobTable) find(id event.ExecutionID) (Job, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		return *j, true
	}
	return Job{}, false
}

// Stop notes that the Runner of a Job took a request to end it.
func (c *Call) Stop(id event.ExecutionID) { c.kernel.jobs.stop(id) }

// Stopping are the Jobs of this server life that were asked to end and have no end yet.
func (c *Call) Stopping() map[event.ExecutionID]bool {
	var out map[event.ExecutionID]bool
	for _, j := range c.kernel.jobs.running() {
		if j.Stopping {
			if out == nil {
				out = map[event.ExecutionID]bool{}
			}
			out[j.ID] = true
		}
	}
	return out
}

func (c *Call) job(offer wire.Offer) Job {
	j := Job{ID: offer.ID, Target: *c.Target, Authority: c.Principal.Actor.Authority, Tool: c.req.Spec.Name}
	if c.Session != nil {
		j.Session = c.Session.ID
	}
	return j
}

// Job finds a Job that the caller's authority group may see, of a Project that exists for the
// caller; anything else is unknown_job.
func (c *Call) Job(id string) (Job, error) {
	j, ok := c.kernel.jobs.find(event.ExecutionID(id))
	if !ok || j.Authority != c.Principal.Actor.Authority || !c.Principal.Sees(j.Target.Ref) {
		return Job{}, fault.New(fault.UnknownJob, "no such Job is known in this server's life").WithField("job_id").
			WithNext("use the job_id that the run gave; look at what changed before running it again")
	}
	if c.Recorder != nil && !c.Recorder.Project.Zero() && c.Recorder.Project != j.Target.Ref {
		return Job{}, c.mismatch() // the Job's Project is the request's (REC-09)
	}
	return j, nil
}
