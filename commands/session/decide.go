// Package session holds the commands on Workflow Sessions, one file each, and the pure
// decisions behind them. Only here do Session events other than call evidence arise.
package session

import (
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/redact"
	"webcodex/projections/session"
)

// Start is what a fresh Session is made of; ids and nonce come from the edge.
type Start struct {
	Actor       event.Actor
	Nonce       string
	Project     event.ProjectRef
	Root        string
	Title       string
	Instruction string // empty: a Session without a task (start_session)
	Mode        event.Mode
	Context     event.ExecutionContext
	Files       []event.InstructionFile // instruction files seen at the start
	Transport   string
}

// DecideStart gives the events of a fresh Session, one unit (STA-10).
func DecideStart(s Start) ([]event.Event, error) {
	if s.Actor.Authority == "" || s.Actor.Principal == "" {
		return nil, fault.New(fault.AuthorityUnavailable, "the caller has no canonical identity")
	}
	if s.Mode == "" {
		s.Mode = event.ModeNormal
	}
	created := event.SessionCreated{Nonce: s.Nonce, Authority: s.Actor.Authority, Principal: s.Actor.Principal,
		Project: s.Project, Root: s.Root, Title: title(s.Title, s.Instruction), Mode: s.Mode, Guards: guardsOf(s.Mode), Context: s.Context}
	events := []event.Event{created}
	if s.Instruction != "" {
		events = append(events, event.InstructionAccepted{Text: redact.Text(s.Instruction, MaxInstruction), Continuation: Created,
			RequestedMode: s.Mode, Mode: s.Mode, Guards: created.Guards, Transport: s.Transport})
	}
	return append(events, filesSeen(nil, s.Files)...), nil
}

// Continuations of work_on_project.
const (
	Created = "created"
	Resumed = "resumed"
)

// Resume is an instruction for an existing Session.
type Resume struct {
	Instruction string
	Mode        event.Mode // empty: keep
	MayWrite    bool       // the caller holds the write scope
	Context     *event.ExecutionContext
	// Files are the instruction files that the Session knows from now on (Compare).
	Files     []event.InstructionFile
	Transport string
}

// DecideResume appends an instruction, a mode change and new defaults to an Active Session as
// one unit, or refuses and leaves all as it was.
func DecideResume(c session.Core, r Resume) ([]event.Event, error) {
	if c.Lifecycle != session.Active {
		return nil, closed()
	}
	mode := c.Mode
	if r.Mode != "" {
		mode = r.Mode
	}
	if mode == event.ModeNormal && c.Mode == event.ModeReadOnly && !r.MayWrite {
		return nil, fault.New(fault.UpgradeDenied, "this credential may not turn a read_only Session into a normal one").
			WithField("session_mode")
	}
	changes := r.Context != nil && *r.Context != c.Context
	if changes && !r.MayWrite {
		return nil, fault.New(fault.InsufficientScope, "other execution defaults need the scope project:write").
			WithField("execution_context").WithNext("leave execution_context out to keep the Session's own")
	}
	guards := c.Guards
	if mode != c.Mode {
		guards = guardsOf(mode)
	}
	e := event.InstructionAccepted{Text: redact.Text(r.Instruction, MaxInstruction), Continuation: Resumed,
		RequestedMode: r.Mode, PreviousMode: c.Mode, Mode: mode, Guards: guards, Transport: r.Transport}
	if guards != c.Guards {
		previous := c.Guards
		e.PreviousGuards, e.CapabilityChanged = &previous, true
	}
	events := []event.Event{e}
	if changes {
		events = append(events, event.ContextUpdated{Context: *r.Context, Previous: c.Context})
	}
	return append(events, filesSeen(c.Instructions, r.Files)...), nil
}

// filesSeen is the event of instruction files that differ from those known, or none (STA-16).
func filesSeen(known, seen []event.InstructionFile) []event.Event {
	if slices.Equal(known, seen) {
		return nil
	}
	return []event.Event{event.InstructionsObserved{Sources: seen}}
}

func closed() error {
	return fault.New(fault.SessionClosed, "this Session is closed; nothing reopens it").
		WithNext("call work_on_project with the project to start a new Session")
}

// DecideContext replaces the execution defaults of an Active Session; equal ones change
// nothing.
func DecideContext(c session.Core, to event.ExecutionContext) ([]event.Event, error) {
	switch {
	case c.Lifecycle != session.Active:
		return nil, closed()
	case to == c.Context:
		return nil, nil
	}
	return []event.Event{event.ContextUpdated{Context: to, Previous: c.Context}}, nil
}

// DecideClose closes an Active Session; a Closed one stays as it is without a second event.
func DecideClose(c session.Core) ([]event.Event, error) {
	if c.Lifecycle == session.Closed {
		return nil, nil
	}
	return []event.Event{event.SessionClosed{}}, nil
}

func guardsOf(m event.Mode) event.Guards {
	return event.Guards{DenyWrite: m == event.ModeReadOnly, DenyShell: m == event.ModeReadOnly}
}

// title is the given one, else the instruction's first line.
func title(given, instruction string) string {
	t := strings.TrimSpace(given)
	if t == "" {
		t, _, _ = strings.Cut(strings.TrimSpace(instruction), "\n")
	}
	return redact.Text(strings.TrimSpace(t), MaxTitle)
}

// CheckInstruction holds an instruction within its bounds (STA-11).
func CheckInstruction(s string) error {
	n := len([]rune(strings.TrimSpace(s)))
	if n == 0 {
		return fault.New(fault.InvalidInstruction, "an instruction is required: say what is to be done").WithField("instruction").WithReason("empty")
	}
	if len([]rune(s)) > MaxInstruction {
		return fault.New(fault.InvalidInstruction, "an instruction has at most %d characters", MaxInstruction).WithField("instruction").WithReason("too_long").
			WithNext("shorten it; put long material into files")
	}
	return nil
}
