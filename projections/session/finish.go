package session

import (
	"fmt"

	"webcodex/eventlog/event"
)

// Finish is the output of finish_coding_task: a deterministic closeout from evidence. It
// closes neither the Session nor anything else (HND-46, STA-23).
type Finish struct {
	SessionID   event.SessionID `json:"session_id"`
	Project     *string         `json:"project"`
	Lifecycle   Lifecycle       `json:"lifecycle"`
	SummaryOnly bool            `json:"summary_only"`
	Verdict
	Workspace  *BriefWorkspace  `json:"workspace,omitempty"`
	Validation *BriefValidation `json:"validation,omitempty"`
	Diff       *FinishDiff      `json:"diff,omitempty"`
	Hygiene    *FinishHygiene   `json:"hygiene,omitempty"`
	Brief      *Brief           `json:"handoff_brief,omitempty"`
	Feedback   *Feedback        `json:"continuation_feedback,omitempty"`
}

// Verdict judges the evidence, not the work: pass without a finding, warn with advisories
// only, fail with a hard blocker.
type Verdict struct {
	Verdict    string    `json:"verdict"`
	Facts      Facts     `json:"facts"`
	Blockers   []Finding `json:"hard_blockers"`
	Advisories []Finding `json:"advisories"`
}

// Facts that the verdict rests on.
type Facts struct {
	Counts         Counts `json:"counts"`
	CountsCover    string `json:"counts_cover"`
	Edited         bool   `json:"repository_edited"`
	ChangedPaths   int    `json:"changed_paths"`
	Validation     string `json:"validation_status"`
	Failures       int    `json:"unresolved_failures"`
	Workspace      string `json:"workspace_status"`
	Clean          *bool  `json:"workspace_clean"`
	Conflicts      *int   `json:"workspace_conflicts"`
	OpenCalls      int    `json:"open_calls"`
	ActiveJobs     int    `json:"active_jobs"`
	UnknownOutcome int    `json:"unknown_outcomes"`
}

// Finding is one point of a verdict: a fixed code and a sentence.
type Finding struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// FinishOptions are the flags of finish_coding_task. Workspace and validation flags are in
// the Snapshot.
type FinishOptions struct {
	SummaryOnly    bool // verdict alone, and whatever is asked for is left out
	IncludeDiff    bool
	IncludeHygiene bool
	IncludeHandoff bool
	// Diff and Hygiene are what the caller observed; nil: nobody could tell.
	Diff    *DiffSummary
	Hygiene *HygieneSummary
}

// NewFinish makes the closeout.
func NewFinish(v View, s Snapshot, o FinishOptions) Finish {
	ev := gather(v)
	b := newBrief(v, ev, s)
	f := Finish{SessionID: v.Core.ID, Project: projectOf(v.Core), Lifecycle: v.Core.Lifecycle, SummaryOnly: o.SummaryOnly,
		Verdict: verdict(v, ev, s, b, o)}
	if o.SummaryOnly {
		return f
	}
	workspace, validation := briefWorkspace(s), briefValidation(v, ev, s)
	diff, hygiene := closeoutSections(o)
	feedback := newFeedback(v, ev, s, MaxFeedbackPaths)
	f.Workspace, f.Validation, f.Diff, f.Hygiene, f.Feedback = &workspace, &validation, &diff, &hygiene, &feedback
	if o.IncludeHandoff {
		f.Brief = &b
	}
	return f
}

func verdict(v View, ev evidence, s Snapshot, b Brief, o FinishOptions) Verdict {
	c := v.Core
	out := Verdict{Verdict: "pass", Blockers: []Finding{}, Advisories: []Finding{},
		Facts: Facts{Counts: ev.counts, CountsCover: "retained_ledger", Edited: c.Edited, ChangedPaths: len(ev.changed),
			Validation: b.Validation.Status, Failures: len(ev.failures), Workspace: b.Workspace.Status, Clean: b.Workspace.Clean,
			Conflicts: b.Workspace.Conflicts, OpenCalls: c.OpenCalls(), ActiveJobs: len(c.Jobs), UnknownOutcome: len(c.Unknown) + c.UnknownDropped}}
	block := func(when bool, code, format string, args ...any) {
		if when {
			out.Blockers = append(out.Blockers, Finding{code, fmt.Sprintf(format, args...)})
		}
	}
	advise := func(when bool, code, format string, args ...any) {
		if when {
			out.Advisories = append(out.Advisories, Finding{code, fmt.Sprintf(format, args...)})
		}
	}
	block(s.conflicted(), "workspace_conflict", "the working tree has merge conflicts")
	block(len(c.Jobs) > 0, "active_jobs", "%s of this Session without an end yet", amount(len(c.Jobs), "Job"))
	block(len(ev.failures) > 0, "unresolved_validation_failure", "%s failed without a later pass", amount(len(ev.failures), "validation"))
	advise(ev.unproven(v, s), "changes_not_validated", "%s", ev.unprovenWhy(v))
	block(b.Attention.risks() > 0, "open_risks", "%s on the board", amount(b.Attention.risks(), "open risk"))
	advise(b.Attention.open() > b.Attention.risks(), "open_discussion", "the board waits for somebody: %s", b.Attention.Said())
	advise(len(c.Open) > 0, "open_calls", "%s without an end yet", amount(c.OpenCalls(), "call"))
	advise(len(ev.unknown) > 0, codeUnknownOutcome, "%s ended without proof", amount(len(ev.unknown), "execution"))
	advise(s.IncludeWorkspace && b.Workspace.Status != statusAvailable, codeWorkspaceUnavailable, "the working tree could not be observed")
	advise(!s.IncludeWorkspace, codeWorkspaceSkipped, "the working tree was not asked for")
	advise(b.Validation.Status == validationNotRun && c.Edited, "validation_not_run", "%s", notRun(ev))
	advise(b.Validation.Status == statusUnavailable, codeValidationUnavailable, "the retained evidence proves no validation result")
	advise(!s.IncludeValidation, codeValidationSkipped, "validation was not asked for")
	advise(b.Workspace.Clean != nil && !*b.Workspace.Clean && !s.conflicted(), "workspace_dirty", "the working tree has uncommitted changes")
	advise(o.IncludeHygiene && o.Hygiene != nil && o.Hygiene.Problems > 0, "hygiene_problems",
		"the working tree holds what hardly belongs there (check_workspace_hygiene): %s", o.Hygiene.said())
	advise(boundary(v, ev).ReasonCode != "", codeBoundaryEvicted, "the newest instruction has left the retained events")
	switch {
	case len(out.Blockers) > 0:
		out.Verdict = "fail"
	case len(out.Advisories) > 0:
		out.Verdict = "warn"
	}
	return out
}

// notRun says why there is no validation: runs that came out as was declared are neutral (VAL-02).
func notRun(ev evidence) string {
	if len(ev.runs) == 0 {
		return "no validation ran"
	}
	return "what ran came out as its caller declared, and proves no pass"
}
