package runner

import (
	"context"
	"runtime/debug"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// query answers from the journal. An absent id is closed first, so that an offer that comes
// late cannot start it after the server was told that it did not.
func (r *Runner) query(q wire.Query) wire.QueryReply {
	if !q.ID.Valid() {
		return absentIn(r.journal.current()) // a question whether this Runner lives
	}
	known, ok := r.journal.find(q.ID)
	reply := absentIn(known.life)
	if !ok {
		err := r.journal.step(record{ID: q.ID, State: wire.JNever}, true)
		if err == nil {
			return reply
		}
		if known, ok = r.journal.find(q.ID); !ok {
			// It could not be closed: absence would be no proof.
			r.o.Logger.Error("the journal could not be written", "cause", err)
			reply.Generation, reply.Boot = "", ""
			return reply
		}
	}
	reply = absentIn(r.journal.current())
	reply.State, reply.Result = known.state, r.resultOf(q.ID, known)
	return reply
}

// absentIn says that an id is not in the journal, which proves something in that generation and
// boot alone.
func absentIn(l life) wire.QueryReply {
	return wire.QueryReply{State: wire.JAbsent, Generation: l.Generation, Boot: l.Boot}
}

// cancel ends an execution of this life; one that ended or never was is no error.
func (r *Runner) cancel(c wire.Cancel) wire.Ack {
	r.mu.Lock()
	e, giveUp := r.execs[c.ID], r.reading[c.ID]
	r.mu.Unlock()
	switch {
	case e == nil && giveUp == nil:
		return wire.Ack{Reason: "unknown"}
	case e == nil:
		giveUp()
		return wire.Ack{OK: true}
	}
	e.mu.Lock()
	over, started := e.result != nil, e.state != wire.JAccepted
	e.mu.Unlock()
	switch {
	case over:
		return wire.Ack{Reason: "ended"}
	case c.Reason == wire.CancelAbandoned && started:
		return wire.Ack{Reason: "started"}
	case c.Reason == wire.CancelAbandoned:
		e.stop(reasonAbandoned)
		return wire.Ack{OK: true}
	}
	e.stop(reasonCancelled)
	return wire.Ack{OK: true}
}

// readable lets a read be given up by its id until it has ended.
func (r *Runner) readable(id event.ExecutionID, giveUp context.CancelFunc) (ended func()) {
	if !id.Valid() {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reading[id] = giveUp
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.reading, id)
	}
}

// read serves a pure read.
func (r *Runner) read(ctx context.Context, q wire.Read) (reply wire.ReadReply) {
	defer func() {
		if p := recover(); p != nil {
			r.o.Logger.Error("a read panicked", "op", q.Op, "stack", string(debug.Stack()))
			reply = wire.ReadReply{Fault: fault.New(fault.Internal, "the Runner failed inside")}
		}
	}()
	p, f := r.fence(q.Op, q.Fence)
	if f != nil {
		return wire.ReadReply{Fault: f}
	}
	defer p.drop()
	do := r.reads[q.Op]
	if do == nil {
		return wire.ReadReply{Fault: refusal("no_capability", "this Runner cannot do that")}
	}
	limit := time.Duration(q.TimeoutMS) * time.Millisecond
	if limit <= 0 || limit > maxReadTime {
		limit = maxReadTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer r.readable(q.ID, cancel)()
	body, err := do(ctx, p, q.Body)
	switch {
	case err != nil && ctx.Err() != nil && fault.KindOf(err) == fault.Internal:
		return wire.ReadReply{Fault: fault.Wrap(err, fault.Timeout, "the Runner did not finish the read in time")}
	case err != nil:
		f := fault.As(err)
		if f.Kind == fault.Internal {
			r.o.Logger.Error("a read failed inside", "op", q.Op, "cause", f.Unwrap())
		}
		return wire.ReadReply{Fault: f}
	case len(body) > wire.MaxResultBody:
		return wire.ReadReply{Fault: fault.New(fault.OutputBudgetExceeded, "the answer is larger than one message").
			WithNext("ask for less at once")}
	}
	return wire.ReadReply{Body: body}
}
