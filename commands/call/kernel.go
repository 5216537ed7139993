package call

import (
	"context"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Kernel runs calls.
type Kernel struct {
	fleet Fleet
}

// Call runs one tool call to its answer. The error is a *fault.Error or nil.
func (k *Kernel) Call(ctx context.Context, req Request) (Response, error) {
	return Response{}, fault.New(fault.Internal, "not wired")
}

// Effect makes one effect on the Call's Target: the start is committed first where a Session
// is named, then offer, claim and grant; a fault of the Runner (refused, edit conflict, spawn
// failed) comes back as the error with nothing started, outcome_unknown as its own fault.
// Outcome.Result is set, or Outcome.Promoted.
func (c *Call) Effect(ctx context.Context, op wire.Op, in any, o EffectOptions) (Outcome, error) {
	return Outcome{}, fault.New(fault.Internal, "not wired")
}
