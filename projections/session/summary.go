package session

import (
	"encoding/json"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// Head is what a Session is, in every view of it.
type Head struct {
	SessionID event.SessionID        `json:"session_id"`
	Project   *string                `json:"project"`
	Title     string                 `json:"title"`
	Mode      event.Mode             `json:"mode"`
	Guards    event.Guards           `json:"guards"`
	Context   event.ExecutionContext `json:"execution_context"` // {} when empty (EVT-32)
	Lifecycle Lifecycle              `json:"lifecycle"`
	CreatedAt string                 `json:"created_at"`
	UpdatedAt string                 `json:"updated_at"`
}

func head(c Core) Head {
	return Head{SessionID: c.ID, Project: projectOf(c), Title: redact.Text(c.Title, MaxTitleChars), Mode: c.Mode, Guards: c.Guards,
		Context: c.Context, Lifecycle: c.Lifecycle,
		CreatedAt: event.FormatTime(c.CreatedAt), UpdatedAt: event.FormatTime(c.UpdatedAt)}
}

func projectOf(c Core) *string {
	if c.Project.Zero() {
		return nil
	}
	return optional(c.Project.String())
}

// Summary is the output of read_session_summary.
type Summary struct {
	Head
	// Counts cover the retained ledger, not the Session's lifetime, and say so (EVT-05).
	Counts      Counts `json:"counts"`
	CountsCover string `json:"counts_cover"`
	// EventsObserved is cumulative; EventsTotal is what is retained (EVT-06, EVT-23).
	EventsObserved uint64 `json:"events_observed"`
	EventsTotal    int    `json:"events_total"`
	EventsReturned int    `json:"events_returned"`
	// EventsTruncated: the events below are only the newest of the retained ones.
	EventsTruncated bool `json:"events_truncated"`
	// RetentionTruncated: older events have left the tail.
	RetentionTruncated bool `json:"retention_truncated"`
	// FirstRetained is the absolute sequence of the oldest retained event.
	FirstRetained uint64    `json:"first_retained_sequence"`
	Limit         int       `json:"limit"`
	Events        []Event   `json:"events"`
	Messages      *Messages `json:"messages"`
}

// Messages counts the retained board; null members where it could not be read.
type Messages struct {
	Total      *int   `json:"total"`
	Open       *int   `json:"open"`
	ReasonCode string `json:"reason_code,omitempty"`
}

// Event is one tail event as shown to a model.
type Event struct {
	Sequence    uint64             `json:"sequence"`
	EventID     event.EventID      `json:"event_id"`
	Kind        Kind               `json:"kind"`
	At          string             `json:"at"`
	Call        event.CallID       `json:"call_id,omitempty"`
	Invocation  event.InvocationID `json:"invocation_id,omitempty"`
	Role        event.Role         `json:"role,omitempty"`
	Tool        string             `json:"tool_name,omitempty"`
	Transport   string             `json:"transport,omitempty"`
	Status      string             `json:"status,omitempty"`
	ExitCode    *int               `json:"exit_code,omitempty"`
	DurationMS  *int64             `json:"duration_ms,omitempty"` // absent where a crash hid it
	ErrorKind   string             `json:"error_kind,omitempty"`
	FailureKind string             `json:"failure_kind,omitempty"`
	Error       string             `json:"error_summary,omitempty"`
	Input       *event.Input       `json:"input,omitempty"`
	Changed     []string           `json:"changed_paths,omitempty"`
	Observed    []string           `json:"observed_paths,omitempty"`
	// PathsTotal is present where a path list above was shortened.
	PathsTotal  int               `json:"paths_total,omitempty"`
	Execution   event.ExecutionID `json:"execution_id,omitempty"`
	Promoted    bool              `json:"promoted_to_job,omitempty"`
	Job         event.ExecutionID `json:"job_id,omitempty"` // of a call that became one, and of its end
	Recovered   bool              `json:"recovered,omitempty"`
	Replays     event.ExecutionID `json:"replays,omitempty"` // that its idempotency key stood for
	Effect      *event.Effect     `json:"effect,omitempty"`
	Expectation string            `json:"expectation_result,omitempty"`
	Validation  *event.Validation `json:"validation,omitempty"`
	// Result sums up what a read gave, in counts (EVT-15).
	Result      *event.ContextResult `json:"context_result_summary,omitempty"`
	Instruction *Instruction         `json:"instruction,omitempty"`
	Context     *ContextChange       `json:"execution_context,omitempty"`
}

// Instruction is what a task_instruction event keeps (EVT-22).
type Instruction struct {
	Text              string        `json:"text"`
	Truncated         bool          `json:"truncated"`
	Continuation      string        `json:"continuation"`
	RequestedMode     event.Mode    `json:"requested_mode,omitempty"`
	PreviousMode      event.Mode    `json:"previous_mode,omitempty"`
	Mode              event.Mode    `json:"mode"`
	Guards            event.Guards  `json:"guards"`
	PreviousGuards    *event.Guards `json:"previous_guards,omitempty"`
	CapabilityChanged bool          `json:"capability_changed"`
}

// ContextChange is the new and the replaced execution context.
type ContextChange struct {
	Context  event.ExecutionContext `json:"context"`
	Previous event.ExecutionContext `json:"previous"`
}

// NewSummary makes the summary of v. Without a limit it is SummaryLimit events, otherwise
// limit clamped to 1..MaxSummaryLimit (EVT-02); the tail's size never enlarges it (EVT-03).
// Fewer are returned where MaxAnswerBytes do not hold them.
func NewSummary(v View, limit *int) Summary {
	return newLedger(v, gather(v), clamp(limit, SummaryLimit, MaxSummaryLimit), MaxAnswerBytes)
}

// clamp gives the effective value of an optional limit: def when absent, else 1..most.
func clamp(limit *int, def, most int) int {
	if limit == nil {
		return def
	}
	return min(max(*limit, 1), most)
}

func newMessages(v View) *Messages {
	if v.Board.unread > 0 {
		return &Messages{ReasonCode: codeDiscussion}
	}
	n := v.Board.Count()
	return &Messages{Total: &n.Total, Open: &n.Open}
}

func newLedger(v View, ev evidence, limit, budget int) Summary {
	items := v.Tail.Items()
	s := Summary{Head: head(v.Core), Counts: ev.counts, CountsCover: "retained_ledger",
		EventsObserved: v.Core.Observed, EventsTotal: len(items), RetentionTruncated: v.Tail.Evicted(),
		FirstRetained: v.Tail.First(), Limit: limit, Messages: newMessages(v)}
	items = items[max(0, len(items)-limit):]
	s.Events = make([]Event, len(items))
	for i, it := range items {
		s.Events[i] = showEvent(v.Core.ID, it)
	}
	s.fit(budget)
	s.EventsReturned = len(s.Events)
	s.EventsTruncated = s.EventsReturned < s.EventsTotal
	return s
}

// fit keeps the summary within its bytes: oldest events lose their paths, then the rest of
// their long texts, then leave.
func (s *Summary) fit(budget int) {
	sizes := make([]int, len(s.Events))
	total := size(s) - size(s.Events)
	for i := range s.Events {
		sizes[i] = size(s.Events[i]) + 1
		total += sizes[i]
	}
	for i := range s.Events {
		if total <= budget {
			return
		}
		e := &s.Events[i]
		if n := len(e.Changed) + len(e.Observed); n > 0 {
			e.PathsTotal, e.Changed, e.Observed = max(e.PathsTotal, n), nil, nil
		}
		if e.Instruction != nil {
			x := excerpt(e.Instruction.Text, MaxTitleChars)
			cutShort := *e.Instruction
			cutShort.Text, cutShort.Truncated = x.Text, x.Truncated || cutShort.Truncated
			e.Instruction = &cutShort
		}
		n := size(*e) + 1
		total, sizes[i] = total-sizes[i]+n, n
	}
	drop := 0
	for ; drop < len(sizes) && total > budget; drop++ {
		total -= sizes[drop]
	}
	s.Events = s.Events[drop:]
}

// size is the length of v's JSON as encoding/json writes it by default, the longest form any
// edge sends.
func size(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}

func showEvent(id event.SessionID, it Item) Event {
	out := Event{Sequence: it.Seq, EventID: it.ID(id), Kind: it.Kind, At: event.FormatTime(it.At),
		Invocation: it.Inv, Role: it.Role}
	switch e := it.Event().(type) {
	case event.InstructionAccepted:
		out.Transport = e.Transport
		out.Instruction = &Instruction{Text: e.Text, Continuation: e.Continuation, RequestedMode: e.RequestedMode,
			PreviousMode: e.PreviousMode, Mode: e.Mode, Guards: e.Guards, PreviousGuards: e.PreviousGuards,
			CapabilityChanged: e.CapabilityChanged}
	case event.ContextUpdated:
		out.Context = &ContextChange{e.Context, e.Previous}
	case event.ToolCallStarted:
		out.Call, out.Tool, out.Transport, out.Input = e.Call, e.Tool, e.Transport, &e.Input
		if e.Execution != nil {
			out.Execution = e.Execution.ID
		}
	case event.ToolCallFinished:
		showFinish(&out, e)
	case event.ExecutionFinished:
		out.Call, out.Tool, out.Execution, out.Job, out.ExitCode = e.Call, e.Tool, e.Execution, e.Execution, e.ExitCode
		out.FailureKind, out.Effect = e.FailureKind, &e.Effect
		if e.DurationMS > 0 || e.Effect.State != event.OutcomeUnknown {
			out.DurationMS = &e.DurationMS
		}
		out.Expectation, out.Validation = e.Expectation, e.Validation
	case event.SessionClosed, event.SessionCreated, event.InstructionsObserved, event.ExecutionReconciled, event.SessionRefBound, event.SessionCarried,
		event.MessagePosted, event.MessageResolved, event.MessageCompleted, event.MessagesAcknowledged:
	}
	return out
}

func showFinish(out *Event, e event.ToolCallFinished) {
	out.Call, out.Tool, out.Transport, out.Status = e.Call, e.Tool, e.Transport, e.Status
	out.ExitCode, out.ErrorKind, out.FailureKind = e.ExitCode, e.ErrorKind, e.FailureKind
	if e.DurationMS > 0 || !e.Recovered {
		out.DurationMS = &e.DurationMS
	}
	out.Error, _ = cut(e.ErrorSummary, MaxTitleChars)
	out.Changed, out.Observed = first(e.Changed, MaxSummaryPaths), first(e.Observed, MaxSummaryPaths)
	if n := len(e.Changed) + len(e.Observed); n > len(out.Changed)+len(out.Observed) {
		out.PathsTotal = n
	}
	out.Execution, out.Promoted, out.Recovered, out.Replays = e.Execution, e.Promoted, e.Recovered, e.Replays
	out.Effect, out.Expectation, out.Validation, out.Result = &e.Effect, e.Expectation, e.Validation, e.Context
	if e.Promoted {
		out.Job = e.Execution
	}
}

func first(s []string, n int) []string { return s[:min(len(s), n):min(len(s), n)] }
