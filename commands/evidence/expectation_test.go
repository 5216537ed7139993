package evidence

import (
	"testing"

	"webcodex/eventlog/event"
)

func exited(code int, kind string) End {
	return End{State: event.Completed, Completed: true, ExitCode: &code, FailureKind: kind}
}

// Every class of end against every expectation (EVT-19). What is not a completed run with a known
// result meets nothing.
//
// Covers: EXE-28, EXE-30, EXE-34, EXE-35
func TestExpectations(t *testing.T) {
	const (
		none       = event.ExpectationNone
		matched    = event.ExpectationMatched
		unexpected = event.UnexpectedFailure
		mismatch   = event.ExpectationMismatch
		lucky      = event.UnexpectedSuccess
	)
	signalled := exited(137, "signal")
	signalled.ExitCode = nil
	for name, c := range map[string]struct {
		end                       End
		success, failure, observe string
	}{
		"exit 0":                 {exited(0, ""), none, lucky, none},
		"exit 1":                 {exited(1, FailExit), unexpected, matched, matched},
		"a failing test":         {exited(1, FailTests), unexpected, matched, matched},
		"does not build":         {exited(1, FailCompile), unexpected, matched, matched},
		"became a Job":           {End{State: event.Started, Promoted: true}, none, none, none},
		"refused before start":   {End{State: event.NotStarted, ErrorKind: "command_spawn_failed"}, unexpected, mismatch, mismatch},
		"denied by a guard":      {End{State: event.NotStarted, ErrorKind: "session_guard_denied"}, unexpected, mismatch, mismatch},
		"bad arguments":          {End{ErrorKind: "invalid_arguments"}, unexpected, mismatch, mismatch},
		"the link broke":         {End{State: event.NotStarted, ErrorKind: "runner_unavailable"}, unexpected, mismatch, mismatch},
		"nothing readable":       {exited(1, FailProcess), unexpected, mismatch, mismatch},
		"no module":              {exited(1, event.GapNoModule), unexpected, mismatch, mismatch},
		"too few tests":          {exited(0, event.GapTooFewTests), unexpected, mismatch, mismatch},
		"no exit status":         {End{State: event.Completed, Completed: true}, unexpected, mismatch, mismatch},
		"ended by a signal":      {signalled, unexpected, mismatch, mismatch},
		"cancelled":              {End{State: event.Cancelled, FailureKind: "cancelled"}, unexpected, mismatch, mismatch},
		"timed out":              {End{State: event.TimedOut, FailureKind: "timed_out"}, unexpected, mismatch, mismatch},
		"lost":                   {End{State: event.OutcomeUnknown, FailureKind: "lost"}, unexpected, mismatch, mismatch},
		"lost, with a status":    {End{State: event.OutcomeUnknown, Completed: true, ExitCode: new(int)}, unexpected, mismatch, mismatch},
		"ended, and an error":    {End{State: event.Completed, Completed: true, ExitCode: new(int), ErrorKind: "internal"}, unexpected, mismatch, mismatch},
		"the end was not told":   {End{}, unexpected, mismatch, mismatch},
		"a failure kind of 2049": {exited(1, "some_new_kind"), unexpected, mismatch, mismatch},
	} {
		for declared, want := range map[string]string{"": c.success, Success: c.success, Failure: c.failure, Observe: c.observe} {
			if got := Classify(event.Input{Expectation: declared}, c.end); got != want {
				t.Errorf("%s, %q declared: %s, want %s", name, declared, got, want)
			}
		}
	}
}

// Exit codes that were declared to be results are met by exactly these; with failure declared
// they say which failure.
//
// Covers: EXE-32
func TestAcceptedExitCodes(t *testing.T) {
	for _, c := range []struct {
		declared string
		codes    []int
		exit     int
		want     string
	}{
		{"", []int{1}, 0, event.ExpectationNone},
		{"", []int{1}, 1, event.ExpectationMatched},
		{"", []int{1}, 2, event.UnexpectedFailure},
		{Success, []int{0, 255}, 255, event.ExpectationMatched},
		{Failure, []int{1}, 1, event.ExpectationMatched},
		{Failure, []int{1}, 2, event.ExpectationMismatch},
		{Failure, []int{1}, 0, event.UnexpectedSuccess},
		{Observe, []int{1}, 2, event.ExpectationMatched},
	} {
		end := exited(c.exit, "")
		if c.exit != 0 {
			end.FailureKind = FailExit
		}
		if got := Classify(event.Input{Expectation: c.declared, AcceptedExitCodes: c.codes}, end); got != c.want {
			t.Errorf("%q %v, exit %d: %s, want %s", c.declared, c.codes, c.exit, got, c.want)
		}
	}
	timeout := End{State: event.TimedOut, FailureKind: "timed_out", ExitCode: new(int)}
	if got := Classify(event.Input{AcceptedExitCodes: []int{0, 1}}, timeout); got != event.UnexpectedFailure {
		t.Errorf("a timeout: %s", got)
	}
}
