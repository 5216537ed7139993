package session

import (
	"fmt"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// A run whose tests were not all counted, since something did not build or a program failed on its
// own, is no evidence of how many tests there are.
//
// Covers: VAL-19, VAL-20
func TestDeltasCountOnlyWhatRan(t *testing.T) {
	whole := failing("p.TestA")
	for name, partial := range map[string]func(*event.Validation){
		"nothing built": func(v *event.Validation) {
			v.TestsRun, v.TestsPassed, v.TestsFailed = 0, 0, 0
			v.Failures = []event.FailedCase{{Kind: event.FailureDiagnostic, Name: "compile_error", File: "a.go", Line: 3}}
		},
		"a package did not build": func(v *event.Validation) {
			v.Failures = append(v.Failures, event.FailedCase{Kind: event.FailureDiagnostic, Name: "compile_error", File: "b/b.go", Line: 3})
		},
		"nothing explains it": func(v *event.Validation) { v.TestsRun, v.TestsPassed, v.TestsFailed, v.Failures = 2, 2, 0, nil },
	} {
		part := func(f *event.ToolCallFinished) { whole(f); partial(f.Validation) }
		h := began(name)
		h.validates(whole)
		h.validates(part)
		if d := summary(h).Delta; d.ReasonCode != codeCurrentPartial || d.Total != nil {
			t.Errorf("%s: %+v", name, d)
		}
		h.validates(whole)
		if d := summary(h).Delta; d.ReasonCode != codePreviousPartial || d.Total != nil {
			t.Errorf("%s, then whole: %+v", name, d)
		}
	}
}

// Where more tests failed than are named, the lists say how many there are.
//
// Covers: VAL-24, VAL-26
func TestFailuresWithoutANameAreCounted(t *testing.T) {
	h := began("many")
	names := make([]string, MaxFailureCases)
	for i := range names {
		names[i] = fmt.Sprintf("p.Test%02d", i)
	}
	h.validates(func(f *event.ToolCallFinished) {
		failing(names...)(f)
		f.Validation.TestsFailed = 100
	})
	s := summary(h)
	for of, got := range map[string][3]int{
		"the run": {s.Events.Items[0].Failed.Total, s.Events.Items[0].Failed.Returned, one(s.Events.Items[0].Failed.Truncated)},
		"summary": {s.Unresolved.Total, s.Unresolved.Returned, one(s.Unresolved.Truncated)},
		"feedback": func() [3]int {
			l := NewFeedback(h.view(), all(), 9).Attempt.Failures
			return [3]int{l.Total, l.Returned, one(l.Truncated)}
		}(),
	} {
		if got != [3]int{100, MaxFailureCases, 1} {
			t.Errorf("%s: %v", of, got)
		}
	}
	if why := NewFeedback(h.view(), all(), 9).Suggested[0].Why; !strings.Contains(why, "p.Test00 and 99 more") {
		t.Error(why)
	}
	if l := newBrief(h.view(), gather(h.view()), all()).Validation.Failures; l.Total != 100 || l.Returned > MaxBriefFailures || !l.Truncated {
		t.Errorf("brief: %d of %d", l.Returned, l.Total)
	}
}
