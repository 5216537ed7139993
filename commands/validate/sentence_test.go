package validate

import (
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// A failure is told in one sentence whose numbers are true, also where only the first errors are
// known.
//
// Covers: VAL-15, VAL-24
func TestSentences(t *testing.T) {
	for want, c := range map[string]struct {
		kind        string
		diagnostics int
	}{
		"1 of 3 tests failed":                                {evidence.FailTests, 0},
		"the code does not build: 1 error":                   {evidence.FailCompile, 1},
		"the code does not build: 19 errors":                 {evidence.FailCompile, wire.MaxDiagnostics - 1},
		"the code does not build: 20 errors or more":         {evidence.FailCompile, wire.MaxDiagnostics},
		"fewer tests ran than were asked for: 3 of 5":        {event.GapTooFewTests, 0},
		"there is no module to test in this directory":       {event.GapNoModule, 0},
		"go ended with exit status 2 without a failing test": {evidence.FailProcess, 0},
	} {
		p := plan{minTests: 5, process: wire.ProcessIn{Executable: "go"}}
		f := call.Facts{FailureKind: c.kind, ExitCode: new(2), Validation: &event.Validation{TestsRun: 3, TestsFailed: 1}}
		if got := p.sentence(f, c.diagnostics, ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
