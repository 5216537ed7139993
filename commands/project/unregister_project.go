package project

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// UnregisterIn is the input of unregister_project.
type UnregisterIn struct {
	Project string `json:"project"`
}

// UnregisterOut is its output.
type UnregisterOut struct {
	Project string `json:"project"`
	// Unregistered is false where it was done before.
	Unregistered bool `json:"unregistered"`
	// Ended counts the executions of it that were running.
	Ended int `json:"ended_executions"`
}

// Unregister ends what runs of a Project and serves it no longer. Its files, its Sessions and
// their history stay.
var Unregister = call.Spec{
	Name: "unregister_project", Scopes: []call.Scope{call.ScopeProjectRead, call.ScopeProjectWrite}, Plane: call.PlaneSession, Class: call.Mutate,
	In: UnregisterIn{}, Run: unregister,
}

func unregister(ctx context.Context, c *call.Call) (call.Result, error) {
	p := c.Project
	if p.Root == "" {
		return call.Result{Output: UnregisterOut{Project: p.Project}}, nil
	}
	if err := c.AtRunner(p.Ref.Client); err != nil {
		return call.Result{}, err
	}
	out, facts, err := effect[wire.UnregisterProjectOut](ctx, c, wire.OpUnregisterProject, wire.UnregisterProjectIn{Project: p.Ref.Project})
	if err != nil {
		return call.Result{}, err
	}
	wait, cancel := c.Bounded(ctx, announceWait)
	defer cancel()
	// A Runner that has gone meanwhile serves it no longer either.
	_ = c.Fleet().Await(wait, p.Ref, false)
	if _, err := c.Decide(ctx, event.ProjectAggregate(p.Ref), func(time.Time) ([]event.Event, error) {
		return []event.Event{event.ProjectUnregistered{Project: p.Ref}}, nil
	}); err != nil {
		return call.Result{}, err
	}
	c.Fleet().Forget(p.Ref)
	return call.Result{Output: UnregisterOut{Project: p.Project, Unregistered: true, Ended: out.Ended}, Facts: facts}, nil
}
