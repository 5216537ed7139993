package session

import (
	"slices"
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

// One of a thing is told as one.
//
// Covers: STA-23
func TestACloseoutCountsInWords(t *testing.T) {
	h := began("one of each")
	h.test(false, 1)
	h.job(1, testServer)
	h.post(event.MessageRisk, "it may break")
	var got []string
	for _, b := range NewFinish(h.view(), all(), FinishOptions{}).Blockers {
		got = append(got, b.Detail)
	}
	want := []string{"1 Job of this Session without an end yet", "1 validation failed without a later pass", "1 open risk on the board"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
