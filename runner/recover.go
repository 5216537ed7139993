package runner

import (
	"context"
	"math"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// recovery closes what dead lives left open.
type recovery struct {
	*Runner
	jobs    map[event.ExecutionID]found       // directories of detached Jobs
	learned map[event.ExecutionID]bool        // of them, those that the journal had lost
	owed    map[event.ExecutionID]wire.Result // ends to be told
	left    []proc.Leftover                   // what may still run and is nobody's
}

// recover closes what dead lives left open: it says what the journal and the directories of
// detached Jobs prove, goes on with what lives, and ends the processes of all else.
func (r *Runner) recover() (map[event.ExecutionID]wire.Result, error) {
	v := &recovery{r, findJobs(r.o.Dir), map[event.ExecutionID]bool{}, map[event.ExecutionID]wire.Result{}, nil}
	if err := v.learn(); err != nil {
		return nil, err
	}
	for _, id := range r.journal.doubted {
		e, _ := r.journal.find(id)
		v.owed[id] = wire.Result{ID: id, Digest: e.digest, Instance: e.instance, State: wire.JLost}
		if v.sameBoot(e) {
			v.left = append(v.left, proc.Leftover{Mark: string(id)})
		}
	}
	for _, open := range r.journal.unsettled(math.MaxInt) {
		if err := v.close(open.ID); err != nil {
			return nil, err
		}
	}
	r.endAbandoned(v.left)
	r.shelve(v.jobs)
	r.tidyJobs()
	return v.owed, nil
}

func (v *recovery) sameBoot(e entry) bool { return e.life.Boot == v.journal.current().Boot }

// learn puts detached Jobs into a journal that has lost them.
func (v *recovery) learn() error {
	for id, f := range v.jobs {
		if f.state == supervise.Foreign {
			v.o.Logger.Warn("a Job's directory is of a later version, or cannot be read; it is left alone", "job", id)
		}
		if _, known := v.journal.find(id); known || f.Record.ID != id || f.state == supervise.Foreign {
			continue
		}
		if err := v.Runner.learn(id, f); err != nil {
			return err
		}
		v.learned[id] = true
	}
	return nil
}

// close says what is proven of an id that the journal has open.
func (v *recovery) close(id event.ExecutionID) error {
	e, _ := v.journal.find(id)
	job := v.jobs[id]
	res := wire.Result{ID: id, Digest: e.digest, Instance: e.instance}
	switch {
	case e.state == wire.JTerminal:
		if e.result != nil {
			res = *e.result
			res.ID = id
			v.owed[id] = res
		}
		return nil
	case job.proves():
		end, closed, err := v.takeUp(job, e, res)
		if err == nil && closed {
			v.owed[id] = end
		}
		return err
	case e.state == wire.JAccepted && v.unstarted(id, e):
		res.State = wire.JNever
	case e.state == wire.JAccepted || e.state == wire.JStarting || e.state == wire.JRunning:
		res.State = wire.JLost
		v.abandon(id, e, job)
	default:
		return nil
	}
	if err := v.journal.step(record{ID: id, State: res.State}, true); err != nil {
		return err
	}
	v.owed[id] = res
	return nil
}

// unstarted tells that what is only accepted was never started: a start is written before it
// happens. A power cut may have taken that line, or whoever took the journal away.
func (v *recovery) unstarted(id event.ExecutionID, e entry) bool {
	return !v.learned[id] && (v.sameBoot(e) || e.life.Synced)
}

// abandon has what is lost ended. What a later version of the program keeps is its own.
func (v *recovery) abandon(id event.ExecutionID, e entry, job found) {
	if !v.sameBoot(e) || job.state == supervise.Foreign {
		return
	}
	l := proc.Leftover{Mark: string(id)}
	if job.Job != nil {
		l = v.leftover(job.Job)
	}
	if e.leader != nil {
		l.Leader = *e.leader
	}
	v.left = append(v.left, l)
}

// tellOwed tells the ends that an earlier life could not.
func (r *Runner) tellOwed(ctx context.Context) {
	for id, res := range r.owed {
		if e, ok := r.journal.find(id); ok && e.state == wire.JSettled {
			continue
		}
		r.tell(ctx, res)
	}
}
