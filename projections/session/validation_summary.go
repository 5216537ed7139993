package session

import "webcodex/eventlog/event"

// ValidationSummary is the output of read_validation_summary: what the retained runs of a
// Session prove, without running anything (VAL-26).
type ValidationSummary struct {
	SessionID  event.SessionID `json:"session_id"`
	Project    *string         `json:"project"`
	Status     string          `json:"status"` // passed, failed, not_run, unavailable
	ReasonCode string          `json:"reason_code,omitempty"`
	// Latest is the newest run, LatestPass the newest that proves a pass.
	Latest     *Run `json:"latest"`
	LatestPass *Run `json:"latest_pass"`
	// Stale: the newest proven pass is of other files than those that are there now; null where
	// there is none, or it cannot be told.
	Stale      *bool            `json:"stale"`
	Workspace  SummaryWorkspace `json:"workspace"`
	Unresolved List[Failure]    `json:"unresolved_failures"`
	Resolved   List[Resolution] `json:"resolved_failures"`
	Gaps       int              `json:"evidence_gaps"`
	Delta      *Delta           `json:"validation_delta"`
	Jobs       JobAttention     `json:"jobs"`
	Limit      int              `json:"limit"`
	Events     List[Validation] `json:"events"` // newest first
	// RetentionTruncated: older events have left the tail, and runs may have with them.
	RetentionTruncated bool `json:"retention_truncated"`
}

// SummaryWorkspace is the state that staleness goes by.
type SummaryWorkspace struct {
	Status     string `json:"status"`
	ReasonCode string `json:"reason_code,omitempty"`
	Commit     string `json:"commit,omitempty"`
	Tree       string `json:"tree_hash,omitempty"`
}

// Resolution is a failed run with the pass that resolved it.
type Resolution struct {
	Failure
	ResolvedBy event.EventID `json:"resolved_by_event_id"`
	ResolvedAt string        `json:"resolved_at"`
}

// Validation is one run with all that is kept of it.
type Validation struct {
	Run
	Sequence    uint64           `json:"sequence"`
	Call        event.CallID     `json:"call_id,omitempty"`
	Declared    string           `json:"expectation_declared,omitempty"`
	FailureKind string           `json:"failure_kind,omitempty"`
	TestsPassed int              `json:"tests_passed"`
	ZeroTests   bool             `json:"zero_tests_run"`
	MinTests    int              `json:"min_tests,omitempty"`
	Scope       string           `json:"scope_identity"`
	Parser      ParserID         `json:"parser"`
	Failed      List[FailedName] `json:"failed"`
	Bound       *event.Binding   `json:"bound_to"`
}

// FailedName is a failure identity without what its run says of it.
type FailedName struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// NewValidationSummary shows the newest limit runs: ValidationLimit where it is absent,
// otherwise 1..MaxValidationLimit, and fewer where MaxAnswerBytes do not hold them. All else is
// of the whole retained tail, whatever the limit.
func NewValidationSummary(v View, s Snapshot, limit *int) ValidationSummary {
	ev, tree := gather(v), s.tree()
	out := ValidationSummary{SessionID: v.Core.ID, Project: projectOf(v.Core), Workspace: summaryWorkspace(s), Gaps: ev.gaps,
		Delta: ev.delta(), Jobs: jobsOf(v, s), Limit: clamp(limit, ValidationLimit, MaxValidationLimit),
		Unresolved: ev.unresolved(MaxFeedbackFailures), RetentionTruncated: v.Tail.Evicted()}
	out.Status, out.ReasonCode = ev.validationStatus(v)
	if n := len(ev.runs); n > 0 {
		out.Latest = new(ev.runs[n-1].show(tree))
	}
	if ev.proof != nil {
		out.LatestPass, out.Stale = new(ev.proof.show(tree)), ev.proof.stale(tree)
	}
	resolved := make([]Resolution, len(ev.resolved))
	for i, f := range ev.resolved {
		resolved[i] = Resolution{f.failure.failure(), f.by.id, event.FormatTime(f.by.at)}
	}
	out.Resolved = newList(resolved, MaxFeedbackFailures)
	events := make([]Validation, 0, min(len(ev.runs), out.Limit))
	for i := len(ev.runs) - 1; i >= 0 && len(events) < out.Limit; i-- {
		events = append(events, ev.runs[i].whole(tree))
	}
	out.Events = newList(events, out.Limit)
	out.Events.Total = len(ev.runs)
	out.Events.count()
	within(&out, MaxAnswerBytes, out.Events.shed, out.Resolved.shed, out.Unresolved.shed)
	return out
}

func summaryWorkspace(s Snapshot) SummaryWorkspace {
	w := briefWorkspace(s)
	out := SummaryWorkspace{Status: w.Status, ReasonCode: w.ReasonCode, Tree: s.tree()}
	if w.Head != nil {
		out.Commit = *w.Head
	}
	if out.Tree == "" && out.ReasonCode == "" && s.Workspace != nil {
		out.ReasonCode = atom(s.Workspace.TreeReason)
	}
	return out
}

func (r run) whole(tree string) Validation {
	failed := make([]FailedName, 0, len(r.Failures))
	for _, c := range r.Failures {
		failed = append(failed, FailedName(c))
	}
	return Validation{Run: r.show(tree), Sequence: r.seq, Call: r.call, Declared: atom(r.input.Expectation), FailureKind: atom(r.failureKind),
		TestsPassed: r.TestsPassed, ZeroTests: r.ZeroTests, MinTests: r.input.MinTests, Scope: r.Scope,
		Parser: ParserID{atom(r.Parser), r.ParserVer}, Failed: listWith(failed, MaxFailureCases, r.unnamed()), Bound: r.Bound}
}
