package session

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// UpdateContextIn is the input of update_session_context. An empty context clears.
type UpdateContextIn struct {
	Project   string     `json:"project"`
	SessionID string     `json:"session_id"`
	Context   *ContextIn `json:"execution_context"`
}

// UpdateContextOut is its output.
type UpdateContextOut struct {
	SessionID event.SessionID        `json:"session_id"`
	Project   string                 `json:"project"`
	Context   event.ExecutionContext `json:"execution_context"`
	Previous  event.ExecutionContext `json:"previous_execution_context"`
	Changed   bool                   `json:"changed"`
	UpdatedAt string                 `json:"updated_at"`
}

// UpdateContext replaces the execution defaults of a Session as a whole. The call leaves only
// its own event (ruling 1), and none where the defaults are equal.
var UpdateContext = call.Spec{
	Name: "update_session_context", Scopes: []call.Scope{call.ScopeProjectWrite}, Plane: call.PlaneSession, Class: call.Mutate,
	In: UpdateContextIn{}, Run: updateContext,
}

func updateContext(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[UpdateContextIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	if in.Project == "" {
		return call.Result{}, fault.New(fault.InvalidArguments, "name the project of the Session").WithField("project")
	}
	if in.Context == nil {
		return call.Result{}, fault.New(fault.InvalidArguments, "give the execution_context; an empty one clears the defaults").
			WithField("execution_context")
	}
	to, err := in.Context.Event(!c.Session.Project.Zero())
	if err != nil {
		return call.Result{}, err
	}
	id := c.Session.ID
	var before event.ExecutionContext
	receipt, err := c.Decide(ctx, event.SessionAggregate(id), func(time.Time) ([]event.Event, error) {
		core, err := c.Current(id)
		if err != nil {
			return nil, err
		}
		before = core.Context
		return DecideContext(core, *to)
	})
	if err != nil {
		return call.Result{}, err
	}
	core, _ := c.Sessions().Core(id)
	return call.Result{Output: UpdateContextOut{SessionID: id, Project: projectName(core.Project), Context: *to, Previous: before,
		Changed: receipt.Seq != 0, UpdatedAt: event.FormatTime(core.UpdatedAt)}}, nil
}
