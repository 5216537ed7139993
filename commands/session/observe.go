package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Head is the Session part that several results show.
type Head struct {
	Title     string                 `json:"title"`
	Mode      event.Mode             `json:"mode"`
	Guards    event.Guards           `json:"guards"`
	Lifecycle session.Lifecycle      `json:"lifecycle"`
	Context   event.ExecutionContext `json:"execution_context"`
	CreatedAt string                 `json:"created_at"`
	UpdatedAt string                 `json:"updated_at"`
}

// HeadOf shows a core.
func HeadOf(c session.Core) Head {
	return Head{Title: c.Title, Mode: c.Mode, Guards: c.Guards, Lifecycle: c.Lifecycle, Context: c.Context,
		CreatedAt: event.FormatTime(c.CreatedAt), UpdatedAt: event.FormatTime(c.UpdatedAt)}
}

// observe asks the Runner about the working tree; a Runner that cannot tell makes the
// observation unavailable, never the call fail.
func observe(ctx context.Context, c *call.Call, instructions bool) wire.ObserveWorkspaceOut {
	unavailable := wire.ObserveWorkspaceOut{Status: wire.WorkspaceUnavailable, Reason: "runner_unavailable", Conflicts: []string{}}
	if c.Target == nil {
		return unavailable
	}
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	out, err := call.Ask[wire.ObserveWorkspaceOut](ctx, c, wire.OpObserveWorkspace, wire.ObserveWorkspaceIn{Instructions: instructions})
	if err != nil {
		return unavailable
	}
	if out.Conflicts == nil {
		out.Conflicts = []string{}
	}
	return out
}
