package session

import (
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// A closeout does not say that nothing ran where what ran was expected to fail.
//
// Covers: VAL-02, CON-03
func TestANeutralRunIsNoMissingRun(t *testing.T) {
	detail := func(h *history) string {
		for _, a := range NewFinish(h.view(), all(), FinishOptions{}).Advisories {
			if a.Code == "validation_not_run" {
				return a.Detail
			}
		}
		return ""
	}
	h := began("neutral")
	h.edit("a.go")
	if got := detail(h); got != "no validation ran" {
		t.Errorf("%q", got)
	}
	h.validates(func(f *event.ToolCallFinished) { failing()(f); f.Expectation = event.ExpectationMatched })
	if got := detail(h); !strings.Contains(got, "proves no pass") {
		t.Errorf("%q", got)
	}
}
