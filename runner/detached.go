package runner

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// jobsDir holds a directory for each detached Job.
func jobsDir(dir string) string { return filepath.Join(dir, "jobs") }

// runDetached starts a Job under a supervisor of its own and follows it to its end. left tells that
// this life ends before the Job does: its end is the next one's to tell.
func (r *Runner) runDetached(e *execution, limit time.Duration, res wire.Result) (end wire.Result, left bool) {
	spec, dir, f := r.detachedSpec(e)
	if f != nil {
		return r.notStarted(res, f), false
	}
	defer dir.Close()
	pending, err := supervise.Prepare(jobsDir(r.o.Dir), supervise.Record{ID: e.offer.ID, Digest: e.offer.Digest, Instance: r.instance,
		Project: e.project.ID, Key: e.offer.Key, Payload: e.offer.Payload, Nonce: string(e.log), Boot: r.journal.current().Boot,
		AcceptedAt: event.FormatTime(e.accepted), LimitMS: limit.Milliseconds()})
	if err != nil {
		return r.notStarted(res, spawnFault(e.offer.Op, err)), false
	}
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JStarting}, true); err != nil {
		pending.Abandon()
		return r.notStarted(res, unwritable(err)), false
	}
	e.set(wire.JStarting)
	word, said, err := pending.Start(r.o.Supervisor, spec, dir)
	switch {
	case err != nil:
		pending.Abandon()
		return r.notStarted(res, spawnFault(e.offer.Op, err)), false
	case said && !word.Started:
		return r.notStarted(res, spawnFault(e.offer.Op, &proc.SpawnError{Reason: word.Reason})), false
	case said:
		r.supervised(e, word.Child)
	}
	return r.attend(e, pending.Job, res)
}

// detachedSpec is what the supervisor is told of the command, and the directory that it starts in.
func (r *Runner) detachedSpec(e *execution) (supervise.Spec, *os.File, *fault.Error) {
	in, f := readProcess(e.offer)
	if f != nil {
		return supervise.Spec{}, nil, f
	}
	dir, f := openCwd(e.project, in.Cwd)
	if f != nil {
		return supervise.Spec{}, nil, f
	}
	path := filepath.Join(e.project.Path, filepath.FromSlash(in.Cwd))
	return supervise.Spec{Executable: in.Executable, Args: in.Args, Stdin: in.Stdin, Cwd: path,
		Env: proc.Environment(os.Environ(), append([]string{"PWD=" + path}, in.Env...))}, dir, nil
}

// supervised notes that the command of a detached Job runs.
func (r *Runner) supervised(e *execution, child *proc.Identity) {
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JRunning, Leader: child}, false); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	e.set(wire.JRunning)
	r.mu.Lock()
	to := r.link
	r.mu.Unlock()
	to.Started(wire.Started{ID: e.offer.ID})
}

// overhear notes that the command runs where its supervisor's word did not reach this life.
func (r *Runner) overhear(e *execution, job *supervise.Job) {
	e.mu.Lock()
	state := e.state
	e.mu.Unlock()
	if state != wire.JStarting {
		return
	}
	if now, held := supervise.Open(job.Dir); held == supervise.Held && now.Record.StartedAt != "" {
		job.Record = now.Record
		r.supervised(e, job.Record.Child)
	}
}

// attend follows a detached Job to its end, or until this life ends.
func (r *Runner) attend(e *execution, job *supervise.Job, res wire.Result) (end wire.Result, left bool) {
	state := r.watchJob(e, job)
	switch state {
	case supervise.Held:
		return res, true
	case supervise.Ended:
		end = r.detachedEnd(e, job, res)
		if end.State == wire.JStartFailed {
			return r.notStarted(end, end.Fault), false
		}
		return r.terminal(end), false
	}
	// Its supervisor is gone without a word: what that left behind is ended, how the Job went
	// nobody knows.
	if now, _ := supervise.Open(job.Dir); now.Record.Child != nil {
		job.Record.Child = now.Record.Child
	}
	r.endAbandoned([]proc.Leftover{r.leftover(job)})
	res.State = wire.JLost
	if err := r.journal.step(record{ID: res.ID, State: wire.JLost}, true); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	return res, false
}

// leftover is what a killed supervisor may have left. After another boot a pid tells nothing.
func (r *Runner) leftover(job *supervise.Job) proc.Leftover {
	l := proc.Leftover{Mark: string(job.Record.ID)}
	if job.Record.Child != nil && job.Record.Boot == r.journal.current().Boot {
		l.Leader = *job.Record.Child
	}
	return l
}

// detachedEnd is the result that the record of an end gives, with what is kept of the output.
func (r *Runner) detachedEnd(e *execution, job *supervise.Job, res wire.Result) wire.Result {
	res.EndedAt = job.Exit.EndedAt
	if job.Exit.State == wire.JStartFailed || job.Exit.Process == nil {
		res.State, res.Fault = wire.JStartFailed, spawnFault(wire.OpDetached, &proc.SpawnError{Reason: job.Exit.Reason})
		res.Fault.ExecutionState = string(event.NotStarted)
		return res
	}
	p := *job.Exit.Process
	pull(e.stdout, job.Stdout())
	pull(e.stderr, job.Stderr())
	// What the disk did not take is counted all the same.
	e.stdout.Skip(p.Stdout.Bytes - e.stdout.Total())
	e.stderr.Skip(p.Stderr.Bytes - e.stderr.Total())
	p.Stdout, p.Stderr = stream(e.stdout), stream(e.stderr)
	res.State, res.Process, res.DurationMS = wire.JTerminal, &p, p.DurationMS
	return res
}

// watchJob brings a detached Job's output to its observers until it has ended. It gives Held where
// this life ends first.
func (r *Runner) watchJob(e *execution, job *supervise.Job) supervise.State {
	for asked := false; ; {
		changes, stop, err := job.Follow()
		state := job.Look()
		look := func() {
			pull(e.stdout, job.Stdout())
			pull(e.stderr, job.Stderr())
			e.note()
			r.overhear(e, job)
		}
		look()
		over := e.ctx.Done()
		if asked {
			over = nil
		}
		for open := err == nil; open && state == supervise.Held; {
			select {
			case _, open = <-changes:
				look()
			case <-over:
				if context.Cause(e.ctx) == reasonShutdown {
					stop()
					return supervise.Held
				}
				asked = job.Stop() == nil
				over = nil
				open = open && asked
			}
		}
		if err == nil {
			stop()
		}
		if state != supervise.Held {
			return state
		}
		select {
		case <-time.After(supervisedPause):
		case <-over:
			if context.Cause(e.ctx) == reasonShutdown {
				return supervise.Held
			}
			time.Sleep(supervisedPause)
			asked = job.Stop() == nil
		}
	}
}

// pull brings what has come since to a tail.
func pull(to *proc.Tail, from supervise.Reader) {
	for {
		at := to.Total()
		b, first, err := from.Read(at, 64<<10)
		if err != nil || len(b) == 0 {
			return
		}
		to.Skip(first - at)
		to.Write(b)
	}
}

// endAbandoned ends the processes of executions that nobody looks after any more.
func (r *Runner) endAbandoned(list []proc.Leftover) {
	alive, killed := proc.EndLeftovers(list)
	if killed || len(alive) > 0 {
		r.o.Logger.Warn("processes that nobody looked after any more were found", "executions", len(list), "still_alive", alive)
	}
}
