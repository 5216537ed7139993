package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// ListIn is the input of list_sessions.
type ListIn struct {
	Project   string `json:"project"`
	Lifecycle string `json:"lifecycle,omitempty"`
	Offset    int    `json:"offset,omitempty"`
	Limit     *int   `json:"limit,omitempty"`
}

// ListSessions finds the caller's Sessions of a Project, for a window that has lost its id
// (LST-01). It needs no link to an earlier window, only the authority (LST-02). Rows carry the
// caller's refs; a number for one that has none is all that is ever written (LST-09).
var ListSessions = call.Spec{
	Name: "list_sessions", Scopes: []call.Scope{call.ScopeRuntimeRead, call.ScopeProjectRead}, Plane: call.PlaneSession,
	Class: call.Observe, In: ListIn{}, Run: listSessions,
}

func listSessions(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if c.Project == nil {
		return call.Result{}, fault.New(fault.InvalidArguments, "name the project whose Sessions to list").WithField("project").
			WithNext("call list_projects")
	}
	lifecycle, err := session.ParseLifecycle(in.Lifecycle)
	if err != nil {
		return call.Result{}, err
	}
	page, err := c.Sessions().Page(session.Filter{Authority: c.Principal.Actor.Authority, Project: c.Project.Ref, Lifecycle: lifecycle}, in.Offset, in.Limit)
	if err != nil {
		return call.Result{}, err
	}
	cores := make([]session.Core, len(page.Sessions))
	for i, row := range page.Sessions {
		cores[i], _ = c.Sessions().Core(row.SessionID) // one removed meanwhile gets no ref
	}
	for i, ref := range sessionRefs(ctx, c, cores...) {
		page.Sessions[i].SessionRef = ref
	}
	return call.Result{Output: page}, nil
}
