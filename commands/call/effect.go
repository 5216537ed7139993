package call

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/internal/fault"
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
	body, err := json.Marshal(in)
	if err != nil {
		return out, fault.Wrap(err, fault.Internal, "the request could not be encoded")
	}
	reply, err := c.kernel.fleet.Ask(ctx, *c.Target, op, body, ReadTimeout)
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
	// Facts turns the proven end into what is recorded; used for late ends too.
	Facts func(wire.Result) Facts
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
