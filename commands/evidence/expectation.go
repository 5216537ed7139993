package evidence

import (
	"slices"

	"webcodex/eventlog/event"
)

// Expectations that a caller may declare before a run; absent is success (EXE-29).
const (
	Success = "success"
	Failure = "failure"
	Observe = "observe"
)

// Expectations is the closed set.
var Expectations = []string{Success, Failure, Observe}

// End is what is known of a run when it is held against its expectation.
type End struct {
	State       event.ExecutionState
	Completed   bool // its exit status was seen
	ExitCode    *int
	ErrorKind   string // of a refusal, a denial, a lost link; empty: none
	FailureKind string
	Promoted    bool // it goes on as a Job: no end yet (EXE-35)
}

// Ended is the End that a finish event tells of.
func Ended(e event.ToolCallFinished) End {
	return End{State: e.Effect.State, Completed: e.Effect.CommandCompleted, ExitCode: e.ExitCode, ErrorKind: e.ErrorKind,
		FailureKind: e.FailureKind, Promoted: e.Promoted}
}

// EndedJob is that of a Job's terminal marker.
func EndedJob(e event.ExecutionFinished) End {
	return End{State: e.Effect.State, Completed: e.Effect.CommandCompleted, ExitCode: e.ExitCode, FailureKind: e.FailureKind}
}

// business tells a completed run with a known result from everything else (EXE-34).
func (e End) business() (known, succeeded bool) {
	if e.ErrorKind != "" || e.State != event.Completed || !e.Completed || e.ExitCode == nil {
		return false, false
	}
	switch e.FailureKind {
	case "":
		return true, true
	case FailExit, FailTests, FailCompile:
		return true, false
	default: // a signal, a gap in the evidence, output nobody could read
		return false, false
	}
}

// Classify holds an end against what was declared in in (EXE-28…30, EVT-19). It classifies,
// and changes nothing: exit status, state and result stay what they are (EXE-33).
func Classify(in event.Input, e End) string {
	if e.Promoted {
		return event.ExpectationNone
	}
	known, succeeded := e.business()
	accepted := known && !succeeded && slices.Contains(in.AcceptedExitCodes, *e.ExitCode)
	switch in.Expectation {
	case Failure:
		switch {
		case known && succeeded:
			return event.UnexpectedSuccess
		case known && (accepted || len(in.AcceptedExitCodes) == 0):
			return event.ExpectationMatched
		}
		return event.ExpectationMismatch
	case Observe:
		switch {
		case known && succeeded:
			return event.ExpectationNone
		case known:
			return event.ExpectationMatched
		}
		return event.ExpectationMismatch
	default: // success, declared or not, and whatever is no expectation
		switch {
		case known && succeeded:
			return event.ExpectationNone
		case accepted:
			return event.ExpectationMatched
		}
		return event.UnexpectedFailure
	}
}

// Failure kinds of runs that ended by themselves.
const (
	FailExit    = "exit_status"
	FailTests   = "test_failure"
	FailCompile = "compile_error"
	FailProcess = "process_exit" // a validator's, and nothing that it said explains it
)
