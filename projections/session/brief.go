package session

import (
	"slices"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// BriefVersion is the format of a Brief (HND-07).
const BriefVersion = 1

// Brief is the handoff brief: what the next window, another agent or a person needs to go on,
// at most MaxBriefBytes of JSON. It is a projection and no verdict: nothing in it proves that
// the task is done.
type Brief struct {
	Version       int                  `json:"version"`
	Deterministic bool                 `json:"deterministic"`
	LLMSummary    bool                 `json:"llm_summary"`
	Session       BriefSession         `json:"session"`
	Task          BriefTask            `json:"task"`
	Workspace     BriefWorkspace       `json:"workspace"`
	Progress      Progress             `json:"progress"`
	Validation    BriefValidation      `json:"validation"`
	Attention     Attention            `json:"attention"`
	External      ExternalObservations `json:"external_observations"`
	Checkpoints   BriefCheckpoints     `json:"checkpoints"`
	NextActions   List[Action]         `json:"next_actions"`
	Continuation  Continuation         `json:"continuation"`
	Basis         Basis                `json:"basis"`
}

// BriefSession says which Session this is.
type BriefSession struct {
	SessionID event.SessionID `json:"session_id"`
	Project   *string         `json:"project"`
	Title     string          `json:"title"`
	Mode      event.Mode      `json:"mode"`
	Lifecycle Lifecycle       `json:"lifecycle"`
	CreatedAt string          `json:"created_at"`
	UpdatedAt string          `json:"updated_at"`
}

// BriefTask is what was asked for and what helps to go on.
type BriefTask struct {
	Root      *Excerpt    `json:"root_instruction"`
	Latest    *Excerpt    `json:"latest_instruction"`
	Decisions Notes       `json:"decisions"`
	Progress  Notes       `json:"recent_progress"`
	Context   TaskContext `json:"context"`
}

// BriefWorkspace is the working tree; its members are null where nobody saw it.
type BriefWorkspace struct {
	Status       string  `json:"status"` // available, not_requested, unavailable (HND-29)
	ReasonCode   string  `json:"reason_code,omitempty"`
	Clean        *bool   `json:"clean"`
	Branch       *string `json:"branch"`
	Head         *string `json:"head"`
	Conflicts    *int    `json:"conflicts"`
	ChangedFiles *int    `json:"changed_files"`
}

// Progress of the task. Recent files are hints only (HND-17).
type Progress struct {
	State   State        `json:"state"`
	Changed List[string] `json:"changed_paths"`
	Recent  List[string] `json:"recent_files"`
}

// Attention counts what waits for somebody over the whole retained board, and stands: a message
// that another one superseded does not; null where it could not be read.
type Attention struct {
	Jobs          JobAttention `json:"jobs"`
	OpenGuidance  *int         `json:"open_guidance"`
	OpenQuestions *int         `json:"open_questions"`
	OpenTodos     *int         `json:"open_todos"`
	OpenRisks     *int         `json:"open_risks"`
}

// JobAttention counts all Jobs of the Session that have no end in the log, never a shortened
// list of them (CON-20). Of these a pending one was asked to end.
type JobAttention struct {
	Active          int    `json:"active_count"`
	Running         int    `json:"running_count"`
	Recovering      int    `json:"recovering_count"`
	TerminalPending int    `json:"terminal_pending_count"`
	Recovery        string `json:"recovery_state"` // none, active, recovering, terminal_pending
}

// blocking are those that hold the task up; one that was asked to end does not (HND-28).
func (j JobAttention) blocking() int { return j.Running + j.Recovering }

// ExternalObservations stand for reports of other tools; null where they cannot be read
// (HND-24).
type ExternalObservations struct {
	Status     string `json:"status"`
	ReasonCode string `json:"reason_code,omitempty"`
	Provenance string `json:"provenance"`
	Coverage   struct {
		Complete bool `json:"complete"`
	} `json:"coverage"`
	Total     *int  `json:"total"`
	Returned  *int  `json:"returned"`
	Truncated *bool `json:"truncated"`
	Unknown   *int  `json:"unknown_count"`
	// Items are the newest, newest first.
	Items []ExternalReport `json:"items"`
}

// Basis says what the brief rests on: complete only with no reason code (HND-31).
type Basis struct {
	Complete    bool     `json:"complete"`
	ReasonCodes []string `json:"reason_codes"`
}

// newBrief projects the brief from what the caller holds (HND-07, HND-10).
func newBrief(v View, ev evidence, s Snapshot) Brief {
	b := wholeBrief(v, ev, s)
	b.reduce(MaxBriefBytes)
	return b
}

// wholeBrief is the brief before its bytes are counted.
func wholeBrief(v View, ev evidence, s Snapshot) Brief {
	c := v.Core
	h := head(c)
	decisions, progress := newNotes(v, s, event.MessageDecision), newNotes(v, s, event.MessageProgress)
	b := Brief{Version: BriefVersion, Deterministic: true,
		Session: BriefSession{SessionID: h.SessionID, Project: h.Project, Title: h.Title, Mode: h.Mode,
			Lifecycle: h.Lifecycle, CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt},
		Task: BriefTask{Root: rootExcerpt(c), Latest: latestExcerpt(ev), Decisions: decisions, Progress: progress,
			Context: newTaskContext(v, ev, s)},
		Workspace:   briefWorkspace(s),
		Progress:    Progress{Changed: newList(ev.changed, MaxBriefChanged), Recent: newList(ev.recent, MaxBriefRecent)},
		Validation:  briefValidation(v, ev, s),
		Attention:   newAttention(v, s),
		External:    newExternal(c, s),
		Checkpoints: newCheckpoints(s),
	}
	b.Basis = basis(v, ev, s, b)
	b.Progress.State = progressState(v, ev, s, b)
	b.NextActions = newList(nextActions(v, ev, s, b), MaxBriefActions)
	b.Continuation = continuation(c)
	return b
}

// shown gives an instruction as a brief shows it; taken-out secrets count as truncation (HND-15).
func shown(text string, truncated bool, chars int) *Excerpt {
	t := redact.Text(text, chars)
	return &Excerpt{Text: t, Truncated: truncated || t != text || containsMark(t)}
}

func rootExcerpt(c Core) *Excerpt {
	if c.Task == nil {
		return nil
	}
	return shown(c.Task.Text, c.Task.Truncated, MaxExcerptChars)
}

func latestExcerpt(ev evidence) *Excerpt {
	if ev.latest == nil {
		return nil
	}
	return shown(ev.latest.Event().(event.InstructionAccepted).Text, false, MaxExcerptChars)
}

func briefWorkspace(s Snapshot) BriefWorkspace {
	w := s.Workspace
	switch {
	case !s.IncludeWorkspace:
		return BriefWorkspace{Status: statusNotRequested}
	case !w.seen():
		out := BriefWorkspace{Status: statusUnavailable, ReasonCode: codeWorkspaceUnavailable}
		if w != nil && w.Reason != "" {
			out.ReasonCode = atom(w.Reason)
		}
		return out
	}
	clean := w.Status == workspaceClean
	conflicts, changed := w.Conflicts, w.ChangedFiles
	return BriefWorkspace{Status: statusAvailable, Clean: &clean, Branch: optional(redact.Text(w.Branch, MaxBranchChars)),
		Head: optional(atom(w.Head)), Conflicts: &conflicts, ChangedFiles: &changed}
}

func basis(v View, ev evidence, s Snapshot, b Brief) Basis {
	codes := []string{}
	add := func(when bool, code string) {
		if when {
			codes = append(codes, code)
		}
	}
	add(boundary(v, ev).ReasonCode != "", codeBoundaryEvicted)
	add(b.Workspace.Status == statusNotRequested, codeWorkspaceSkipped)
	add(b.Workspace.Status == statusUnavailable, codeWorkspaceUnavailable)
	add(b.Validation.Status == statusNotRequested, codeValidationSkipped)
	add(b.Validation.Status == statusUnavailable, codeValidationUnavailable)
	add(b.Checkpoints.Status == statusUnavailable, codeCheckpoints)
	add(!discussed(v, s), codeDiscussion)
	add(!discussed(v, s), codeGuidance)
	add(s.SessionChanged, codeSessionChanged)
	add(s.ExternalChanged, codeExternalChanged)
	add(len(ev.unknown) > 0, codeUnknownOutcome)
	slices.Sort(codes)
	return Basis{Complete: len(codes) == 0, ReasonCodes: codes}
}
