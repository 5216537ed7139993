package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// printBrief shows a brief to a person.
func printBrief(w io.Writer, b session.Brief) error {
	p := &page{w: w}
	p.linef("%s", b.Session.Title)
	p.field("session", fmt.Sprintf("%s  (%s, mode %s)", b.Session.SessionID, b.Session.Lifecycle, plain(string(b.Session.Mode))))
	if b.Session.Project != nil {
		p.field("project", *b.Session.Project)
	}
	p.field("updated", localTime(b.Session.UpdatedAt))
	root, latest := b.Task.Root, b.Task.Latest
	if root != nil && (root.Truncated || root.Text != b.Session.Title) { // the title says it already
		p.excerpt("asked", root)
	}
	if latest != nil && (root == nil || *latest != *root) {
		p.excerpt("then asked", latest)
	}
	p.field("progress", progressLine(b))
	p.list("changed", b.Progress.Changed.Items, b.Progress.Changed.Total)
	p.list("read", b.Progress.Recent.Items, b.Progress.Recent.Total)
	p.field("working tree", workspaceLine(b.Workspace))
	p.field("validation", validationLine(b.Validation))
	p.failures(b.Validation.Failures)
	if r := b.Task.Context.Repeated; r != nil {
		p.field("", fmt.Sprintf("%s failed %d times in this task", r.Name, r.Count))
	}
	p.notes("decided", b.Task.Decisions)
	p.notes("said", b.Task.Progress)
	p.board(b)
	p.reports(b.External)
	p.field("jobs", jobsLine(b.Attention.Jobs))
	p.goOn(b)
	p.unknown(b.Basis)
	return p.err
}

// progressLine is the state with what it rests on.
func progressLine(b session.Brief) string {
	state := plain(string(b.Progress.State))
	var why []string
	add := func(n int, one, many string) {
		if n > 0 {
			why = append(why, several(n, one, many))
		}
	}
	switch b.Progress.State {
	case session.StateBlocked:
		if b.Workspace.Conflicts != nil {
			add(*b.Workspace.Conflicts, "file in conflict", "files in conflict")
		}
		add(b.Attention.Jobs.Running+b.Attention.Jobs.Recovering, "Job without an end", "Jobs without an end")
		add(b.Validation.Failures.Total, "failure", "failures")
		if b.Attention.OpenRisks != nil {
			add(*b.Attention.OpenRisks, "open risk", "open risks")
		}
	case session.StateNeedsProof:
		said := "files changed, and nothing has passed since"
		if b.Progress.Changed.Total == 0 && b.Validation.ReasonCode != "files_changed_since" { // commands ran; who changed the tree, nobody knows
			said = "the working tree has changes, and nothing has passed"
		}
		why = append(why, said)
	case session.StateClosed, session.StateInsufficient, session.StateReady: // said by the word, or at the end
	}
	if len(why) == 0 {
		return state
	}
	return state + ": " + strings.Join(why, ", ")
}

// several is a number of things in words.
func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func workspaceLine(ws session.BriefWorkspace) string {
	switch {
	case ws.Status == "not_requested":
		return "not asked for"
	case ws.Clean == nil && ws.ReasonCode != "" && ws.ReasonCode != "workspace_unavailable":
		return "not seen: " + plain(ws.ReasonCode)
	case ws.Clean == nil:
		return "not seen"
	}
	state := "clean"
	if !*ws.Clean {
		state = "changed"
		if ws.ChangedFiles != nil {
			state = several(*ws.ChangedFiles, "file changed", "files changed")
		}
	}
	if ws.Conflicts != nil && *ws.Conflicts > 0 {
		state += fmt.Sprintf(", %d in conflict", *ws.Conflicts)
	}
	if ws.Branch != nil {
		state += ", on " + *ws.Branch
	}
	if ws.Head != nil {
		state += " at " + (*ws.Head)[:min(12, len(*ws.Head))]
	}
	return state
}

func validationLine(v session.BriefValidation) string {
	if v.Status == "not_requested" {
		return "not asked for"
	}
	line := plain(v.Status)
	if r := v.Latest; r != nil {
		line += fmt.Sprintf("; latest: %s %s, %s", r.Tool, outcomeText(r), localTime(r.At))
		if r.TestsRun > 0 {
			line += fmt.Sprintf(" (%s", several(r.TestsRun, "test", "tests"))
			if r.TestsFailed > 0 {
				line += fmt.Sprintf(", %d failed", r.TestsFailed)
			}
			line += ")"
		}
		if v.ReasonCode == "files_changed_since" || r.Stale != nil && *r.Stale {
			line += "; the files are others by now"
		}
	}
	return line
}

// outcomeText is the outcome of a run, and whether a failure was declared to come: then it counts
// for no failure.
func outcomeText(r *session.Run) string {
	if r.Expectation == event.ExpectationMatched {
		return plain(r.Outcome) + " as expected"
	}
	return plain(r.Outcome)
}

// failures prints what fails and where.
func (p *page) failures(l session.List[session.Failure]) {
	for _, f := range l.Items {
		line := "failing: " + f.Name
		if f.File != "" {
			line += " at " + f.File
			if f.Line > 0 {
				line += fmt.Sprintf(":%d", f.Line)
			}
		}
		p.field("", line)
	}
	if n := l.Total - len(l.Items); n > 0 {
		p.field("", several(n, "more failure", "more failures"))
	}
}

func jobsLine(j session.JobAttention) string {
	var out []string
	if j.Running > 0 {
		out = append(out, fmt.Sprintf("%d running", j.Running))
	}
	if j.TerminalPending > 0 {
		out = append(out, fmt.Sprintf("%d asked to end", j.TerminalPending))
	}
	if j.Recovering > 0 {
		out = append(out, several(j.Recovering, "of which nobody knows how it stands", "of which nobody knows how they stand"))
	}
	return strings.Join(out, ", ")
}

// board prints how much is open on the board, and what the task's context tells of it.
func (p *page) board(b session.Brief) {
	p.field("open", b.Attention.Said())
	kinds := map[string]string{session.StepRisk: "risk", session.StepGuide: "guidance", session.StepAnswer: "question", session.StepTodo: "todo"}
	for _, s := range b.Task.Context.Steps.Items {
		if kind := kinds[s.Step]; kind != "" {
			p.field("", kind+": "+strings.Join(strings.Fields(s.Text), " "))
		}
	}
	if b.Task.Context.Steps.Truncated && b.Attention.Said() != "" {
		p.field("", fmt.Sprintf("`webcodex board %s` shows all of it", b.Session.SessionID))
	}
}

// goOn prints the next actions and the call to go on with, which is often the last of them.
func (p *page) goOn(b session.Brief) {
	args, err := json.Marshal(b.Continuation.Arguments)
	if err != nil {
		return
	}
	name, why := "next", ""
	for _, a := range b.NextActions.Items {
		if raw, err := json.Marshal(a.Arguments); err == nil && a.Tool == b.Continuation.Tool && string(raw) == string(args) {
			why = a.Why
			continue
		}
		p.field(name, a.Tool+": "+a.Why)
		name = ""
	}
	if b.Continuation.Tool == "" {
		return
	}
	p.field("go on with", b.Continuation.Tool+" "+string(args))
	p.field("", why)
}

// unknownTexts say what a reason code means for who goes on.
var unknownTexts = map[string]string{
	"attempt_boundary_evicted":                      "what was asked last: it has left the events that are kept",
	"checkpoints_unavailable":                       "whether there are checkpoints: they cannot be looked at",
	"discussion_unavailable":                        "what is on the board: it could not be read",
	"execution_outcome_unknown":                     "how an execution ended: nobody could prove it",
	"external_observations_changed_during_snapshot": "what tools outside reported meanwhile: read it again",
	"session_changed_during_snapshot":               "what else the Session did meanwhile: read it again",
	"validation_not_requested":                      "what validation proves: it was not asked for",
	"validation_unavailable":                        "what validation proves: the runs that are kept have no result",
	"workspace_not_requested":                       "how the working tree is: it was not asked for",
	"workspace_unavailable":                         "how the working tree is: nobody could look at it",
}

// unknown prints what the brief does not rest on.
func (p *page) unknown(b session.Basis) {
	name, said := "not known", maps.Clone(unknownTexts)
	for _, code := range b.ReasonCodes {
		text, ok := said[code]
		switch {
		case code == "guidance_unavailable" && said["discussion_unavailable"] == "": // the same board
			continue
		case !ok:
			text = plain(code)
		}
		delete(said, code)
		p.field(name, text)
		name = ""
	}
}

// notes prints what was said, newest first.
func (p *page) notes(name string, n session.Notes) {
	for _, m := range n.Items {
		text := strings.Join(strings.Fields(m.Text), " ")
		if m.SupersededBy != nil {
			text += "  (superseded)"
		}
		p.field(name, text)
		name = ""
	}
	if n.Total != nil && n.Truncated {
		p.field(name, fmt.Sprintf("and %d more", *n.Total-n.Returned))
	}
}

// reports prints what tools outside reported, which nobody has proven.
func (p *page) reports(e session.ExternalObservations) {
	if e.Total == nil || *e.Total == 0 {
		return
	}
	p.field("reported", fmt.Sprintf("%d by tools outside, without proof; %d of unknown outcome", *e.Total, *e.Unknown))
	for _, r := range e.Items {
		p.field("", fmt.Sprintf("%s: %s, received %s", r.Tool, plain(r.Status), localTime(r.ReceivedAt)))
	}
}
