package runner

import (
	"context"
	"errors"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// input types on the terminal of an execution. It is an effect of its own, so that what a caller
// types is typed at most once, whatever becomes of the messages about it.
func (r *Runner) input(_ context.Context, p *Project, in wire.ExecutionInputIn) (wire.ExecutionInputOut, error) {
	e := r.job(p, in.ID)
	if e == nil {
		if known := r.past(p, in.ID); known.Known {
			return wire.ExecutionInputOut{}, noInput(fault.ExecutionEnded, "the execution has ended")
		}
		return wire.ExecutionInputOut{}, noInput(fault.UnknownJob, "the Runner keeps no such execution")
	}
	if len(in.Text) > wire.MaxInputBytes {
		return wire.ExecutionInputOut{}, noInput(fault.InvalidArguments, "more than %d bytes are typed at once", wire.MaxInputBytes).WithField("text")
	}
	e.mu.Lock()
	child, over := e.child, e.result != nil
	e.mu.Unlock()
	switch {
	case over:
		return wire.ExecutionInputOut{}, noInput(fault.ExecutionEnded, "the execution has ended")
	case child == nil && !interactive(e.offer):
		return wire.ExecutionInputOut{}, noInput(fault.NotInteractive, "the execution has no terminal").
			WithNext("start it with interactive: true to answer it while it runs")
	case child == nil:
		return wire.ExecutionInputOut{}, noInput(fault.ExecutionEnded, "the execution does not read: it has not started or has just ended").
			WithNext("look at it with observe_jobs, then send again if it runs")
	}
	taken, err := child.Input([]byte(in.Text), in.Close)
	if taken == 0 && err != nil {
		if errors.Is(err, proc.ErrNotInteractive) {
			return wire.ExecutionInputOut{}, noInput(fault.NotInteractive, "the execution has no terminal")
		}
		return wire.ExecutionInputOut{}, noInput(fault.ExecutionEnded, "the execution has ended")
	}
	return wire.ExecutionInputOut{AcceptedBytes: taken}, nil
}

// noInput refuses input of which nothing was typed.
func noInput(k fault.Kind, format string, args ...any) *fault.Error {
	f := fault.New(k, format, args...).WithField("execution_id")
	f.ExecutionState = string(event.NotStarted)
	return f
}

// interactive reports that an offer asks for a terminal.
func interactive(o wire.Offer) bool {
	if !isProcess(o.Op) {
		return false
	}
	in, f := readProcess(o)
	return f == nil && in.Interactive
}

// asks notes that the execution has begun or ceased to wait for input, which is news to whoever
// observes it.
func (e *execution) asks(waiting bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = waiting
	e.version++
	e.noteLocked()
}

// attach lets input reach the child while it runs, nil ends that.
func (e *execution) attach(child *proc.Process) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.child = child
}
