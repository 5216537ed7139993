package session

import (
	"maps"
	"time"

	"webcodex/eventlog/event"
)

// Lifecycle of a Session.
type Lifecycle string

// Lifecycles (SES-21). "archived" is reserved and never produced.
const (
	Active Lifecycle = "active"
	Closed Lifecycle = "closed"
)

// OpenCall is a started call without a finish.
type OpenCall struct {
	Started event.ToolCallStarted
	Server  event.InstanceID
	Actor   event.Actor
	At      time.Time
	Inv     event.InvocationID
}

// OpenJob is a promoted execution without a terminal marker.
type OpenJob struct {
	Call      event.CallID
	Tool      string
	Execution event.Execution
	Input     event.Input
	Server    event.InstanceID
	At        time.Time
}

// Core is the small part of a Session that decisions see. Values are immutable: Apply
// returns a new one and never changes what a reader holds.
type Core struct {
	ID        event.SessionID
	Nonce     string
	Authority string
	Principal string
	Project   event.ProjectRef // zero for a Session without a Project
	Root      string
	Title     string
	Mode      event.Mode
	Guards    event.Guards
	Context   event.ExecutionContext
	Lifecycle Lifecycle
	CreatedAt time.Time
	UpdatedAt time.Time
	Version   uint64
	// Observed counts tail events ever seen (EVT-06).
	Observed uint64
	// Edited is sticky: the Session changed the repository (EVT-34).
	Edited bool
	Open   map[event.CallID]OpenCall
	Jobs   map[event.ExecutionID]OpenJob
}

// Exists reports whether the Session was ever created.
func (c Core) Exists() bool { return c.Lifecycle != "" }

// Apply folds one commit into the core.
func (c Core) Apply(cm event.Commit) Core {
	for _, e := range cm.Events {
		se, ok := e.(event.SessionEvent)
		if !ok {
			continue
		}
		c = c.apply(cm, se)
		if TailKind(se) != "" {
			c.Observed++
		}
	}
	c.Version = cm.Version
	c.UpdatedAt = cm.At
	return c
}

func (c Core) apply(cm event.Commit, e event.SessionEvent) Core {
	switch e := e.(type) {
	case event.SessionCreated:
		c.ID = event.SessionID(cm.Aggregate.ID)
		c.Nonce, c.Authority, c.Principal = e.Nonce, e.Authority, e.Principal
		c.Project, c.Root, c.Title = e.Project, e.Root, e.Title
		c.Mode, c.Guards, c.Context = e.Mode, e.Guards, e.Context
		c.Lifecycle, c.CreatedAt = Active, cm.At
	case event.InstructionAccepted:
		c.Mode, c.Guards = e.Mode, e.Guards
	case event.ContextUpdated:
		c.Context = e.Context
	case event.SessionClosed:
		c.Lifecycle = Closed
	case event.ToolCallStarted:
		c.Open = maps.Clone(c.Open)
		if c.Open == nil {
			c.Open = map[event.CallID]OpenCall{}
		}
		c.Open[e.Call] = OpenCall{Started: e, Server: cm.Server, Actor: cm.Actor, At: cm.At, Inv: cm.Invocation}
	case event.ToolCallFinished:
		c = c.finish(cm, e)
	case event.ExecutionFinished:
		c.Jobs = maps.Clone(c.Jobs)
		delete(c.Jobs, e.Execution)
		c.Edited = c.Edited || e.Effect.StateChanged
	case event.ExecutionReconciled:
		c.Edited = c.Edited || e.Effect.StateChanged
	}
	return c
}

func (c Core) finish(cm event.Commit, e event.ToolCallFinished) Core {
	open, was := c.Open[e.Call]
	if was {
		c.Open = maps.Clone(c.Open)
		delete(c.Open, e.Call)
	}
	if len(e.Changed) > 0 {
		c.Edited = true
	}
	if e.Promoted && was && open.Started.Execution != nil {
		c.Jobs = maps.Clone(c.Jobs)
		if c.Jobs == nil {
			c.Jobs = map[event.ExecutionID]OpenJob{}
		}
		c.Jobs[e.Execution] = OpenJob{Call: e.Call, Tool: e.Tool, Execution: *open.Started.Execution,
			Input: open.Started.Input, Server: cm.Server, At: cm.At}
	}
	return c
}

// Kind is a tail event kind, a closed set (EVT-18).
type Kind string

// Tail kinds.
const (
	KindTaskInstruction   Kind = "task_instruction"
	KindToolCallStarted   Kind = "tool_call_started"
	KindToolCallFinished  Kind = "tool_call_finished"
	KindSessionClosed     Kind = "session_closed"
	KindContextUpdated    Kind = "session_execution_context_updated"
	KindValidationJobDone Kind = "validation_job_terminal"
)

// TailKind maps each stored event to its tail kind, or to none (ruling 17). Only tail kinds
// move events_observed.
func TailKind(e event.SessionEvent) Kind {
	switch e := e.(type) {
	case event.InstructionAccepted:
		return KindTaskInstruction
	case event.ToolCallStarted:
		return KindToolCallStarted
	case event.ToolCallFinished:
		return KindToolCallFinished
	case event.SessionClosed:
		return KindSessionClosed
	case event.ContextUpdated:
		return KindContextUpdated
	case event.ExecutionFinished:
		if e.Validation != nil {
			return KindValidationJobDone
		}
		return ""
	case event.SessionCreated, event.ExecutionReconciled:
		return ""
	}
	return ""
}
