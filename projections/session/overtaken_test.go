package session

import (
	"testing"

	"webcodex/eventlog/event"
)

// A Job that passed on the files of before does not resolve what has failed on newer ones in the
// meantime; a run that began after the failure does, also where it writes files itself.
//
// Covers: VAL-01, VAL-12
func TestAnOvertakenPassResolvesNothing(t *testing.T) {
	moved := &event.Binding{Tree: "aa", Moved: true}
	passed := event.Validation{Kind: "go_test", TargetID: targetA, Scope: "validation_scope:v1:s", Parser: "go-json", ParserVer: 1,
		Passed: ptr(true), TestsRun: 5, TestsPassed: 5}
	for name, c := range map[string]struct {
		bound      *event.Binding
		startsLate bool // after the failure
		resolves   bool
	}{
		"began before, files changed":   {moved, false, false},
		"began before, files stayed":    {&event.Binding{Tree: "aa"}, false, true},
		"began before, nobody can tell": {nil, false, true},
		"began after, writes files":     {moved, true, true},
	} {
		h := began(name)
		id, x := h.callID(), execution(1)
		start := func() {
			h.commit(event.ToolCallStarted{Call: id, Tool: "go_test", Execution: x})
			h.commit(event.ToolCallFinished{Call: id, Tool: "go_test", Status: event.StatusSucceeded, Execution: x.ID, Promoted: true, Expectation: event.ExpectationNone})
		}
		if !c.startsLate {
			start()
		}
		h.validates(failing("p.TestA"))
		if c.startsLate {
			start()
		}
		v := passed
		v.Bound = c.bound
		h.commit(event.ExecutionFinished{Execution: x.ID, Call: id, Tool: "go_test", ExitCode: ptr(0), Expectation: event.ExpectationNone, Validation: &v})
		s := summary(h)
		if got := s.Unresolved.Total == 0; got != c.resolves || (s.Resolved.Total == 1) != c.resolves || (s.Status == "failed") == c.resolves {
			t.Errorf("%s: %s, %+v", name, s.Status, s.Unresolved)
		}
	}
}
