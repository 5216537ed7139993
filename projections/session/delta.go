package session

import (
	"slices"

	"webcodex/eventlog/event"
)

// Delta compares the latest run with the one before it of the same scope. It is available only
// where both are proven comparable, else it says why not (VAL-19…21).
type Delta struct {
	Status     string      `json:"status"`
	ReasonCode string      `json:"reason_code,omitempty"`
	Passed     *int        `json:"passed_delta,omitempty"`
	Failed     *int        `json:"failed_delta,omitempty"`
	Ignored    *int        `json:"ignored_delta,omitempty"`
	Total      *int        `json:"total_delta,omitempty"`
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Comparison says what was compared, opaquely (VAL-22, VAL-23).
type Comparison struct {
	Scope    string        `json:"scope_identity"`
	Parser   ParserID      `json:"parser"`
	Latest   event.EventID `json:"latest_event_id"`
	Previous event.EventID `json:"previous_event_id,omitempty"`
}

// ParserID is how the output of a run was read.
type ParserID struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

// Reasons for no delta, a closed set (VAL-20); codeValidationSkipped is another.
const (
	codeNoPrevious      = "no_previous_validation"
	codeScopeChanged    = "validation_scope_changed"
	codePreviousPartial = "previous_evidence_incomplete"
	codeCurrentPartial  = "current_evidence_incomplete"
	codeParserChanged   = "parser_changed"
	codeNoParser        = "parser_identity_unavailable"
	codeNoTestIdentity  = "test_identity_unavailable"
	codeNoScope         = "insufficient_scope_identity"
)

// withoutTests are the parsers of runs in which no test is counted: the exit status alone says how
// they came out.
var withoutTests = set("none", "cargo-check", "rustfmt", "go-vet")

// complete reports that a run's counts tell all of it. Where something did not build, or a program
// failed without a failing test, there may be tests that nobody counted.
func (r run) complete() bool {
	if r.Passed == nil || r.gap() {
		return false
	}
	uncounted := func(c event.FailedCase) bool { return c.Kind != event.FailureTest }
	return *r.Passed || r.TestsFailed > 0 && !slices.ContainsFunc(r.Failures, uncounted)
}

// delta of the newest run. A run of another scope in between does not hide the one that the
// newest can be compared with.
func (ev evidence) delta() *Delta {
	d := &Delta{Status: statusUnavailable}
	if len(ev.runs) == 0 {
		d.ReasonCode = codeNoPrevious
		return d
	}
	now := ev.runs[len(ev.runs)-1]
	before := now.comparable(ev.runs[:len(ev.runs)-1])
	d.ReasonCode = reason(now, before, len(ev.runs))
	if now.Scope != "" {
		d.Comparison = &Comparison{Scope: now.Scope, Parser: ParserID{atom(now.Parser), now.ParserVer}, Latest: now.id}
	}
	if before == nil {
		return d
	}
	if d.Comparison != nil {
		d.Comparison.Previous = before.id
	}
	if d.ReasonCode != "" {
		return d
	}
	d.Status = statusAvailable
	d.Passed, d.Failed = new(now.TestsPassed-before.TestsPassed), new(now.TestsFailed-before.TestsFailed)
	d.Ignored, d.Total = new(now.TestsSkipped-before.TestsSkipped), new(now.TestsRun-before.TestsRun)
	return d
}

// comparable finds the newest earlier run of the same kind, tool and scope, which holds
// directory, packages, features, targets, filter and purpose.
func (r run) comparable(earlier []run) *run {
	for i := len(earlier) - 1; i >= 0; i-- {
		if e := &earlier[i]; e.Scope == r.Scope && e.Kind == r.Kind && e.tool == r.tool && e.TargetID == r.TargetID {
			return e
		}
	}
	return nil
}

// reason is why two runs cannot be compared; empty: they can.
func reason(now run, before *run, runs int) string {
	switch {
	case runs < 2:
		return codeNoPrevious
	case now.TargetID == "" || now.Scope == "":
		return codeNoScope
	case before == nil:
		return codeScopeChanged
	case now.Parser == "" || before.Parser == "":
		return codeNoParser
	case now.Parser != before.Parser || now.ParserVer != before.ParserVer:
		return codeParserChanged
	case withoutTests[now.Parser]:
		return codeNoTestIdentity
	case !now.complete():
		return codeCurrentPartial
	case !before.complete():
		return codePreviousPartial
	default:
		return ""
	}
}
