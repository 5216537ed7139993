package session

import (
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
