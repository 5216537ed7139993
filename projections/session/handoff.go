package session

import (
	"slices"

	"webcodex/eventlog/event"
)

// Handoff is the output of read_session_handoff: three members, and what diagnostic asked for
// beside them (HND-03, HND-04).
type Handoff struct {
	SessionID  event.SessionID `json:"session_id"`
	SessionRef string          `json:"session_ref,omitempty"`
	Project    *string         `json:"project"`
	Brief      Brief           `json:"handoff_brief"`
	*Diagnostic
}

// Diagnostic is the detailed ledger and closeout evidence.
type Diagnostic struct {
	Ledger   Summary   `json:"ledger"`
	Open     OpenWork  `json:"open_work"`
	Closeout Verdict   `json:"closeout"`
	Feedback *Feedback `json:"continuation_feedback"`
}

// OpenWork lists calls and Jobs without an end and outcomes nobody could prove.
type OpenWork struct {
	Calls    List[OpenItem] `json:"open_calls"`
	Jobs     List[OpenItem] `json:"jobs"`
	Unknown  List[OpenItem] `json:"unknown_outcomes"` // newest first
	Dropped  int            `json:"unknown_outcomes_dropped"`
	Complete bool           `json:"complete"`
}

// OpenItem is one call or execution without a proven end.
type OpenItem struct {
	Call      event.CallID      `json:"call_id,omitempty"`
	Execution event.ExecutionID `json:"execution_id,omitempty"`
	Tool      string            `json:"tool_name"`
	At        string            `json:"at"`
}

// NewHandoff makes the handoff. limit is of the diagnostic ledger: HandoffLimit events where
// it is absent, otherwise clamped to 1..MaxHandoffLimit (HND-05); the brief and the feedback
// never depend on it (CON-18).
func NewHandoff(v View, s Snapshot, diagnostic bool, limit *int) Handoff {
	ev := gather(v)
	b := newBrief(v, ev, s)
	h := Handoff{SessionID: v.Core.ID, Project: projectOf(v.Core), Brief: b}
	if !diagnostic {
		return h
	}
	n := clamp(limit, HandoffLimit, MaxHandoffLimit)
	feedback := newFeedback(v, ev, s, MaxFeedbackPaths)
	h.Diagnostic = &Diagnostic{Open: openWork(v.Core), Closeout: verdict(v, ev, s, b, FinishOptions{}), Feedback: &feedback}
	// The ledger has what the rest leaves; the size of an empty one is within that rest.
	h.Ledger = newLedger(v, ev, n, MaxAnswerBytes-size(h)+size(Summary{}))
	return h
}

func openWork(c Core) OpenWork {
	var calls, jobs, unknown []OpenItem
	for _, o := range openCalls(c) {
		it := OpenItem{Call: o.Started.Call, Tool: toolName(o.Started.Tool), At: event.FormatTime(o.At)}
		if o.Started.Execution != nil {
			it.Execution = o.Started.Execution.ID
		}
		calls = append(calls, it)
	}
	for _, j := range openJobs(c) {
		jobs = append(jobs, OpenItem{j.Call, j.Execution.ID, toolName(j.Tool), event.FormatTime(j.At)})
	}
	for _, u := range slices.Backward(c.Unknown) {
		unknown = append(unknown, OpenItem{u.Call, u.Execution, toolName(u.Tool), event.FormatTime(u.At)})
	}
	w := OpenWork{Calls: newList(calls, MaxOpenItems), Jobs: newList(jobs, MaxOpenItems), Unknown: newList(unknown, MaxOpenItems),
		Dropped: c.UnknownDropped}
	w.Complete = !w.Calls.Truncated && !w.Jobs.Truncated && !w.Unknown.Truncated && w.Dropped == 0
	return w
}
