package call

import (
	"context"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// queryTimeout bounds one question to a Runner's journal at start, recoverPause is the time that it
// takes to drop what has not started.
const (
	queryTimeout = 10 * time.Second
	recoverPause = 5 * time.Millisecond
)

// Recovered counts what Recover gave its end.
type Recovered struct{ Calls, Jobs int }

// Recover closes what dead server instances left open: each open call gets one finish, each
// open Job its terminal marker, with what the Runner's journal proves, else outcome_unknown.
// What still runs at a Runner that outlived the server goes on as a Job under the same id, and a
// Job whose Runner is not there yet stays open until it can be asked (faults.md 3.8).
// It runs once, after the Runners of this process are connected and before callers are served.
func (k *Kernel) Recover(ctx context.Context) (closed Recovered, err error) {
	unfinished, err := k.cfg.Sessions.Open()
	if err != nil {
		return closed, fault.Wrap(err, fault.Unavailable, "what the last life left open cannot be read").
			WithNext("start again; the read models are made again from the log")
	}
	for _, w := range unfinished {
		if _, err := k.cfg.Log.Head(event.SessionAggregate(w.Session)); fault.KindOf(err) == fault.LogDamaged {
			// It takes no commit any more; the other Sessions go on.
			k.cfg.Logger.Error("a damaged Session keeps its open calls", "session", w.Session)
			continue
		}
		for _, open := range w.Calls {
			if open.Server == k.cfg.Server {
				continue
			}
			if err := k.closeCall(ctx, w.Session, open); err != nil {
				return closed, err
			}
			closed.Calls++
		}
		for _, job := range w.Jobs {
			if job.Server == k.cfg.Server {
				continue
			}
			facts, ms, found := k.ask(ctx, &job.Execution)
			if found != settledFound {
				k.adopt(w.Session, job.Execution, job.Tool, job.Input)
				continue
			}
			actor := event.Actor{Credential: "system"}
			if err := k.recordEnd(ctx, w.Session, actor, event.NewInvocationID(), job.Execution.ID, facts, ms); err != nil {
				return closed, err
			}
			closed.Jobs++
		}
	}
	return closed, nil
}

func (k *Kernel) closeCall(ctx context.Context, id event.SessionID, open session.OpenCall) error {
	s := open.Started
	facts, ms, found := k.ask(ctx, s.Execution)
	if found == aliveFound {
		facts = Facts{Promoted: true, Effect: event.Effect{CommandStarted: true, State: event.Started}}
	}
	_, err := k.writer.Do(ctx, aggregate.Command{Aggregate: event.SessionAggregate(id), Actor: open.Actor,
		Invocation: open.Inv, Reserve: true}, func(time.Time) ([]event.Event, error) {
		core, err := k.cfg.Sessions.Target(id)
		if err != nil {
			return nil, err
		}
		if _, still := core.Open[s.Call]; !still {
			return nil, nil
		}
		e := event.ToolCallFinished{Call: s.Call, Role: s.Role, Tool: s.Tool, Transport: s.Transport, DurationMS: ms, Recovered: true}
		if s.Execution != nil {
			e.Execution = s.Execution.ID
		}
		if !facts.Promoted {
			facts = facts.judged(s.Validates, s.Input.MinTests)
		}
		if facts.Effect.StateChanged && facts.Effect.State == event.Completed {
			facts.Changed = s.Input.Paths
		}
		failed := !facts.Promoted && (facts.FailureKind != "" || facts.Effect.State != event.Completed)
		if failed {
			facts.ErrorSummary = "the server ended before it could answer; this is what the Runner's journal proves"
		}
		e = finishFrom(e, facts, failed, "", nil)
		if s.Execution != nil && runs(wire.Op(s.Execution.Op)) {
			e.Expectation = evidence.Classify(s.Input, evidence.Ended(e))
		}
		return []event.Event{e}, nil
	})
	if err == nil && found != settledFound {
		k.adopt(id, *s.Execution, s.Tool, s.Input)
	}
	return err
}

// adopt lets the end of an execution be recorded when its Runner tells it.
func (k *Kernel) adopt(id event.SessionID, x event.Execution, tool string, in event.Input) {
	core, err := k.cfg.Sessions.Target(id)
	if err != nil {
		return
	}
	target := Target{Ref: core.Project, Instance: x.Instance, Root: x.Root, Generation: x.Generation, Boot: x.Boot}
	if !wire.Op(x.Op).OfShell() {
		k.jobs.addNew(Job{ID: x.ID, Target: target, Authority: core.Authority, Session: id, Tool: tool, Past: true})
	}
	limit := time.Duration(in.TimeoutSecs) * time.Second
	if limit == 0 {
		limit = wire.MaxTimeout
	}
	k.fleet.Adopt(Execution{Target: target, Offer: wire.Offer{ID: x.ID, Digest: x.Digest, Op: wire.Op(x.Op), Bounds: wire.Bounds{TimeoutMS: limit.Milliseconds()}},
		Ready: func(context.Context) error {
			return fault.New(fault.Unavailable, "it is of an earlier server life")
		},
		Alive: func() { k.jobs.reconcile(x.ID) },
		Late: func(ctx context.Context, r wire.Result) error {
			k.late.begin()
			defer k.late.leave()
			k.jobs.end(x.ID)
			return k.recordEnd(ctx, id, event.Actor{Credential: "system"}, event.NewInvocationID(), x.ID, provenOf(wire.Op(x.Op), r), r.DurationMS)
		}})
}

// What ask found.
type found int

const (
	settledFound found = iota // the facts are all that will ever be known
	aliveFound                // its Runner has it in hand
	awayFound                 // its Runner cannot be asked now
)

// ask turns the journal's word into facts (faults.md 3, the crash table).
func (k *Kernel) ask(ctx context.Context, x *event.Execution) (Facts, int64, found) {
	unknown := Facts{ErrorKind: string(fault.OutcomeUnknown), FailureKind: string(fault.OutcomeUnknown),
		Effect: event.Effect{State: event.OutcomeUnknown, CommandStarted: true}}
	if x == nil { // it made no effect on a Runner, and a decision of our own may stand
		unknown.Effect.CommandStarted, unknown.Effect.StateChanged = false, true
		return unknown, 0, settledFound
	}
	unknown.Effect.StateChanged = wire.Op(x.Op).ChangesFiles()
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	q, err := k.fleet.Query(ctx, x.Client, x.ID)
	for err == nil && q.State == wire.JAccepted && ctx.Err() == nil {
		// It waits for a grant, or for a slot before that, which no server will give any more.
		if _, err = k.fleet.Cancel(ctx, x.Client, x.ID, wire.CancelAbandoned); err != nil {
			break
		}
		time.Sleep(recoverPause)
		q, err = k.fleet.Query(ctx, x.Client, x.ID)
	}
	if err != nil {
		return unknown, 0, awayFound
	}
	switch q.State {
	case wire.JAccepted, wire.JStarting, wire.JRunning:
		if wire.Op(x.Op).OfShell() { // its shell ends with the server, so it is no Job (SHL-27)
			return unknown, 0, awayFound
		}
		return unknown, 0, aliveFound
	case wire.JTerminal, wire.JSettled:
		if q.Result == nil {
			return unknown, 0, settledFound
		}
		return provenOf(wire.Op(x.Op), *q.Result), q.Result.DurationMS, settledFound
	case wire.JNever, wire.JRefused, wire.JStartFailed:
		r := wire.Result{State: q.State}
		if q.Result != nil {
			r.Fault = q.Result.Fault
		}
		return FactsOf(r), 0, settledFound
	case wire.JAbsent:
		if x.Generation != "" && q.Generation == x.Generation && q.Boot == x.Boot {
			return FactsOf(wire.Result{State: wire.JNever}), 0, settledFound
		}
		return unknown, 0, settledFound
	default:
		return unknown, 0, settledFound
	}
}

// provenFacts are the facts of a journaled end. The journal keeps no output of an effect that
// is not a process (a change of files): where it ended without a fault, files were changed.
func provenFacts(r wire.Result) Facts {
	f := FactsOf(r)
	f.Effect.StateChanged = f.Effect.StateChanged || f.Effect.State == event.Completed && r.Process == nil && r.Fault == nil
	return f
}

// provenOf is provenFacts where the op is known: what was done to a shell is no change of files.
func provenOf(op wire.Op, r wire.Result) Facts {
	f := provenFacts(r)
	if op.OfShell() {
		f.Effect.StateChanged = r.Fault != nil && r.Fault.StateChanged
	}
	return f
}
