package session

import (
	"fmt"

	"webcodex/eventlog/event"
)

// State of progress, the first that holds (HND-27).
type State string

// States of progress.
const (
	StateClosed       State = "closed"
	StateBlocked      State = "blocked"
	StateNeedsProof   State = "needs_validation"
	StateInsufficient State = "insufficient_evidence"
	StateReady        State = "ready_to_continue"
)

func progressState(v View, ev evidence, s Snapshot, b Brief) State {
	switch {
	case v.Core.Lifecycle != Active:
		return StateClosed
	case s.SessionChanged || s.ExternalChanged: // captured sections are observations, not a state to act on (HND-38)
		return StateInsufficient
	case s.conflicted() || b.Attention.Jobs.blocking() > 0 || len(ev.failures) > 0 || b.Attention.risks() > 0:
		return StateBlocked
	case ev.unproven(v, s):
		return StateNeedsProof
	case b.Workspace.Status != statusAvailable && !v.Core.Project.Zero(),
		b.Validation.Status == statusNotRequested, b.Validation.Status == statusUnavailable,
		boundary(v, ev).ReasonCode != "", len(ev.unknown) > 0:
		return StateInsufficient
	default:
		return StateReady
	}
}

// conflicted reports a merge conflict; a dirty tree alone blocks nothing (HND-28).
func (s Snapshot) conflicted() bool {
	return s.IncludeWorkspace && s.Workspace.seen() && (s.Workspace.Status == workspaceBlocked || s.Workspace.Conflicts > 0)
}

// unproven reports changes without a later proven pass. Commands may change files without a
// recorded path: where the tree is dirty, they ran, and nothing ever passed, that counts too.
func (ev evidence) unproven(v View, s Snapshot) bool {
	if ev.proof != nil {
		if stale := ev.proof.stale(s.tree()); stale != nil {
			return *stale // the files themselves tell
		}
	}
	if ev.edited(v) {
		return true
	}
	dirty := s.IncludeWorkspace && s.Workspace.seen() && s.Workspace.ChangedFiles > 0
	return dirty && ev.counts.ShellLike > 0 && ev.passed == 0
}

// edited reports changes on record that no proven pass followed.
func (ev evidence) edited(v View) bool { return v.Core.Edited && ev.passed <= v.Core.ChangedVersion }

// unprovenWhy says what unproven found, and of changes that nobody recorded not that they were
// made.
func (ev evidence) unprovenWhy(v View) string {
	if ev.proof == nil && !ev.edited(v) {
		return "commands ran in a working tree with changes, and nothing has passed"
	}
	return "files changed and no later validation passed"
}

// nextActions are advisory, most urgent first; each names the Session, so that a model passes
// it on by itself.
func nextActions(v View, ev evidence, s Snapshot, b Brief) []Action {
	c := v.Core
	only := func() map[string]any { return map[string]any{"session_id": c.ID} }
	project := func() map[string]any {
		m := only()
		m["project"] = c.Project.String()
		return m
	}
	if c.Lifecycle != Active {
		next := continuation(c)
		return []Action{{next.Tool, next.Arguments, "this Session is closed for good; go on in a new one"}}
	}
	var out []Action
	add := func(when bool, tool string, args map[string]any, why string) {
		if when {
			out = append(out, Action{tool, args, why})
		}
	}
	has := !c.Project.Zero()
	add(s.SessionChanged, "read_session_handoff", only(), "the Session moved on while this was gathered; read it again before dependent work")
	add(s.ExternalChanged && !s.SessionChanged, "read_session_handoff", only(), "a report from outside came while this was gathered; read it again before dependent work")
	add(has && s.conflicted(), "get_git_status", project(), "the working tree has merge conflicts")
	add(len(c.Jobs) > 0, "observe_jobs", map[string]any{"items": jobItems(c)}, jobsWhy(openJobs(c)))
	add(has && len(ev.unknown) > 0, "read_workspace_changes", project(), unknownWhy(ev.unknown))
	for _, f := range ev.failures[:min(len(ev.failures), MaxBriefAgain)] {
		add(has, toolName(f.tool), f.again(project()), fmt.Sprintf("unresolved failure of %s: fix it and run the same validation again%s", f.told(), f.missing()))
	}
	if has && len(ev.failures) == 0 && ev.unproven(v, s) {
		tool, args, why := "read_workspace_changes", project(), ev.unprovenWhy(v)+"; review them, then run the Project's tests"
		if n := len(ev.runs); n > 0 {
			last := ev.runs[n-1]
			tool, args, why = toolName(last.tool), last.again(args), "files changed since this passed; run it again"+last.missing()
			if !last.proves() {
				why = "this has proven no pass of the files as they are; run it again" + last.missing()
			}
		}
		add(true, tool, args, why)
	}
	add(b.Attention.open() > 0, "read_session_discussion", only(), b.Attention.why())
	add(has && s.IncludeWorkspace && !s.Workspace.seen(), "get_git_status", project(), "the working tree could not be observed")
	add(b.Workspace.Status == statusNotRequested || b.Validation.Status == statusNotRequested, "read_session_handoff", only(),
		"evidence was left out on request; read it all before relying on the state")
	next := continuation(c)
	add(has, next.Tool, next.Arguments, "continue here: add what is to be done as the instruction")
	return out
}

// jobsWhy tells how many Jobs are open, and of the oldest what it is and since when.
func jobsWhy(jobs []OpenJob) string {
	if len(jobs) == 0 {
		return ""
	}
	oldest := ""
	if len(jobs) > 1 {
		oldest = "the oldest "
	}
	return fmt.Sprintf("%s without an end yet (%s%s, since %s); see how it goes on", amount(len(jobs), "Job"), oldest, toolName(jobs[0].Tool), event.FormatTime(jobs[0].At))
}

func jobItems(c Core) []map[string]any {
	items := []map[string]any{}
	for _, j := range openJobs(c) {
		if len(items) == MaxObserveItems {
			break
		}
		items = append(items, map[string]any{"job_id": j.Execution.ID})
	}
	return items
}

func unknownWhy(list []Unknown) string {
	if len(list) == 0 {
		return ""
	}
	u := list[len(list)-1]
	return fmt.Sprintf("nobody could prove how %s (%s) ended; see what changed before running it again", toolName(u.Tool), atom(string(u.Execution)))
}

// continuation is the exact entry for going on. The caller adds the instruction.
func continuation(c Core) Continuation {
	switch {
	case c.Lifecycle == Active:
		return Continuation{"work_on_project", map[string]any{"session_id": c.ID}}
	case c.Project.Zero():
		return Continuation{"start_session", map[string]any{}}
	default:
		return Continuation{"work_on_project", map[string]any{"project": c.Project.String()}}
	}
}

// Boundary tells where the task that is being worked on began.
type Boundary struct {
	Source     string        `json:"source"` // task_instruction, session_start, unavailable
	ReasonCode string        `json:"reason_code,omitempty"`
	EventID    event.EventID `json:"event_id,omitempty"`
	Sequence   uint64        `json:"sequence,omitempty"`
	Complete   bool          `json:"complete"`
}

// boundary is the newest instruction. Where it has left the tail the rest never poses as the
// whole (CON-10).
func boundary(v View, ev evidence) Boundary {
	switch {
	case ev.latest != nil:
		return Boundary{Source: "task_instruction", EventID: ev.latest.ID(v.Core.ID), Sequence: ev.latest.Seq, Complete: true}
	case v.Tail.Evicted():
		return Boundary{Source: statusUnavailable, ReasonCode: codeBoundaryEvicted}
	default:
		return Boundary{Source: "session_start", Complete: true}
	}
}
