package call

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// ReadTimeout bounds one pure read on a Runner.
const ReadTimeout = 30 * time.Second

// Ask makes a pure read on the Call's Target and decodes its answer.
func Ask[Out any](ctx context.Context, c *Call, op wire.Op, in any) (Out, error) {
	var out Out
	if c.Target == nil {
		return out, fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected")
	}
	return AskTarget[Out](ctx, c, *c.Target, op, in, ReadTimeout)
}

// AskTarget is Ask on a Target that the tool has found itself, with its own time limit.
func AskTarget[Out any](ctx context.Context, c *Call, t Target, op wire.Op, in any, timeout time.Duration) (Out, error) {
	var out Out
	body, err := json.Marshal(in)
	if err != nil {
		return out, fault.Wrap(err, fault.Internal, "the request could not be encoded")
	}
	reply, err := c.kernel.fleet.Ask(ctx, t, op, body, timeout)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(reply, &out); err != nil {
		return out, fault.Wrap(err, fault.Internal, "the Runner's answer could not be read")
	}
	return out, nil
}

// EffectOptions of one effect.
type EffectOptions struct {
	// Timeout of the effect itself on the Runner.
	Timeout time.Duration
	// Grace after which it becomes a Job; 0: never.
	Grace time.Duration
	// Job: it is one from the start. It waits for a slot of its Runner, and Timeout counts from
	// when it has one.
	Job bool
	// Facts turns the proven end into what is recorded; used for late ends too.
	Facts func(wire.Result) Facts
	// Validates is what a validating run covers; it is durable with the start, so that an end
	// is judged in the same way whoever finds it.
	Validates *event.ValidationScope
	// Key is the caller's idempotency key, empty: none. Where it stands for an execution already,
	// that one is answered and nothing is started; idempotency_conflict where it stands for another
	// effect.
	Key string
}

// Decode is strict decoding of arguments that the edge has validated; a failure here is a
// field the schema does not know, so it names itself.
func Decode[In any](c *Call) (In, error) {
	var in In
	if len(c.Args) == 0 {
		return in, nil
	}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return in, fault.Wrap(err, fault.InvalidArguments, "the arguments could not be read")
	}
	return in, nil
}

// Effect makes one effect on the Call's Target, at most once: the start is committed where a
// Session is named while the offer is on its way, and the grant waits for it. A proven fault
// (refused, edit conflict, spawn failed) comes back as the error; outcome_unknown is its own
// fault and never retried. Outcome.Result is set, or Outcome.Promoted. A tool makes at most
// one effect a call that is recorded.
func (c *Call) Effect(ctx context.Context, op wire.Op, in any, o EffectOptions) (Outcome, error) {
	if c.Target == nil {
		return Outcome{}, fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected").WithNext("call list_projects")
	}
	if c.execution != "" && len(c.legs) > 0 || c.opened() {
		return Outcome{}, fault.New(fault.Internal, "a call makes one effect, and no decision before it")
	}
	if err := c.kernel.cfg.Log.Admit(); err != nil {
		return Outcome{}, err
	}
	offer, err := c.offer(op, in, o)
	if err != nil {
		return Outcome{}, err
	}
	c.execution, c.validates = offer.ID, o.Validates
	start := c.commitStart(ctx, offer)
	x := Execution{Target: *c.Target, Offer: offer, Ready: start.wait, Grace: o.Grace,
		CancelOnDone: c.req.CancelOnDisconnect && !o.Job, Late: c.late(offer, o), Settled: c.settled}
	run := ctx
	if !x.CancelOnDone {
		run = context.WithoutCancel(ctx)
	}
	out, err := c.kernel.fleet.Run(run, x)
	if out.Promoted {
		// Its end is told after this call has settled, so it cannot come first.
		c.kernel.jobs.add(c.job(offer))
	}
	if serr := start.wait(context.WithoutCancel(ctx)); serr != nil {
		return Outcome{}, serr
	}
	if out.First != "" {
		return c.repeat(ctx, op, out.First, o.Grace)
	}
	if out.Result != nil {
		c.kernel.jobs.end(offer.ID) // a repeat may have found it running
	}
	return c.judge(ctx, op, out, err)
}

// Execution is the id of the effect this call made or repeated, empty before Effect.
func (c *Call) Execution() event.ExecutionID {
	if c.replayed != "" {
		return c.replayed
	}
	return c.execution
}

func (c *Call) offer(op wire.Op, in any, o EffectOptions) (wire.Offer, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return wire.Offer{}, fault.Wrap(err, fault.Internal, "the request could not be encoded")
	}
	t := c.Target
	offer := wire.Offer{ID: event.NewExecutionID(), Op: op, Body: body, Bounds: wire.Bounds{TimeoutMS: o.Timeout.Milliseconds(), Job: o.Job},
		Fence: wire.Fence{Client: t.Ref.Client, Instance: t.Instance, Project: t.Ref.Project, Root: t.Root}}
	if len(body) > wire.MaxMessage-offerOverhead {
		return wire.Offer{}, fault.New(fault.InvalidArguments, "the request is larger than a Runner takes in one message").
			WithNext("send less at once, or put large data into files")
	}
	c.keyed(&offer, o.Key)
	offer.Digest = c.kernel.fleet.Digest(offer)
	return offer, nil
}

// offerOverhead is the room an offer needs besides its body.
const offerOverhead = 4 << 10

// starting is the start commit in flight; wait may be called by several goroutines.
type starting struct {
	done chan struct{}
	err  error // set before done is closed
}

func (s *starting) wait(ctx context.Context) error {
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Call) commitStart(ctx context.Context, offer wire.Offer) *starting {
	s := &starting{done: make(chan struct{})}
	if len(c.legs) == 0 {
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		t := c.Target
		x := &event.Execution{ID: offer.ID, Client: t.Ref.Client, Instance: t.Instance, Root: t.Root, Digest: offer.Digest,
			Op: string(offer.Op), Generation: t.Generation, Boot: t.Boot}
		keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer cancel()
		s.err = c.start(keep, x)
	}()
	return s
}

// judge turns a Runner's word into the call's: only proof of not starting says not_started.
func (c *Call) judge(ctx context.Context, op wire.Op, out Outcome, err error) (Outcome, error) {
	if err != nil {
		return Outcome{}, err
	}
	switch {
	case out.Promoted:
		return out, nil
	case out.Unknown || out.Result == nil:
		return Outcome{}, unknownOutcome(op)
	}
	r := out.Result
	switch r.State {
	case wire.JTerminal, wire.JSettled:
		if r.Fault != nil {
			return Outcome{}, r.Fault
		}
		return out, nil
	case wire.JRefused, wire.JStartFailed:
		if r.Fault != nil {
			f := *r.Fault
			if f.ExecutionState == "" {
				f.ExecutionState = string(event.NotStarted)
			}
			return Outcome{}, &f
		}
	case wire.JNever:
	default:
		if r.Fault != nil && r.Fault.ExecutionState == string(event.OutcomeUnknown) {
			return Outcome{}, r.Fault // the Runner itself says what it does not know
		}
		return Outcome{}, unknownOutcome(op)
	}
	f := fault.New(fault.RunnerUnavailable, "the Runner did not start it").WithNext("call again")
	if ctx.Err() != nil {
		f = fault.New(fault.Cancelled, "the call was cancelled before it started")
	}
	f.ExecutionState = string(event.NotStarted)
	return Outcome{}, f
}

func unknownOutcome(op wire.Op) *fault.Error {
	f := fault.New(fault.OutcomeUnknown, "it may have run, and nobody can tell how it ended; it is not repeated").
		WithNext("look at what changed (get_git_status, read_files) before deciding to run it again")
	f.ExecutionState, f.CommandStarted, f.StateChanged = string(event.OutcomeUnknown), true, op.ChangesFiles()
	return f
}

// late records an end that came after the call's answer: the terminal marker of a Job, or
// later proof about an unknown outcome. It waits for the call's own finish first.
func (c *Call) late(offer wire.Offer, o EffectOptions) func(context.Context, wire.Result) error {
	return func(ctx context.Context, r wire.Result) error {
		c.kernel.late.begin()
		defer c.kernel.late.leave()
		select {
		case <-c.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
		c.kernel.jobs.end(offer.ID)
		if len(c.legs) == 0 {
			return nil
		}
		var facts Facts
		if o.Facts != nil {
			facts = o.Facts(r)
		} else {
			facts = FactsOf(r)
		}
		for _, l := range c.legs {
			if err := c.kernel.recordEnd(ctx, l.id, c.Principal.Actor, c.Invocation, offer.ID, facts, r.DurationMS); err != nil {
				return err
			}
		}
		return nil
	}
}

// recordEnd commits the late end of an execution once: a Job's marker, or the reconciliation
// of a call that answered outcome_unknown. A second end of the same id writes nothing.
func (k *Kernel) recordEnd(ctx context.Context, id event.SessionID, actor event.Actor, inv event.InvocationID,
	x event.ExecutionID, facts Facts, ms int64) error {
	receipt, err := k.writer.Do(ctx, aggregate.Command{Aggregate: event.SessionAggregate(id), Actor: actor, Invocation: inv, Reserve: true},
		func(time.Time) ([]event.Event, error) {
			core, err := k.cfg.Sessions.Target(id)
			if fault.KindOf(err) == fault.UnknownSessionID {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			job, promoted := core.Jobs[x]
			if !promoted && !slices.ContainsFunc(core.Unknown, func(u session.Unknown) bool { return u.Execution == x }) {
				return nil, nil
			}
			if !promoted {
				return []event.Event{event.ExecutionReconciled{Execution: x, ExitCode: facts.ExitCode, Effect: facts.Effect}}, nil
			}
			end, err := k.jobEnd(id, job, facts)
			if err != nil {
				return nil, err
			}
			end.DurationMS = ms
			return []event.Event{end}, nil
		})
	if receipt.Seq > 0 {
		k.atRest(ctx, id)
	}
	return err
}

// FactsOf is what any Runner result proves, without knowing the tool.
func FactsOf(r wire.Result) Facts {
	f := Facts{FinishedAt: r.EndedAt, process: r.Process}
	switch r.State {
	case wire.JTerminal, wire.JSettled:
		f.Effect.State = event.Completed
	case wire.JNever, wire.JRefused, wire.JStartFailed:
		f.Effect.State = event.NotStarted
		f.FailureKind = string(r.State)
	default:
		f.Effect = event.Effect{State: event.OutcomeUnknown, CommandStarted: true}
		f.FailureKind = string(r.State)
	}
	if r.Fault != nil {
		f.ErrorKind = string(r.Fault.Kind)
		if r.State == wire.JTerminal || r.Fault.FailureKind != "" {
			f.FailureKind = r.Fault.FailureKind
		}
		f.Effect.StateChanged = r.Fault.StateChanged
	}
	if p := r.Process; p != nil {
		f.ExitCode = p.ExitCode
		f.Effect.CommandStarted, f.Effect.CommandCompleted = p.Started, p.Completed
		switch {
		case p.TimedOut:
			f.Effect.State, f.FailureKind = event.TimedOut, "timed_out"
		case p.Cancelled:
			f.Effect.State, f.FailureKind = event.Cancelled, "cancelled"
		case p.Signal != "":
			f.FailureKind = "signal"
		case p.ExitCode != nil && *p.ExitCode != 0:
			f.FailureKind = "exit_status"
		}
	}
	return f
}
