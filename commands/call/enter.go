package call

import (
	"context"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// enterTimeout is how long the Runner may take to tell of a Project that it made.
const enterTimeout = 15 * time.Second

// Enter goes on with a Project that this very call had made: from now on it is the call's. It
// waits until the Runner has announced it. Error: runner_unavailable; then the Project is there
// all the same, or will be.
func (c *Call) Enter(ctx context.Context, ref event.ProjectRef, root string) error {
	ctx, cancel := context.WithTimeout(ctx, enterTimeout)
	defer cancel()
	if err := c.kernel.fleet.Await(ctx, ref, true); err != nil {
		return err
	}
	t, err := c.kernel.fleet.Target(ref)
	if err != nil {
		return err
	}
	info, ok := c.projectInfo(ref)
	if !ok || t.Root != root {
		return fault.New(fault.RunnerUnavailable, "the Runner tells of another Project than it made").WithNext("call list_projects")
	}
	c.Target, c.Project = &t, &info
	return nil
}
