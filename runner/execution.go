package runner

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// Reasons to end an execution early.
var (
	reasonAbandoned = errors.New("no server will grant it")
	reasonCancelled = errors.New("cancelled")
	reasonShutdown  = errors.New("the Runner stops")
	reasonRemoved   = errors.New("the Project was unregistered")
)

// execution is one id in this life, from its acceptance on.
type execution struct {
	offer   wire.Offer
	project *Project
	ctx     context.Context
	stop    context.CancelCauseFunc

	stdout, stderr *proc.Tail
	now            func() time.Time
	accepted       time.Time
	turn           chan struct{}    // of a Job: closed when it has a slot
	done           chan struct{}    // closed at its end
	log            event.InstanceID // of a detached Job: what its observers' tokens are of; empty: this life

	mu      sync.Mutex
	state   wire.JournalState
	started time.Time // zero until then
	result  *wire.Result
	// ending is the end while the journal gets it: who finds it there asks for what was printed too.
	ending  *wire.Result
	child   *proc.Process // while it runs, of an interactive one
	waiting bool          // for input on its terminal
	version int           // of the state, for observers
	changed chan struct{} // closed at the next change; nil: nobody waits
}

// offer decides on an offer and, if it takes it, carries it on in the background. It never
// starts anything itself.
func (r *Runner) offer(link context.Context, o wire.Offer) wire.OfferReply {
	if !o.ID.Valid() || o.Digest == "" {
		return wire.OfferReply{State: wire.JRefused, Fault: refusal("malformed", "the offer has no valid id or digest")}
	}
	if reply, known := r.answerKnown(o.ID, o.Digest); known {
		if reply.State != wire.JRefused {
			return reply
		}
		if first, ok := r.repeat(o); ok {
			return first // its answer was lost
		}
		return reply
	}
	p, f := r.check(o)
	if f == nil {
		if first, ok := r.repeat(o); ok {
			p.drop()
			return first
		}
	}
	e := r.execution(link, o, p)
	if f == nil {
		f = r.reserve(e)
	}
	if f != nil {
		if p != nil {
			p.drop()
		}
		return r.refuse(o, f)
	}
	err := r.journal.step(record{ID: o.ID, State: wire.JAccepted, Digest: o.Digest, Instance: r.instance, Project: p.ID, Key: o.Key, Payload: o.Payload}, false)
	if err != nil {
		r.release(e)
		r.work.Done()
		p.drop()
		if first, ok := r.repeat(o); ok {
			return first
		}
		if reply, known := r.answerKnown(o.ID, o.Digest); known {
			return reply
		}
		return wire.OfferReply{State: wire.JRefused, Fault: unwritable(err)}
	}
	r.mu.Lock()
	r.execs[o.ID] = e
	r.mu.Unlock()
	go func() {
		defer r.work.Done()
		defer p.drop()
		r.carry(link, e)
	}()
	return wire.OfferReply{Accepted: true, State: wire.JAccepted}
}

// answerKnown answers from the journal: a known id is never started again (EXE-38).
func (r *Runner) answerKnown(id event.ExecutionID, digest string) (wire.OfferReply, bool) {
	known, ok := r.journal.find(id)
	if !ok {
		return wire.OfferReply{}, false
	}
	if known.digest != "" && known.digest != digest {
		return wire.OfferReply{State: known.state,
			Fault: fault.New(fault.ExecutionConflict, "this execution id was used for another command")}, true
	}
	reply := wire.OfferReply{Accepted: true, State: known.state, Known: r.resultOf(id, known)}
	return reply, true
}

// resultOf is the end of an id with its output where this life still has it.
func (r *Runner) resultOf(id event.ExecutionID, known entry) *wire.Result {
	r.mu.Lock()
	e := r.execs[id]
	r.mu.Unlock()
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.result != nil {
			return e.result
		}
		if known.result != nil && e.ending != nil {
			return e.ending
		}
	}
	if known.result != nil {
		return known.result
	}
	if final(known.state) {
		return &wire.Result{ID: id, Digest: known.digest, Instance: known.instance, State: known.state}
	}
	return nil
}

func (r *Runner) refuse(o wire.Offer, f *fault.Error) wire.OfferReply {
	f.ExecutionState = string(event.NotStarted)
	res := &wire.Result{ID: o.ID, Digest: o.Digest, Instance: r.instance, State: wire.JRefused, Fault: f}
	if err := r.journal.step(record{ID: o.ID, State: wire.JRefused, Digest: o.Digest, Instance: r.instance, Result: res}, false); err != nil {
		if reply, known := r.answerKnown(o.ID, o.Digest); known {
			return reply
		}
	}
	return wire.OfferReply{State: wire.JRefused, Fault: f}
}

// check is the Runner's own word on an offer, whatever the server has checked (AUTH-19). A
// Project that it gives is held, with a fault too.
func (r *Runner) check(o wire.Offer) (*Project, *fault.Error) {
	info, known := wire.Ops[o.Op]
	if !known || !info.Effect {
		return nil, refusal("unknown_op", "the Runner knows no such effect")
	}
	p, f := r.fence(o.Op, o.Fence)
	if f != nil {
		return nil, f
	}
	limit := time.Duration(o.Bounds.TimeoutMS) * time.Millisecond
	if limit < wire.MinTimeout || limit > wire.MaxTimeout {
		return p, refusal("timeout", "a time limit is 1 s to 1 h")
	}
	if isProcess(o.Op) || o.Op == wire.OpDetached && r.o.Supervisor != nil {
		_, f := readProcess(o)
		return p, f
	}
	if remote, ok := r.remotes[o.Op]; ok {
		return p, remote.check(o.Body)
	}
	if r.effects[o.Op] == nil {
		return p, refusal("no_capability", "this Runner cannot do that")
	}
	return p, nil
}

// fence checks that a request means this life, a Project that is served, and the very root. The
// Project that it gives is held. An op of the Runner itself has no Project, and gets a stand-in.
func (r *Runner) fence(op wire.Op, f wire.Fence) (*Project, *fault.Error) {
	if f.Client != r.o.Client || f.Instance != r.instance {
		return nil, refusal("fence_instance", "the request was meant for another Runner life")
	}
	if op.OfRunner() {
		if f.Project != "" || f.Root != "" {
			return nil, refusal("fence_project", "the request is for the Runner and names a Project")
		}
		r.wide.hold()
		return r.wide, nil
	}
	p, err := r.projects.find(f.Project)
	if err != nil {
		return nil, fault.As(err)
	}
	if p.Fingerprint != f.Root {
		p.drop()
		return nil, refusal("fence_root", "the request was meant for another directory")
	}
	return p, nil
}

func refusal(reason, text string) *fault.Error {
	return fault.New(fault.RunnerRefused, "%s", text).WithReason(reason)
}

// reserve takes a place for one more effect, a Job's in the queue, and counts it as work.
func (r *Runner) reserve(e *execution) *fault.Error {
	if n := r.journal.owing(); n >= maxUnsettled {
		return fault.New(fault.TooManyCalls, "the ends of %d executions wait until the server has recorded them", n).
			WithNext("call again shortly")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return fault.New(fault.ShuttingDown, "the Runner is stopping")
	}
	if e.offer.Bounds.Job {
		f := r.queue.enter(e)
		if f == nil {
			r.work.Add(1)
		}
		return f
	}
	if e.offer.Op == wire.OpExecutionInput { // it is needed most where all places are taken by who waits for it
		r.work.Add(1)
		return nil
	}
	select {
	case r.running <- struct{}{}:
		r.work.Add(1)
		return nil
	default:
		return fault.New(fault.TooManyCalls, "%d executions run already", maxRunning).WithNext("stop a Job or wait for one to end")
	}
}

// release gives the place free.
func (r *Runner) release(e *execution) {
	if e.offer.Bounds.Job {
		r.queue.leave(e)
		return
	}
	if e.offer.Op == wire.OpExecutionInput {
		return
	}
	<-r.running
}

// carry takes an accepted offer to its end: claim, grant, start, end, result. While the claim
// is on its way, what a start needs is made ready; nothing of it runs.
func (r *Runner) carry(link context.Context, e *execution) {
	type grant struct {
		limit time.Duration
		ok    bool
	}
	claimed := make(chan grant, 1)
	var ready *prepared
	if e.awaitTurn() {
		go func() {
			limit, ok := r.claim(link, e)
			claimed <- grant{limit, ok}
		}()
		if isProcess(e.offer.Op) {
			ready = r.prepare(e)
		}
	} else {
		claimed <- grant{}
	}
	res := wire.Result{ID: e.offer.ID, Digest: e.offer.Digest, Instance: r.instance, State: wire.JNever}
	if g := <-claimed; g.ok {
		began := time.Now()
		if e.offer.Op == wire.OpDetached {
			var left bool
			if res, left = r.runDetached(e, g.limit, res); left {
				r.release(e)
				return
			}
		} else if remote, ok := r.remotes[e.offer.Op]; ok {
			res = r.runRemote(e, remote, g.limit, res)
		} else if ready != nil {
			res = r.runProcess(e, ready, g.limit, res)
		} else {
			res = r.perform(e, g.limit, res)
		}
		res.DurationMS = time.Since(began).Milliseconds()
	} else {
		res = r.never(e, res)
	}
	if ready != nil {
		ready.clean() // before the end is told: it may take long until the server hears it
	}
	r.release(e)
	r.finish(e, res)
	r.tell(link, res)
	if e.offer.Op == wire.OpDetached {
		r.tidyJobs()
	}
}

// perform makes an effect that is no process; the journal says starting before it.
func (r *Runner) perform(e *execution, limit time.Duration, res wire.Result) wire.Result {
	if err := r.journal.step(record{ID: e.offer.ID, State: wire.JStarting}, true); err != nil {
		return r.notStarted(res, fault.Wrap(err, fault.StorageFull, "the Runner's journal cannot be written; nothing was done"))
	}
	e.set(wire.JStarting)
	body, err := r.callEffect(e, limit)
	res.State, res.Body = wire.JTerminal, body
	switch {
	case err != nil:
		res.Body, res.Fault = nil, fault.As(err)
	case len(body) > wire.MaxResultBody:
		res.Body, res.Fault = nil, fault.New(fault.OutputBudgetExceeded, "it was done, and its answer is too large to return")
		res.Fault.StateChanged = true
	}
	return r.terminal(res)
}

func (r *Runner) callEffect(e *execution, limit time.Duration) (body json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.Error("an effect panicked", "op", e.offer.Op, "stack", string(debug.Stack()))
			f := fault.New(fault.Internal, "the Runner failed inside; what it had changed by then is not known")
			f.StateChanged = true
			body, err = nil, f
		}
	}()
	return r.effects[e.offer.Op](ctx, e.project, e.offer.Body)
}

// notStarted ends an id whose start failed.
func (r *Runner) notStarted(res wire.Result, f *fault.Error) wire.Result {
	f.ExecutionState = string(event.NotStarted)
	res.State, res.Fault = wire.JStartFailed, f
	if err := r.journal.step(record{ID: res.ID, State: wire.JStartFailed, Result: &res}, true); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	return res
}

func (r *Runner) terminal(res wire.Result) wire.Result {
	r.mu.Lock()
	e := r.execs[res.ID]
	r.mu.Unlock()
	if e != nil {
		e.mu.Lock()
		e.ending = &res
		e.mu.Unlock()
	}
	if err := r.journal.step(record{ID: res.ID, State: wire.JTerminal, Result: &res}, true); err != nil {
		r.o.Logger.Error("the journal could not be written", "cause", err)
	}
	return res
}

func (e *execution) set(s wire.JournalState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = s
	if s == wire.JRunning {
		e.started = e.now()
	}
	e.version++
	e.noteLocked()
}

// noteLocked tells observers that something changed.
func (e *execution) noteLocked() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// finish makes the end visible to observers and lets old ends go.
func (r *Runner) finish(e *execution, res wire.Result) {
	e.mu.Lock()
	e.state, e.result = res.State, &res
	e.version++
	e.noteLocked()
	e.mu.Unlock()
	close(e.done)
	e.stop(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retain(e)
}

// tell repeats a result until the server has made it durable.
func (r *Runner) tell(link context.Context, res wire.Result) {
	r.mu.Lock()
	to := r.link
	r.mu.Unlock()
	for pause := resultRetry; link.Err() == nil; pause = min(2*pause, resultRetryMax) {
		ack, err := to.Result(link, res)
		if err == nil && ack.OK {
			break
		}
		select {
		case <-link.Done():
			return
		case <-time.After(pause):
		}
	}
	if res.State == wire.JTerminal && link.Err() == nil {
		if err := r.journal.step(record{ID: res.ID, State: wire.JSettled}, false); err != nil {
			r.o.Logger.Debug("the journal could not note an acknowledgement", "cause", err)
		}
	}
}
