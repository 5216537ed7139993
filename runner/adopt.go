package runner

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// found is a detached Job's directory that an earlier life made.
type found struct {
	*supervise.Job
	state supervise.State
}

// adopted is a detached Job of an earlier life that runs on in this one.
type adopted struct {
	e   *execution
	job *supervise.Job
	res wire.Result // as far as it is known
}

// findJobs reads the directories of detached Jobs.
func findJobs(dir string) map[event.ExecutionID]found {
	out := map[event.ExecutionID]found{}
	names, _ := os.ReadDir(jobsDir(dir))
	for _, d := range names {
		id := event.ExecutionID(d.Name())
		if !d.IsDir() || !id.Valid() {
			continue
		}
		job, state := supervise.Open(filepath.Join(jobsDir(dir), d.Name()))
		if job.Record.ID != id && state != supervise.Lost {
			state = supervise.Foreign
		}
		out[id] = found{job, state}
	}
	return out
}

// proves reports that a Job's directory says how it stands, whatever the journal has lost of it.
func (f found) proves() bool {
	return f.Job != nil && (f.state == supervise.Held || f.state == supervise.Ended)
}

// takeUp closes or goes on with a detached Job that the journal has open. closed is false where the
// directory proves nothing, or where the Job goes on: res has no state then.
func (r *Runner) takeUp(f found, known entry, res wire.Result) (wire.Result, bool, error) {
	if known.state == wire.JAccepted { // the copy of a journal, or an old one
		if err := r.journal.step(record{ID: res.ID, State: wire.JStarting}, true); err != nil {
			return res, false, err
		}
		known.state = wire.JStarting
	}
	e := r.revive(f, known, res)
	if f.state == supervise.Held {
		switch {
		case known.state == wire.JRunning:
		case f.Record.StartedAt != "":
			if err := r.journal.step(record{ID: res.ID, State: wire.JRunning, Leader: f.Record.Child}, false); err != nil {
				return res, false, err
			}
		default: // its supervisor may still find that it cannot start it
			e.state, e.version = wire.JStarting, 1
		}
		r.queue.resume()
		r.adopted = append(r.adopted, adopted{e, f.Job, res})
		return res, false, nil
	}
	res = r.detachedEnd(e, f.Job, res)
	if err := r.journal.step(record{ID: res.ID, State: res.State, Result: &res}, true); err != nil {
		return res, false, err
	}
	r.settleRevived(e, res)
	return res, true, nil
}

// revive makes the execution that a detached Job of an earlier life is observed by.
func (r *Runner) revive(f found, known entry, res wire.Result) *execution {
	project := known.project
	if project == "" {
		project = f.Record.Project
	}
	e := r.execution(context.Background(), wire.Offer{ID: res.ID, Digest: res.Digest, Op: wire.OpDetached,
		Fence: wire.Fence{Client: r.o.Client, Project: project}, Bounds: wire.Bounds{Job: true, TimeoutMS: f.Record.LimitMS}}, &Project{ID: project})
	e.stdout, e.stderr = tailOf(f.Stdout()), tailOf(f.Stderr())
	e.log, e.state, e.version = event.InstanceID(f.Record.Nonce), wire.JRunning, 2
	if at, err := time.Parse(event.TimeForm, f.Record.AcceptedAt); err == nil {
		e.accepted = at
	}
	if at, err := time.Parse(event.TimeForm, f.Record.StartedAt); err == nil {
		e.started = at
	}
	close(e.turn)
	r.execs[res.ID] = e
	return e
}

// settleRevived shows the end of a Job of an earlier life.
func (r *Runner) settleRevived(e *execution, res wire.Result) {
	e.state, e.result, e.version = res.State, &res, 3
	close(e.done)
	e.stop(nil)
	r.retain(e)
}

func tailOf(from supervise.Reader) *proc.Tail {
	first, end, err := from.Kept()
	if err != nil {
		first, end = 0, 0
	}
	t := proc.NewTailAt(jobBytes, max(first, end-jobBytes))
	pull(t, from)
	return t
}

// learn puts a detached Job into a journal that has lost it: one that was deleted, set aside, or
// restored from an older copy.
func (r *Runner) learn(id event.ExecutionID, f found) error {
	line := record{ID: id, State: wire.JAccepted, Digest: f.Record.Digest, Instance: f.Record.Instance, Project: f.Record.Project,
		Key: f.Record.Key, Payload: f.Record.Payload}
	err := r.journal.step(line, false)
	if errors.Is(err, errKeyTaken) {
		line.Key, line.Payload = "", ""
		err = r.journal.step(line, false)
	}
	return err
}

// shelve lets observers see the detached Jobs of earlier lives that have ended, the newest last.
func (r *Runner) shelve(jobs map[event.ExecutionID]found) {
	var ids []event.ExecutionID
	for id, f := range jobs {
		if _, there := r.execs[id]; !there && f.state == supervise.Ended {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b event.ExecutionID) int { return cmp.Compare(jobs[a].Exit.EndedAt, jobs[b].Exit.EndedAt) })
	for _, id := range ids {
		known, _ := r.journal.find(id)
		res := wire.Result{ID: id, Digest: known.digest, Instance: known.instance}
		e := r.revive(jobs[id], known, res)
		r.settleRevived(e, r.detachedEnd(e, jobs[id].Job, res))
	}
}

// followAdopted takes the Jobs that were adopted to their ends.
func (r *Runner) followAdopted(link context.Context) {
	for _, a := range r.adopted {
		r.work.Add(1)
		go func() {
			defer r.work.Done()
			res, left := r.attend(a.e, a.job, a.res)
			r.release(a.e)
			if left {
				return
			}
			r.finish(a.e, res)
			r.tell(link, res)
			r.tidyJobs()
		}()
	}
	r.adopted = nil
}

// tidyJobs removes directories of Jobs that have ended and were acknowledged: all but the newest,
// and the old ones.
func (r *Runner) tidyJobs() {
	type ended struct {
		found
		id event.ExecutionID
		at time.Time
	}
	var list []ended
	for id, f := range findJobs(r.o.Dir) {
		known, ok := r.journal.find(id)
		if f.state == supervise.Held || f.state == supervise.Foreign || ok && !final(known.state) {
			continue
		}
		at, err := time.Parse(event.TimeForm, f.Exit.EndedAt)
		if err != nil {
			info, err := os.Stat(f.Dir)
			if err != nil {
				continue
			}
			at = info.ModTime()
		}
		list = append(list, ended{f, id, at})
	}
	slices.SortFunc(list, func(a, b ended) int { return b.at.Compare(a.at) })
	for n, one := range list {
		if n < keptJobDirs && r.o.Now().Sub(one.at) < keptJobAge {
			continue
		}
		if err := one.Remove(); err != nil {
			r.o.Logger.Debug("a Job's directory could not be removed", "job", one.id, "cause", err)
		}
	}
}

// proven reports that the directory of a detached Job says how it stands.
func proven(dir string) bool {
	job, state := supervise.Open(dir)
	return found{job, state}.proves()
}
