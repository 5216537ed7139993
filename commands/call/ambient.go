package call

import (
	"context"
	"runtime/debug"
)

// Addition is a member that an answer carries beside the tool's own output: attention, peer
// messages, context materials (shapes.md 3).
type Addition struct {
	Name  string
	Value any
}

// Ambient looks, after the effect and its evidence, whether there is something to add to the
// answer. failed tells that the tool worked and its result is a failure; a refusal carries no
// additions. It changes neither the result nor who may do what; what it cannot find out it
// leaves away.
type Ambient func(ctx context.Context, c *Call, failed bool) []Addition

func (c *Call) additions(ctx context.Context, failed bool) []Addition {
	var out []Addition
	for _, look := range c.kernel.cfg.Ambient {
		out = append(out, c.beside(ctx, look, failed)...)
	}
	return out
}

// beside asks one Ambient. The effect stands by then, so one that panics adds nothing and takes
// nothing away.
func (c *Call) beside(ctx context.Context, look Ambient, failed bool) (out []Addition) {
	defer func() {
		if p := recover(); p != nil {
			c.Panicked("an answer's addition")
			out = nil
		}
	}()
	return look(ctx, c, failed)
}

// Panicked tells the operator of a panic that was recovered beside the tool: the answer goes on
// without what was being made. It is called in the deferred function that recovers.
func (c *Call) Panicked(what string) {
	c.kernel.cfg.Logger.Error(what+" panicked", "tool", c.req.Spec.Name, "stack", string(debug.Stack()))
}
