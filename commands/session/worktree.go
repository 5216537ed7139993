package session

import (
	"context"
	"encoding/json"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// ModeWorktree is the mode of a start in a managed worktree.
const ModeWorktree = "worktree"

// WorktreeOut is what an answer says of the managed worktree that the Project is.
type WorktreeOut struct {
	BaseCommit string `json:"base_commit"`
	// Source is the Project that it was made of; absent where this call did not make it.
	Source string `json:"source_project,omitempty"`
	// FiltersDisabled: files under a content filter (Git LFS) are there as git stores them.
	FiltersDisabled bool `json:"filters_disabled,omitempty"`
}

// checkWorktree refuses a start in a worktree before anything is asked of a Runner.
func checkWorktree(c *call.Call, in WorkIn) error {
	if in.Mode != ModeWorktree {
		if in.BaseRef != "" {
			return fault.New(fault.InvalidArguments, "base_ref belongs to mode worktree").WithField("base_ref")
		}
		return nil
	}
	if err := wire.CheckBaseRef(in.BaseRef); err != nil {
		return err
	}
	switch {
	case !c.HasScope(call.ScopeProjectWrite):
		return fault.New(fault.InsufficientScope, "a managed worktree needs the scope project:write").WithField("mode").
			WithNext("use mode checkout")
	case c.Principal.Only != nil && c.Session == nil:
		return fault.New(fault.InsufficientScope, "this credential is limited to Projects that are named in it, and a new worktree would be another").
			WithField("mode").WithNext("use mode checkout")
	case c.Target != nil && !offers(c, wire.OpCreateWorktree):
		return fault.New(fault.CapabilityUnavailable, "the Runner of this Project makes no worktrees").WithField("mode").WithNext("use mode checkout")
	}
	return nil
}

// startWorktree makes the call's Project a managed worktree: the one that it is already, where the
// caller named its directory, or a new one. Without it nothing has been written by then, and no
// Session is on the source (WTR-06).
func startWorktree(ctx context.Context, c *call.Call, in WorkIn, named bool) (*WorktreeOut, call.Facts, error) {
	if named {
		seen, err := call.Ask[wire.ObserveWorktreeOut](ctx, c, wire.OpObserveWorktree, wire.ObserveWorktreeIn{BaseRef: in.BaseRef})
		if err != nil || seen.Managed {
			return managedOut(seen), call.Facts{}, err
		}
	}
	source := *c.Project
	if c.Recorder != nil && c.Execution() != "" {
		f := fault.New(fault.Conflict, "the directory is a Project now, and a recorded call makes one change at a Runner").With("project", source.Project).
			WithNext("call again, with the project that is named here")
		f.StateChanged = true
		return nil, call.Facts{}, f
	}
	o, err := c.Effect(ctx, wire.OpCreateWorktree, wire.CreateWorktreeIn{Operation: event.NewNonce(), BaseRef: in.BaseRef},
		call.EffectOptions{Timeout: worktreeTimeout})
	if err != nil {
		return nil, call.Facts{}, err
	}
	facts := call.FactsOf(*o.Result)
	var made wire.CreateWorktreeOut
	if err := json.Unmarshal(o.Result.Body, &made); err != nil {
		return nil, facts, halfway(fault.Wrap(err, fault.Internal, "the Runner's answer could not be read"), "")
	}
	ref := event.ProjectRef{Client: source.Ref.Client, Project: made.Project.ID}
	if parsed, ok := event.ParseProject(ref.String()); !ok || parsed != ref || ref == source.Ref || !wire.ValidCommit(made.BaseCommit) {
		return nil, facts, halfway(fault.New(fault.Internal, "the Runner's answer names no worktree"), "")
	}
	if err := c.Enter(ctx, ref, made.Project.Root); err != nil {
		return nil, facts, halfway(err, ref.String())
	}
	return &WorktreeOut{BaseCommit: made.BaseCommit, Source: source.Project, FiltersDisabled: made.FiltersDisabled}, facts, nil
}

// resumeWorktree lets a Session go on in the managed worktree that is its Project, after a fresh
// look at it (WTR-13). Any other Project of a Session cannot become one: the worktree would be
// another Project (WTR-11).
func resumeWorktree(ctx context.Context, c *call.Call, in WorkIn) (*WorktreeOut, error) {
	seen, err := call.Ask[wire.ObserveWorktreeOut](ctx, c, wire.OpObserveWorktree, wire.ObserveWorktreeIn{BaseRef: in.BaseRef})
	if err != nil {
		return nil, err
	}
	if !seen.Managed {
		return nil, fault.New(fault.SessionProjectMismatch, "this Session belongs to the checkout; a worktree of it is another Project").WithField("session_id").
			WithNext("leave session_id out and name the project to start in a new worktree")
	}
	return managedOut(seen), nil
}

func managedOut(seen wire.ObserveWorktreeOut) *WorktreeOut {
	w := &WorktreeOut{}
	if wire.ValidCommit(seen.BaseCommit) {
		w.BaseCommit = seen.BaseCommit
	}
	return w
}

// halfway says that the worktree stands although the start failed.
func halfway(err error, project string) error {
	f := *fault.As(err)
	f.StateChanged = true
	f.Message += "; the worktree was made, and no Session"
	if project != "" {
		f.With("project", project)
		f.Next = "call work_on_project with the project that is named here"
	}
	return &f
}
