package runner

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// Remote is a command that is ready to be sent to another machine; nothing of it was sent yet.
type Remote interface {
	// Run sends it, once, and waits for its end, ctx or limit. A fault says with its execution
	// state what it proves: not_started, or outcome_unknown with what was seen until then.
	Run(ctx context.Context, limit time.Duration) (wire.ProcessOutcome, *fault.Error)
	// Close gives it up; after Run it does nothing.
	Close()
}

// RemoteOutput is where a remote command's output goes while it runs, and whom it tells.
type RemoteOutput struct {
	Stdout, Stderr *proc.Tail
	Notify         func() // something arrived
	Started        func() // the command has begun; at most once
}

// remoteOp is a registered op that runs on another machine.
type remoteOp struct {
	check   func(body json.RawMessage) *fault.Error
	prepare func(ctx context.Context, body json.RawMessage, out RemoteOutput) (Remote, *fault.Error)
}

// RegisterRemote registers an op that runs a command on another machine. check refuses an input
// before anything is promised; prepare reaches the machine after the grant, and its fault proves
// that nothing was started. Such a command is journaled like a process of this machine, and what
// an earlier life left open of it is lost. Register before the Runner serves.
func RegisterRemote[In any](r *Runner, op wire.Op, check func(In) *fault.Error,
	prepare func(ctx context.Context, in In, out RemoteOutput) (Remote, *fault.Error)) {
	info, known := wire.Ops[op]
	if _, twice := r.remotes[op]; !known || !info.Effect || twice {
		panic("runner: op " + string(op) + " is not declared in wire as an effect, or registered twice")
	}
	decode := func(body json.RawMessage) (in In, f *fault.Error) {
		if err := json.Unmarshal(body, &in); err != nil {
			return in, fault.Wrap(err, fault.RunnerRefused, "the Runner could not read the request").WithReason("malformed")
		}
		return in, check(in)
	}
	r.remotes[op] = remoteOp{
		check: func(body json.RawMessage) *fault.Error {
			_, f := decode(body)
			return f
		},
		prepare: func(ctx context.Context, body json.RawMessage, out RemoteOutput) (Remote, *fault.Error) {
			in, f := decode(body)
			if f != nil {
				return nil, f
			}
			return prepare(ctx, in, out)
		},
	}
}

// runRemote reaches the machine, and only then says that the command starts.
func (r *Runner) runRemote(e *execution, op remoteOp, limit time.Duration, res wire.Result) wire.Result {
	began := time.Now()
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	cmd, f := op.prepare(ctx, e.offer.Body, RemoteOutput{Stdout: e.stdout, Stderr: e.stderr, Notify: e.note, Started: func() { r.remoteStarted(e) }})
	if f != nil {
		return r.remoteNotStarted(e, res, f)
	}
	defer cmd.Close()
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JStarting}, true); err != nil {
		return r.notStarted(res, fault.Wrap(err, fault.StorageFull, "the Runner's journal cannot be written; nothing was started"))
	}
	e.set(wire.JStarting)
	out, f := cmd.Run(e.ctx, max(limit-time.Since(began), 0))
	switch {
	case f == nil:
		res.State = wire.JTerminal
		res.Process, res.EndedAt = &out, event.FormatTime(r.o.Now())
		return r.terminal(res)
	case f.ExecutionState == string(event.NotStarted):
		return r.remoteNotStarted(e, res, f)
	}
	res.State, res.Process, res.Fault = wire.JLost, &out, f
	if err := r.journal.step(record{ID: res.ID, State: wire.JLost, Result: &res}, true); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	return res
}

// remoteNotStarted ends a command that was not sent, or that proved not to have begun. Where it was
// stopped meanwhile that is why, whatever the connection says of being given up.
func (r *Runner) remoteNotStarted(e *execution, res wire.Result, f *fault.Error) wire.Result {
	if off := e.calledOff(); off != nil {
		f = off
	}
	return r.notStarted(res, f)
}

func (r *Runner) remoteStarted(e *execution) {
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JRunning}, false); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	e.set(wire.JRunning)
	r.mu.Lock()
	to := r.link
	r.mu.Unlock()
	to.Started(wire.Started{ID: e.offer.ID})
}
