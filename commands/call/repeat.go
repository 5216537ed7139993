package call

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// keyOp is what an idempotency key is digested under; no Runner knows it.
const keyOp wire.Op = "idempotency_key"

// keyDigits is how much of a digest stands for a key or a payload: 128 bits.
const keyDigits = 32

// Pauses between two questions about an execution that still runs.
const (
	repeatPause    = 5 * time.Millisecond
	repeatPauseMax = 250 * time.Millisecond
)

// keyed puts what stands for the caller's key into an offer. A key belongs to one principal and
// one Project: another's is another, and tells nothing about this one. The payload is what would
// run: the op, its input and its limit; how long the answer waits is not part of it.
func (c *Call) keyed(o *wire.Offer, key string) {
	if key == "" {
		return
	}
	scope, _ := json.Marshal([]string{c.Principal.Actor.Principal, key})
	ref := wire.Fence{Client: o.Fence.Client, Project: o.Fence.Project}
	o.Key = c.kernel.fleet.Digest(wire.Offer{Op: keyOp, Fence: ref, Body: scope})[:keyDigits]
	o.Payload = c.kernel.fleet.Digest(wire.Offer{Op: o.Op, Fence: ref, Body: o.Body, Bounds: wire.Bounds{TimeoutMS: o.Bounds.TimeoutMS}})[:keyDigits]
}

// repeat answers with the first execution of a key: its end, as far as the Runner still knows
// it, or the Job that it is after grace. It starts nothing, whatever became of the first one.
func (c *Call) repeat(ctx context.Context, op wire.Op, first event.ExecutionID, grace time.Duration) (Outcome, error) {
	c.replayed = first
	out, err := c.first(ctx, first, grace)
	if err == nil && (out.Promoted || op == wire.OpDetached) {
		// A detached one is answered as a Job also where it has ended, and the call that began it was
		// closed by a start of the server.
		j := c.job(wire.Offer{ID: first})
		j.Ended = !out.Promoted
		c.kernel.jobs.addNew(j)
	}
	out, err = c.judge(ctx, op, out, err)
	if err != nil {
		f := *fault.As(err)
		f.Details = maps.Clone(f.Details)
		return out, f.With("replayed", true).With("execution_id", first)
	}
	out.First = first
	return out, nil
}

// first asks the Runner about the first execution until it has ended or grace is over.
func (c *Call) first(ctx context.Context, id event.ExecutionID, grace time.Duration) (Outcome, error) {
	over := time.NewTimer(max(grace, time.Millisecond))
	defer over.Stop()
	for pause := repeatPause; ; pause = min(2*pause, repeatPauseMax) {
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), queryTimeout)
		q, err := c.kernel.fleet.Query(ask, c.Target.Ref.Client, id)
		cancel()
		if err != nil {
			return Outcome{}, err
		}
		switch q.State {
		case wire.JAccepted, wire.JStarting, wire.JRunning:
		default:
			if q.Result == nil {
				return Outcome{Unknown: true}, nil
			}
			return Outcome{Result: q.Result}, nil
		}
		select {
		case <-time.After(pause):
		case <-over.C:
			return Outcome{Promoted: true}, nil
		case <-ctx.Done():
			return Outcome{Promoted: true}, nil
		}
	}
}

// repeated is the evidence of a call that repeated another: it started nothing, and neither
// fails nor proves anything of its own.
func (c *Call) repeated(e event.ToolCallFinished) event.ToolCallFinished {
	e = finishFrom(e, Facts{Effect: event.Effect{State: event.NotStarted}}, false, "", nil)
	e.Replays = c.replayed
	return e
}
