package evidence

import (
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/redact"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Validate says what a proven end proves of what the run covers, and the failure kind where it
// has one of its own. The exit status decides whether a run passed; what was parsed only
// explains it (VAL-01). nothing tells that there was nothing to validate there (no module).
// The same for an answer, for the late end of a Job, and for an end found after a restart.
func Validate(s event.ValidationScope, minTests int, x *wire.ProcessOutcome, nothing bool) (v *event.Validation, kind string) {
	v = &event.Validation{Kind: s.Kind, TargetID: s.TargetID, Scope: s.Scope, Parser: s.Parser, ParserVer: s.ParserVer}
	if x == nil {
		return v, ""
	}
	v.Bound = x.Bound
	if t := x.Tests; t != nil {
		v.TestsRun, v.TestsPassed, v.TestsFailed, v.TestsSkipped = t.Run, t.Passed, t.Failed, t.Skipped
		v.ParserVer = t.Version
	}
	if x.TimedOut || x.Cancelled || x.Signal != "" || !x.Completed || x.ExitCode == nil {
		return v, ""
	}
	passed := *x.ExitCode == 0 && v.TestsFailed == 0
	if s.Kind == KindNPM && minTests == 0 && (x.Tests == nil || !x.Tests.Detected) {
		v.Parser = ParserNone // the package's own script decides what is printed, and it told no tests
	}
	if !CountsTests(v.Parser) {
		return checked(v, passed, x.Tests, nothing)
	}
	v.ZeroTests = v.TestsRun == 0
	switch {
	case passed && v.TestsRun < minTests:
		return v, event.GapTooFewTests // a gap in the evidence, not a failure of the code (VAL-15)
	case passed:
		v.Passed = &passed
		return v, ""
	case v.TestsFailed == 0 && nothing:
		return v, event.GapNoModule
	}
	v.Passed, v.Failures = &passed, failures(x.Tests)
	return v, failureOf(v, x.Tests)
}

// checked is what a run without tests proves.
func checked(v *event.Validation, passed bool, t *wire.TestReport, nothing bool) (*event.Validation, string) {
	switch {
	case passed:
		v.Passed = &passed
		return v, ""
	case nothing:
		return v, event.GapNoModule
	}
	v.Passed, v.Failures = &passed, failures(t)
	if kind := failureOf(v, t); kind != FailProcess {
		return v, kind
	}
	return v, FailExit
}

func failureOf(v *event.Validation, t *wire.TestReport) string {
	if v.TestsFailed > 0 {
		return FailTests
	}
	if t != nil {
		for _, d := range t.Diagnostics {
			if d.Kind == FailCompile {
				return FailCompile
			}
		}
	}
	return FailProcess
}

// failures are the identities of what failed: names and places, never messages (VAL-24).
func failures(t *wire.TestReport) []event.FailedCase {
	if t == nil {
		return nil
	}
	var out []event.FailedCase
	add := func(kind, name, file string, line int) {
		if len(out) < session.MaxFailureCases {
			out = append(out, event.FailedCase{Kind: kind, Name: redact.Text(name, session.MaxFailureName), File: place(file), Line: max(line, 0)})
		}
	}
	for _, f := range t.FailedTests {
		name := f.Name
		if f.Package != "" {
			name = f.Package + "." + name
		}
		add(event.FailureTest, name, f.File, f.Line)
	}
	for _, d := range t.Diagnostics {
		add(event.FailureDiagnostic, d.Kind, d.File, d.Line)
	}
	return out
}

// place is a file as a test program named it, where it is a relative name.
func place(file string) string {
	p, ok := redact.Path(strings.TrimPrefix(file, "./"))
	if !ok {
		return ""
	}
	return redact.Text(p, session.MaxFailureName)
}
