package session

import (
	"context"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/call"
	"webcodex/eventlog/event"
	refs "webcodex/projections/access"
	"webcodex/projections/session"
)

// create makes a Session durable under the id. The caller's next number is reserved first and
// bound by the Session's own commit: a crash between the two leaves a gap and nothing else.
func create(ctx context.Context, c *call.Call, id event.SessionID, s Start) error {
	if _, err := DecideStart(s); err != nil {
		return err
	}
	number, err := access.Reserve(ctx, c, event.RefSession)
	if err != nil {
		return err
	}
	_, err = c.Decide(ctx, event.SessionAggregate(id), func(time.Time) ([]event.Event, error) {
		events, err := DecideStart(s)
		if err == nil && number > 0 {
			events = append(events, event.SessionRefBound{Principal: s.Actor.Principal, Number: number})
		}
		return events, err
	})
	return err
}

// sessionRefs are the refs under which the caller knows Sessions, in their order; one that has
// none is empty.
func sessionRefs(ctx context.Context, c *call.Call, cores ...session.Core) []string {
	var targets []refs.Target
	for _, core := range cores {
		if core.Exists() {
			targets = append(targets, refs.SessionTarget(core.ID, core.Nonce))
		}
	}
	given := access.Number(ctx, c, event.RefSession, targets...)
	out := make([]string, len(cores))
	for i, core := range cores {
		if core.Exists() {
			out[i], given = given[0], given[1:]
		}
	}
	return out
}

// projectRef is the ref under which the caller knows the call's Project as it is now; empty
// where there is no Project, or its root is not known (SES-19).
func projectRef(ctx context.Context, c *call.Call) string {
	if c.Project == nil || c.Project.Root == "" {
		return ""
	}
	return access.Number(ctx, c, event.RefProject, refs.ProjectTarget(c.Project.Ref, c.Project.Root))[0]
}
