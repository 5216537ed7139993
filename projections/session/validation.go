package session

import (
	"fmt"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
)

// Validation statuses of a brief (HND-30).
const (
	validationPassed = "passed"
	validationFailed = "failed"
	validationNotRun = "not_run"
)

// BriefValidation is what the retained runs prove. A run that met its declared failure is
// neutral and moves nothing.
type BriefValidation struct {
	Status     string        `json:"status"` // passed, failed, not_run, not_requested, unavailable
	ReasonCode string        `json:"reason_code,omitempty"`
	Latest     *Run          `json:"latest"`
	Failures   List[Failure] `json:"failures"`
	Delta      *Delta        `json:"delta"`
}

// Run is one validating run. Three facts stand apart and never rewrite each other (VAL-01):
// what came out, whether that is what its caller expected, and whether validation passed.
type Run struct {
	EventID  event.EventID `json:"event_id"`
	At       string        `json:"at"`
	Tool     string        `json:"tool"`
	Kind     string        `json:"kind"`
	TargetID string        `json:"target_id"`
	// Outcome is passed, failed, zero_tests, insufficient_tests, not_a_module, or unproven where
	// the run ended without a result.
	Outcome string `json:"outcome"`
	// Expectation is the expectation result, and Met whether it was met; null where no program
	// classified the run.
	Expectation string `json:"expectation_result"`
	Met         *bool  `json:"expectation_met"`
	// Passed: it proves a pass.
	Passed       bool `json:"validation_passed"`
	TestsRun     int  `json:"tests_run"`
	TestsFailed  int  `json:"tests_failed"`
	TestsSkipped int  `json:"tests_skipped"`
	// Stale: the files are other ones by now; null where that cannot be told.
	Stale *bool `json:"stale"`
}

// Failure is an unresolved failure identity: no later proven pass of the same tool and target is
// retained.
type Failure struct {
	Kind        string        `json:"kind"` // test, diagnostic, or unknown where nothing was named (VAL-24)
	Name        string        `json:"name"` // of the test or the place, else tool, packages and target
	File        string        `json:"file,omitempty"`
	Line        int           `json:"line,omitempty"`
	TargetID    string        `json:"target_id,omitempty"`
	EventID     event.EventID `json:"event_id"`
	At          string        `json:"at"`
	TestsFailed int           `json:"tests_failed"`
}

func briefValidation(v View, ev evidence, s Snapshot) BriefValidation {
	out := BriefValidation{Status: statusNotRequested, Failures: List[Failure]{Items: []Failure{}}}
	if !s.IncludeValidation {
		return out
	}
	out.Failures = ev.unresolved(MaxBriefFailures)
	if n := len(ev.runs); n > 0 {
		latest := ev.runs[n-1].show(s.tree())
		out.Latest = &latest
		out.Delta = ev.delta()
		out.Delta.Comparison = nil
	}
	out.Status, out.ReasonCode = ev.validationStatus(v)
	if out.Status == validationPassed && ev.unproven(v, s) {
		out.ReasonCode = codeChangedSince
	}
	return out
}

// validationStatus goes by the newest run that counts; an unresolved failure of any identity
// outweighs it.
func (ev evidence) validationStatus(v View) (status, reason string) {
	if len(ev.failures) > 0 {
		return validationFailed, ""
	}
	for i := len(ev.runs) - 1; i >= 0; i-- {
		switch r := ev.runs[i]; {
		case r.neutral():
		case r.proves():
			return validationPassed, ""
		default: // ended without a result, or passed with no test run
			return statusUnavailable, codeValidationUnavailable
		}
	}
	if v.Tail.Evicted() { // a run may have left the tail
		return statusUnavailable, codeValidationUnavailable
	}
	return validationNotRun, ""
}

// outcome is what came out, whatever was expected.
func (r run) outcome() string {
	switch {
	case r.gap():
		return r.failureKind
	case r.Passed == nil:
		return "unproven"
	case !*r.Passed:
		return "failed"
	case r.ZeroTests:
		return "zero_tests"
	default:
		return "passed"
	}
}

// met tells whether the run came out as its caller declared.
func (r run) met() *bool {
	switch r.expectation {
	case event.ExpectationMatched:
		return new(true)
	case event.UnexpectedFailure, event.ExpectationMismatch, event.UnexpectedSuccess:
		return new(false)
	}
	if r.Passed != nil && *r.Passed { // success, as is expected where nothing is declared
		return new(true)
	}
	return nil
}

func (r run) show(tree string) Run {
	return Run{EventID: r.id, At: event.FormatTime(r.at), Tool: toolName(r.tool), Kind: atom(r.Kind), TargetID: atom(r.TargetID),
		Outcome: r.outcome(), Expectation: atom(r.expectation), Met: r.met(), Passed: r.proves(),
		TestsRun: r.TestsRun, TestsFailed: r.TestsFailed, TestsSkipped: r.TestsSkipped, Stale: r.stale(tree)}
}

// unresolved are the first failures that are unresolved, those without a name counted with them.
func (ev evidence) unresolved(limit int) List[Failure] { return listWith(ev.cases, limit, ev.unnamed) }

// listWith is newList of what is known, where more there is are but counted.
func listWith[T any](known []T, limit, more int) List[T] {
	l := newList(known, limit)
	l.Total += more
	l.count()
	return l
}

// unnamed counts the tests that failed beyond those that are named: the first ones are stored.
func (r run) unnamed() int {
	if len(r.Failures) < MaxFailureCases {
		return 0
	}
	named := 0
	for _, c := range r.Failures {
		named += one(c.Kind == event.FailureTest)
	}
	return max(0, r.TestsFailed-named)
}

// cases are what failed in a run by name; a run that named nothing is one itself.
func (r run) cases() []Failure {
	base := Failure{Kind: event.FailureUnknown, Name: r.name(), TargetID: atom(r.TargetID), EventID: r.id, At: event.FormatTime(r.at),
		TestsFailed: r.TestsFailed}
	if r.TestsFailed > 0 {
		base.Kind = event.FailureTest
	}
	if len(r.Failures) == 0 {
		return []Failure{base}
	}
	out := make([]Failure, len(r.Failures))
	for i, c := range r.Failures {
		out[i] = base
		out[i].Kind, out[i].Name, out[i].File, out[i].Line = c.Kind, redact.Text(c.Name, MaxFailureName), c.File, c.Line
	}
	return out
}

// failure is the first of them.
func (r run) failure() Failure { return r.cases()[0] }

// told is how a suggestion names a failed run: what it was, and what failed in it.
func (r run) told() string {
	out := r.name()
	if n := len(r.Failures); n > 0 {
		out += ": " + r.failure().Name
		if n += r.unnamed(); n > 1 {
			out += fmt.Sprintf(" and %d more", n-1)
		}
	}
	if n := r.TestsFailed; n > 0 {
		out += fmt.Sprintf(" (%s failed)", amount(n, "test"))
	}
	return out
}

// amount is a number of things.
func amount(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
