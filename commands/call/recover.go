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

// queryTimeout bounds one question to a Runner's journal at start.
const queryTimeout = 10 * time.Second

// Recovered counts what Recover gave its end.
type Recovered struct{ Calls, Jobs int }

// Recover closes what dead server instances left open: each open call gets one finish, each
// open Job its terminal marker, with what the Runner's journal proves, else outcome_unknown.
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
			facts, ms := k.ask(ctx, &job.Execution)
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
	facts, ms := k.ask(ctx, s.Execution)
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
		facts = facts.judged(s.Validates, s.Input.MinTests)
		if facts.Effect.StateChanged && facts.Effect.State == event.Completed {
			facts.Changed = s.Input.Paths
		}
		failed := facts.FailureKind != "" || facts.Effect.State != event.Completed
		if failed {
			facts.ErrorSummary = "the server ended before it could answer; this is what the Runner's journal proves"
		}
		e = finishFrom(e, facts, failed, "", nil)
		if s.Execution != nil && runs(wire.Op(s.Execution.Op)) {
			e.Expectation = evidence.Classify(s.Input, evidence.Ended(e))
		}
		return []event.Event{e}, nil
	})
	return err
}

// ask turns the journal's word into facts (faults.md 3, the crash table).
func (k *Kernel) ask(ctx context.Context, x *event.Execution) (Facts, int64) {
	unknown := Facts{ErrorKind: string(fault.OutcomeUnknown), FailureKind: string(fault.OutcomeUnknown),
		Effect: event.Effect{State: event.OutcomeUnknown, CommandStarted: true}}
	if x == nil { // it made no effect on a Runner, and a decision of our own may stand
		unknown.Effect.CommandStarted, unknown.Effect.StateChanged = false, true
		return unknown, 0
	}
	unknown.Effect.StateChanged = wire.Op(x.Op).ChangesFiles()
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	q, err := k.fleet.Query(ctx, x.Client, x.ID)
	if err != nil {
		return unknown, 0
	}
	switch q.State {
	case wire.JTerminal, wire.JSettled:
		if q.Result == nil {
			return unknown, 0
		}
		return provenFacts(*q.Result), q.Result.DurationMS
	case wire.JNever, wire.JRefused, wire.JStartFailed:
		r := wire.Result{State: q.State}
		if q.Result != nil {
			r.Fault = q.Result.Fault
		}
		return FactsOf(r), 0
	case wire.JAbsent:
		if x.Generation != "" && q.Generation == x.Generation && q.Boot == x.Boot {
			return FactsOf(wire.Result{State: wire.JNever}), 0
		}
		return unknown, 0
	default:
		return unknown, 0
	}
}

// provenFacts are the facts of a journaled end. The journal keeps no output of an effect that
// is not a process (a change of files): where it ended without a fault, files were changed.
func provenFacts(r wire.Result) Facts {
	f := FactsOf(r)
	f.Effect.StateChanged = f.Effect.StateChanged || r.Process == nil && r.Fault == nil
	return f
}
