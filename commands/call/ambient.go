package call

import "context"

// Addition is a member that an answer carries beside the tool's own output: attention, peer
// messages, context materials (shapes.md 3).
type Addition struct {
	Name  string
	Value any
}

// Ambient looks, after the effect and its evidence, whether there is something to add to the
// answer. failed tells that the tool was refused or failed. It changes neither the result nor
// who may do what; what it cannot find out it leaves away.
type Ambient func(ctx context.Context, c *Call, failed bool) []Addition

func (c *Call) additions(ctx context.Context, failed bool) []Addition {
	var out []Addition
	for _, look := range c.kernel.cfg.Ambient {
		out = append(out, look(ctx, c, failed)...)
	}
	return out
}
