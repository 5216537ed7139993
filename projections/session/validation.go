package session

import (
	"strings"

	"webcodex/eventlog/event"
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

// Run is one validating run. Its outcome is passed, failed, expected_failure (neutral),
// zero_tests, or unproven where the run ended without a result.
type Run struct {
	EventID      event.EventID `json:"event_id"`
	At           string        `json:"at"`
	Tool         string        `json:"tool"`
	Kind         string        `json:"kind"`
	TargetID     string        `json:"target_id"`
	Outcome      string        `json:"outcome"`
	TestsRun     int           `json:"tests_run"`
	TestsFailed  int           `json:"tests_failed"`
	TestsSkipped int           `json:"tests_skipped"`
}

// Failure is an unresolved failure identity: no later proven pass of the same tool, target
// and scope is retained.
type Failure struct {
	Kind        string        `json:"kind"` // test, or unknown where no failed test was counted (VAL-24)
	Name        string        `json:"name"` // tool, packages and target
	EventID     event.EventID `json:"event_id"`
	At          string        `json:"at"`
	TestsFailed int           `json:"tests_failed"`
}

// Delta compares the latest run with the one before it of the same identity (VAL-19…21).
type Delta struct {
	Status     string `json:"status"`
	ReasonCode string `json:"reason_code,omitempty"`
	Passed     *int   `json:"passed_delta,omitempty"`
	Failed     *int   `json:"failed_delta,omitempty"`
	Ignored    *int   `json:"ignored_delta,omitempty"`
	Total      *int   `json:"total_delta,omitempty"`
}

func briefValidation(v View, ev evidence, s Snapshot) BriefValidation {
	out := BriefValidation{Status: statusNotRequested, Failures: List[Failure]{Items: []Failure{}}}
	if !s.IncludeValidation {
		return out
	}
	failures := make([]Failure, len(ev.failures))
	for i, r := range ev.failures {
		failures[i] = r.failure()
	}
	out.Failures = newList(failures, MaxBriefFailures)
	if n := len(ev.runs); n > 0 {
		latest := ev.runs[n-1].show()
		out.Latest = &latest
		out.Delta = delta(ev.runs)
	}
	out.Status, out.ReasonCode = ev.validationStatus(v)
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

func (r run) outcome() string {
	switch {
	case r.neutral():
		return "expected_failure"
	case r.failed():
		return "failed"
	case r.proves():
		return "passed"
	case r.ZeroTests:
		return "zero_tests"
	default:
		return "unproven"
	}
}

func (r run) show() Run {
	return Run{EventID: r.id, At: event.FormatTime(r.at), Tool: toolName(r.tool), Kind: atom(r.Kind), TargetID: atom(r.TargetID),
		Outcome: r.outcome(), TestsRun: r.TestsRun, TestsFailed: r.TestsFailed, TestsSkipped: r.TestsSkipped}
}

func (r run) failure() Failure {
	kind := "unknown"
	if r.TestsFailed > 0 {
		kind = "test"
	}
	name := toolName(r.tool)
	if len(r.input.Packages) > 0 {
		name += " " + atom(strings.Join(r.input.Packages, " "))
	}
	if r.TargetID != "" {
		name += " " + atom(r.TargetID)
	}
	return Failure{Kind: kind, Name: name, EventID: r.id, At: event.FormatTime(r.at), TestsFailed: r.TestsFailed}
}

// delta of the newest run; it is available only where both runs are proven comparable.
func delta(runs []run) *Delta {
	unavailable := func(code string) *Delta { return &Delta{Status: statusUnavailable, ReasonCode: code} }
	now := runs[len(runs)-1]
	if len(runs) < 2 {
		return unavailable("no_previous_validation")
	}
	if now.TargetID == "" || now.Scope == "" {
		return unavailable("insufficient_scope_identity")
	}
	var before *run
	for i := len(runs) - 2; i >= 0 && before == nil; i-- {
		if runs[i].identity() == now.identity() && runs[i].Kind == now.Kind {
			before = &runs[i]
		}
	}
	switch {
	case before == nil:
		return unavailable("validation_scope_changed")
	case now.Parser == "" || before.Parser == "":
		return unavailable("parser_identity_unavailable")
	case now.Parser != before.Parser || now.ParserVer != before.ParserVer:
		return unavailable("parser_changed")
	case now.Passed == nil:
		return unavailable("current_evidence_incomplete")
	case before.Passed == nil:
		return unavailable("previous_evidence_incomplete")
	}
	diff := func(a, b int) *int { n := a - b; return &n }
	return &Delta{Status: statusAvailable, Passed: diff(now.TestsPassed, before.TestsPassed),
		Failed: diff(now.TestsFailed, before.TestsFailed), Ignored: diff(now.TestsSkipped, before.TestsSkipped),
		Total: diff(now.TestsRun, before.TestsRun)}
}
