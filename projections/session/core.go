package session

import (
	"maps"
	"slices"
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
	// Validates is what a validating Job covers, nil for others.
	Validates *event.ValidationScope
}

// EndedJob is how a Job ended; it is known after the Runner's life that kept its output.
type EndedJob struct {
	Execution   event.ExecutionID
	Tool        string
	ExitCode    *int
	FailureKind string
	State       event.ExecutionState
	DurationMS  int64
}

// Excerpt is the beginning of a text. Truncated tells that characters are missing.
type Excerpt struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated"`
}

// Unknown is an execution whose outcome nobody could prove.
type Unknown struct {
	Execution event.ExecutionID
	Call      event.CallID
	Tool      string
	At        time.Time
	// Version of the commit that said so.
	Version uint64
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
	// Instructions are the instruction files as last observed for the Session, by path.
	Instructions []event.InstructionFile
	Lifecycle    Lifecycle
	CreatedAt    time.Time
	// UpdatedAt never falls, also where the clock did.
	UpdatedAt time.Time
	Version   uint64
	// Rested is the sequence of the commit that left the Session Closed with no open call or Job,
	// 0: it is not so. Retention goes by it: no clock decides which history is the oldest.
	Rested uint64
	// Observed counts tail events ever seen (EVT-06).
	Observed uint64
	// Edited is sticky: the Session changed the repository (EVT-34).
	Edited bool
	// ChangedVersion is of the newest commit that changed files, 0: none.
	ChangedVersion uint64
	Open           map[event.CallID]OpenCall
	Jobs           map[event.ExecutionID]OpenJob
	// Ended are the newest Jobs that have ended, at most MaxEnded, oldest first.
	Ended []EndedJob
	// Task is the first accepted instruction. Like the title it belongs to the Session and
	// stays when its event has left the tail.
	Task *Excerpt
	// Unknown are the newest outcomes still unproven, at most MaxUnknown, oldest first.
	Unknown []Unknown
	// UnknownDropped counts those that had to leave Unknown unproven.
	UnknownDropped int
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
		switch se.(type) {
		case event.SessionCarried, event.ExecutionFinished: // learning of an end is no activity (VAL-10)
		default:
			if cm.At.After(c.UpdatedAt) {
				c.UpdatedAt = cm.At
			}
		}
	}
	c.Version = cm.Version
	return c
}

// rest notes that the commit seq brought the Session to rest, or that it is not at rest.
func (c Core) rest(seq uint64) Core {
	switch {
	case c.Lifecycle != Closed || len(c.Open)+len(c.Jobs) > 0:
		c.Rested = 0
	case c.Rested == 0:
		c.Rested = seq
	}
	return c
}

func (c Core) apply(cm event.Commit, e event.SessionEvent) Core {
	switch e := e.(type) {
	case event.SessionCreated:
		// Only the first one creates, nothing reopens a Session (SES-23), and one with a mode that
		// is none is discarded (RES-07).
		if c.Exists() || !validMode(e.Mode) {
			return c
		}
		c.ID = event.SessionID(cm.Aggregate.ID)
		c.Nonce, c.Authority, c.Principal = e.Nonce, e.Authority, e.Principal
		c.Project, c.Root, c.Title = e.Project, e.Root, e.Title
		c.Mode, c.Guards, c.Context = e.Mode, guarded(e.Mode, e.Guards), e.Context
		c.Lifecycle, c.CreatedAt = Active, cm.At
	case event.InstructionAccepted:
		switch {
		case validMode(e.Mode):
			c.Mode, c.Guards = e.Mode, guarded(e.Mode, e.Guards)
		case e.Mode != "":
			return Core{} // discarded (RES-07)
		}
		if c.Task == nil {
			t := excerpt(e.Text, MaxExcerptChars)
			c.Task = &t
		}
	case event.ContextUpdated:
		c.Context = e.Context
	case event.InstructionsObserved:
		c.Instructions = e.Sources
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
		if _, was := c.Jobs[e.Execution]; was {
			c.Jobs = maps.Clone(c.Jobs)
			delete(c.Jobs, e.Execution)
		}
		c.Ended = append(slices.Clone(c.Ended), EndedJob{e.Execution, e.Tool, e.ExitCode, e.FailureKind, e.Effect.State, e.DurationMS})
		c.Ended = c.Ended[max(0, len(c.Ended)-MaxEnded):]
		c = c.edit(cm, e.Effect.StateChanged)
		c = c.outcome(Unknown{e.Execution, e.Call, e.Tool, cm.At, cm.Version}, e.Effect.State)
	case event.ExecutionReconciled:
		c = c.edit(cm, e.Effect.StateChanged)
		c = c.outcome(Unknown{Execution: e.Execution, At: cm.At}, e.Effect.State)
	case event.SessionRefBound, event.SessionCarried: // change nothing that a decision sees
	case event.MessagePosted, event.MessageResolved, event.MessageCompleted, event.MessagesAcknowledged: // see Board
	}
	return c
}

func (c Core) edit(cm event.Commit, changed bool) Core {
	if changed {
		c.Edited, c.ChangedVersion = true, cm.Version
	}
	return c
}

// outcome remembers an unproven execution and forgets it when proof comes.
func (c Core) outcome(u Unknown, s event.ExecutionState) Core {
	i := slices.IndexFunc(c.Unknown, func(x Unknown) bool { return u.Execution != "" && x.Execution == u.Execution })
	switch {
	case s != event.OutcomeUnknown && i >= 0:
		c.Unknown = slices.Delete(slices.Clone(c.Unknown), i, i+1)
	case s == event.OutcomeUnknown && i < 0 && u.Tool != "" && u.Execution != "":
		c.Unknown = append(slices.Clone(c.Unknown), u)
		if n := len(c.Unknown) - MaxUnknown; n > 0 {
			c.Unknown, c.UnknownDropped = c.Unknown[n:], c.UnknownDropped+n
		}
	}
	return c
}

func (c Core) finish(cm event.Commit, e event.ToolCallFinished) Core {
	open, was := c.Open[e.Call]
	if was {
		c.Open = maps.Clone(c.Open)
		delete(c.Open, e.Call)
	}
	c = c.edit(cm, len(e.Changed) > 0 || e.Effect.StateChanged && traitsOf(e.Tool).write)
	if e.Promoted && was && open.Started.Execution != nil {
		c.Jobs = maps.Clone(c.Jobs)
		if c.Jobs == nil {
			c.Jobs = map[event.ExecutionID]OpenJob{}
		}
		if _, told := c.Jobs[e.Execution]; told {
			return c // by the business pair of the same request, which comes first (EVT-10)
		}
		c.Jobs[e.Execution] = OpenJob{Call: e.Call, Tool: e.Tool, Execution: *open.Started.Execution,
			Input: open.Started.Input, Server: cm.Server, At: cm.At, Validates: open.Started.Validates}
		return c
	}
	return c.outcome(Unknown{e.Execution, e.Call, e.Tool, cm.At, cm.Version}, e.Effect.State)
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
	case event.SessionCreated, event.InstructionsObserved, event.ExecutionReconciled, event.SessionRefBound, event.SessionCarried,
		event.MessagePosted, event.MessageResolved, event.MessageCompleted, event.MessagesAcknowledged:
		return ""
	}
	return ""
}
