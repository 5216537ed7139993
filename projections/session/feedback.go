package session

import (
	"fmt"
	"slices"
	"strings"

	"webcodex/eventlog/event"
)

// Feedback is the continuation feedback: what the attempt did that began with the newest
// retained instruction. It never stands in for a finish verdict (CON-03).
type Feedback struct {
	Status        string   `json:"status"` // available, not_applicable
	ReasonCode    string   `json:"reason_code,omitempty"`
	Deterministic bool     `json:"deterministic"`
	LLMSummary    bool     `json:"llm_summary"`
	Attempt       *Attempt `json:"attempt"`
	Delta         *Delta   `json:"validation_delta"`
	Suggested     []Action `json:"suggested_actions"`
}

// Attempt is the work since the newest retained instruction, or, where that has left the
// tail, all that is retained; then it says so.
type Attempt struct {
	Boundary    Boundary     `json:"boundary"`
	Range       EventRange   `json:"event_range"`
	Instruction *Excerpt     `json:"instruction"`
	Activity    Counts       `json:"activity"`
	Expected    Expected     `json:"expectations"`
	Changes     List[string] `json:"changes"`
	Exploration Exploration  `json:"exploration"`
	// Failures are those that are unresolved now, whenever they came up (VAL-24).
	Failures   List[Failure]     `json:"failures"`
	Validation AttemptValidation `json:"validation"`
	Jobs       JobAttention      `json:"jobs"`
}

// AttemptValidation is where validation stands after the attempt.
type AttemptValidation struct {
	Section
	Latest *Run `json:"latest"`
	// Gaps are runs whose evidence has a gap: no failure of the code (VAL-15).
	Gaps int `json:"evidence_gaps"`
}

// EventRange is where the attempt lies in the Session's event count.
type EventRange struct {
	First    uint64 `json:"first_sequence"`
	Last     uint64 `json:"last_sequence"`
	Complete bool   `json:"complete"`
}

// Exploration lists what focused reads looked at, newest first: hints, no contents (CON-13).
type Exploration struct {
	Complete bool         `json:"complete"`
	Paths    List[string] `json:"observed_paths"`
}

// NewFeedback projects the feedback with at most paths changed and explored paths each, up to
// MaxFeedbackPaths. At a resume it is made of the View before the new instruction, so that it
// tells of the attempt before (CON-06).
func NewFeedback(v View, s Snapshot, paths int) Feedback { return newFeedback(v, gather(v), s, paths) }

// FreshFeedback is the feedback of a Session that was just created (CON-08).
func FreshFeedback() Feedback {
	return Feedback{Status: statusNotApplicable, ReasonCode: "fresh_session", Deterministic: true, Suggested: []Action{}}
}

func newFeedback(v View, ev evidence, s Snapshot, paths int) Feedback {
	paths = min(max(paths, 1), MaxFeedbackPaths)
	b := boundary(v, ev)
	a := Attempt{Boundary: b, Range: EventRange{First: b.Sequence, Last: v.Core.Observed, Complete: b.Complete},
		Jobs: jobsOf(v, s), Failures: List[Failure]{Items: []Failure{}}}
	if b.Sequence == 0 {
		a.Range.First = v.Tail.First()
	}
	of := ev.attempt
	a.Activity, a.Expected = of.counts, of.expected
	a.Changes, a.Exploration = newList(of.changed, paths), Exploration{b.Complete, newList(of.recent, paths)}
	if ev.latest != nil {
		a.Instruction = shown(ev.latest.Event().(event.InstructionAccepted).Text, false, MaxAttemptChars)
	}
	f := Feedback{Status: statusAvailable, Deterministic: true, Attempt: &a}
	if s.IncludeValidation {
		a.Validation.Status, a.Validation.ReasonCode = ev.validationStatus(v)
		a.Validation.Gaps = ev.gaps
		if n := len(ev.runs); n > 0 {
			latest := ev.runs[n-1].show(s.tree())
			a.Validation.Latest = &latest
		}
		a.Failures, f.Delta = ev.unresolved(MaxFeedbackFailures), ev.delta()
	} else {
		a.Validation.Section = Section{statusNotRequested, codeValidationSkipped}
		f.Delta = &Delta{Status: statusUnavailable, ReasonCode: codeValidationSkipped}
	}
	f.Suggested = suggested(v, ev, s)
	within(&f, MaxFeedbackBytes, a.Exploration.Paths.shed, a.Changes.shed, a.Failures.shed)
	return f
}

// suggested puts a concrete failure first, and names it (CON-07). The working tree is no part of a
// feedback, so nothing is said of it where it was not looked at.
func suggested(v View, ev evidence, s Snapshot) []Action {
	b := Brief{Validation: briefValidation(v, ev, s), Attention: newAttention(v, s)}
	all := nextActions(v, ev, s, b)
	if s.IncludeValidation && len(ev.failures) > 0 {
		f := ev.failures[0]
		why := fmt.Sprintf("unresolved failure of %s", f.told())
		if i := slices.IndexFunc(all, func(a Action) bool { return strings.HasPrefix(a.Why, why) }); i >= 0 {
			failed := all[i]
			all = slices.Insert(slices.Delete(all, i, i+1), 0, failed)
		} else if len(all) > 0 { // the Session takes no run any more
			all[0].Why = why + ": " + all[0].Why
		}
	}
	return append([]Action{}, all[:min(len(all), MaxFeedbackActions)]...)
}
