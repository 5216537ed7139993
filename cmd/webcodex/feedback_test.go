package main

import (
	"strings"
	"testing"

	"webcodex/projections/session"
)

// A feedback for people says what it is about, also where there was no instruction or it is gone.
//
// Covers: CON-09, CON-10
func TestFeedbackSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	asked := &session.Excerpt{Text: "fix it"}
	for head, a := range map[string]session.Attempt{
		"The attempt since the newest instruction":   {Boundary: session.Boundary{Source: "task_instruction", Complete: true}, Instruction: asked},
		"All there is since the Session began":       {Boundary: session.Boundary{Source: "session_start", Complete: true}},
		"The newest events: the instruction that th": {Boundary: session.Boundary{Source: "unavailable", ReasonCode: "attempt_boundary_evicted"}},
	} {
		var out strings.Builder
		a.Validation.Gaps = 2
		if err := printFeedback(&out, session.Feedback{Status: "available", Attempt: &a}); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.HasPrefix(got, head) || !strings.Contains(got, "2 runs without the evidence") || strings.Contains(got, "fix it") != (a.Instruction != nil) {
			t.Errorf("%s", got)
		}
	}
}
