package call

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
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
	// Past: it is of an earlier server life, known from its Session alone. Reconciled: its Runner
	// has said in this life that it has it in hand.
	Past, Reconciled bool
}

// jobTable remembers the Jobs of this server life by id, in order of their promotion. What is durable about them is in
// their Sessions and in the Runner's journal; losing the table loses nothing.
type jobTable struct {
	mu    sync.Mutex
	byID  map[event.ExecutionID]*Job
	order []event.ExecutionID
}

func newJobTable() *jobTable { return &jobTable{byID: map[event.ExecutionID]*Job{}} }

// add takes a Job in. One that a repeat of its call has brought in already keeps its place, and
// what has become of it since.
func (t *jobTable) add(j Job) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byID[j.ID]; old != nil {
		j.Ended, j.Stopping, j.Reconciled = old.Ended, old.Stopping, old.Reconciled
		*old = j
		return
	}
	t.addLocked(j)
}

func (t *jobTable) addLocked(j Job) {
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byID[j.ID] == nil {
		t.addLocked(j)
	}
}

func (t *jobTable) end(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		j.Ended = true
	}
}

func (t *jobTable) reconcile(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		j.Reconciled = true
	}
}

func (t *jobTable) stop(id event.ExecutionID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if j := t.byID[id]; j != nil {
		j.Stopping = true
	}
}

// all gives every one, the newest first.
func (t *jobTable) all() []Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Job
	for _, id := range slices.Backward(t.order) {
		out = append(out, *t.byID[id])
	}
	return out
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
	return c.which(func(j Job) bool { return j.Stopping })
}

// Reconciled are the Jobs of earlier server lives that their Runners have in hand, as they have
// said in this one.
func (c *Call) Reconciled() map[event.ExecutionID]bool {
	return c.which(func(j Job) bool { return j.Reconciled })
}

func (c *Call) which(has func(Job) bool) map[event.ExecutionID]bool {
	var out map[event.ExecutionID]bool
	for _, j := range c.kernel.jobs.running() {
		if has(j) {
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

// Running is how many Jobs have no end yet, as far as this server life knows.
func (k *Kernel) Running() int { return len(k.jobs.running()) }

// Job finds a Job that the caller's authority group may see, of a Project that exists for the
// caller; anything else is unknown_job.
func (c *Call) Job(id string) (Job, error) {
	j, ok := c.kernel.jobs.find(event.ExecutionID(id))
	if !ok {
		j, ok = c.pastJob(event.ExecutionID(id))
	}
	if !ok || j.Authority != c.Principal.Actor.Authority || !c.Principal.Sees(j.Target.Ref) {
		return Job{}, fault.New(fault.UnknownJob, "no such Job is known").WithField("job_id").
			WithNext("use the job_id that the run gave; look at what changed before running it again")
	}
	if c.Recorder != nil && !c.Recorder.Project.Zero() && c.Recorder.Project != j.Target.Ref {
		return Job{}, c.mismatch() // the Job's Project is the request's (REC-09)
	}
	return c.present(j), nil
}

// present aims at the Runner that serves the Job's Project now: another life of it knows from its
// journal how the Job ended.
func (c *Call) present(j Job) Job {
	if t, err := c.kernel.fleet.Target(j.Target.Ref); err == nil {
		j.Target = t
	}
	return j
}

// pastJob finds a Job of an earlier server life by its Session.
func (c *Call) pastJob(id event.ExecutionID) (Job, bool) {
	if !id.Valid() {
		return Job{}, false
	}
	if e, core, ok := c.Sessions().Ended(id); ok {
		return jobOf(core, id, e.Tool, true), true
	}
	if o, core, ok := c.Sessions().Running(id); ok {
		return jobOf(core, id, o.Tool, false), true
	}
	return Job{}, false
}

func jobOf(core session.Core, id event.ExecutionID, tool string, ended bool) Job {
	return Job{ID: id, Target: Target{Ref: core.Project}, Authority: core.Authority, Session: core.ID, Tool: tool, Ended: ended, Past: true}
}

// Jobs lists the caller's Jobs of a Project, of a Session, or all; those without an end first,
// each part the newest first. Of earlier server lives it knows what Sessions know: what has no end
// yet, and of a named Session what ended too.
func (c *Call) Jobs(project *ProjectInfo, s *session.Core) ([]Job, error) {
	var out []Job
	seen := map[event.ExecutionID]bool{}
	add := func(j Job) {
		if seen[j.ID] || j.Authority != c.Principal.Actor.Authority || !c.Principal.Sees(j.Target.Ref) ||
			project != nil && j.Target.Ref != project.Ref || s != nil && j.Session != s.ID {
			return
		}
		seen[j.ID] = true
		out = append(out, c.present(j))
	}
	for _, j := range c.kernel.jobs.all() {
		add(j)
	}
	if s != nil {
		for _, o := range openJobs(*s) {
			add(jobOf(*s, o, s.Jobs[o].Tool, false))
		}
		for _, e := range slices.Backward(s.Ended) {
			add(jobOf(*s, e.Execution, e.Tool, true))
		}
	} else {
		open, err := c.Sessions().Open()
		if err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "the Sessions' Jobs cannot be read").WithNext("call again")
		}
		for _, w := range open {
			core, _ := c.Sessions().Core(w.Session)
			for _, o := range openJobs(core) {
				add(jobOf(core, o, core.Jobs[o].Tool, false))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Job) int { return cmp.Compare(rank(a), rank(b)) })
	return out, nil
}

func rank(j Job) int {
	if j.Ended {
		return 1
	}
	return 0
}

// openJobs are a Session's Jobs without an end, the newest first.
func openJobs(c session.Core) []event.ExecutionID {
	return slices.SortedFunc(maps.Keys(c.Jobs), func(a, b event.ExecutionID) int {
		return cmp.Or(c.Jobs[b].At.Compare(c.Jobs[a].At), cmp.Compare(a, b))
	})
}
