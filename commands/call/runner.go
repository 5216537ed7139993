package call

import (
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// AtRunner makes a Runner itself the Call's Target, for an op about its Projects. A credential for
// named Projects is not good for it. Errors: insufficient_scope, unknown_client_id,
// runner_unavailable.
func (c *Call) AtRunner(client event.ClientID) error {
	if c.Principal.Only != nil {
		return fault.New(fault.InsufficientScope, "this credential is good for named Projects only").WithReason("named_projects")
	}
	t, err := c.kernel.fleet.Runner(client)
	if err != nil {
		return err
	}
	c.Target = &t
	return nil
}

// Choose makes a Project that the arguments name in another way the Call's own, under the same
// checks as one that they name by its id.
func (c *Call) Choose(ref event.ProjectRef) error {
	if err := c.nameProject(ref.String()); err != nil {
		return err
	}
	c.named, c.Target = true, nil
	if err := c.matchRecorder(); err != nil {
		return err
	}
	return c.findRunner()
}
