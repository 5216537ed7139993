package validate

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/evidence"
	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Output is what a validation tool tells: the run, and what it proved (shapes.md 4).
type Output struct {
	run.Output
	// Passed is nil where the run proved nothing: it did not end, could not begin, or is a Job.
	Passed      *bool `json:"passed"`
	Run         int   `json:"tests_run_count"`
	TestsPassed int   `json:"tests_passed"`
	TestsFailed int   `json:"tests_failed"`
	Skipped     int   `json:"tests_skipped"`
	ZeroTests   bool  `json:"zero_tests_run"`
	// Errors and Warnings are those of a check, which runs no tests.
	Errors      *int              `json:"errors_count,omitempty"`
	Warnings    *int              `json:"warnings_count,omitempty"`
	Failed      []wire.FailedTest `json:"failed_tests"`
	Diagnostics []wire.Diagnostic `json:"diagnostics"`
	Validation  Identity          `json:"validation"`
}

// Identity says what the run may be compared with.
type Identity struct {
	Target string `json:"target_id"`
	Scope  string `json:"scope_identity"`
	Parser Parser `json:"parser"`
}

// Parser names how the output was read.
type Parser struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
}

// plan is one validating run.
type plan struct {
	tool        string
	process     wire.ProcessIn
	parser      string // empty: the process's
	scope       evidence.Scope
	purpose     string
	timeoutSecs int
	syncWait    *int
	minTests    int
	// unmade tells from what was printed that there is nothing to validate; nothing is how that is said.
	unmade  func(*wire.ProcessOutcome) bool
	nothing string
	// text makes the kept output readable; nil: it is.
	text func(raw string, truncated bool) string
}

func (p plan) execute(ctx context.Context, c *call.Call) (call.Result, error) {
	if c.Session != nil && c.Session.Context.Resource != "" {
		f := fault.New(fault.Unavailable, "this Session runs its commands on a named resource, where %s does not run", p.tool).
			WithReason("unsupported_resource").WithNext("use run_process, or a Session without a resource")
		f.ExecutionState = string(event.NotStarted)
		return call.Result{}, f
	}
	p.timeoutSecs, p.process.Bind = timeoutOf(p.timeoutSecs), true
	grace := call.DefaultGrace
	if p.syncWait != nil {
		grace = max(time.Duration(*p.syncWait)*time.Second, time.Millisecond)
	}
	if err := p.process.CheckCwd(); err != nil {
		return call.Result{}, err
	}
	if strings.IndexByte(strings.Join(p.process.Args, ""), 0) >= 0 {
		return call.Result{}, fault.New(fault.InvalidArguments, "an argument holds a NUL byte").WithReason("nul").WithNext("leave the NUL byte out")
	}
	o, err := c.Effect(ctx, wire.OpProcess, p.process, call.EffectOptions{
		Timeout: time.Duration(p.timeoutSecs) * time.Second, Grace: grace, Facts: p.facts, Validates: p.covers()})
	if err != nil {
		f := fault.As(err)
		if f.Kind == fault.CommandSpawnFailed {
			f.Field = "" // no argument of this tool names the program
		}
		return call.Result{}, f
	}
	res := p.result(c.Execution(), o)
	out := res.Output.(Output)
	out.Expect(c.Evidence(), res.Facts)
	if out.Promoted {
		out.SoFar(ctx, c)
		out.Stdout = p.shown(out.Stdout, out.StdoutTruncated)
	}
	res.Output = out
	return res, nil
}

func (p plan) shown(raw string, truncated bool) string {
	if p.text == nil {
		return raw
	}
	return p.text(raw, truncated)
}

// projectOf names the Project of the call for the identities; without one nothing is run.
func projectOf(c *call.Call) string {
	if c.Project == nil {
		return ""
	}
	return c.Project.Project
}

func timeoutOf(secs int) int {
	if secs == 0 {
		return DefaultTimeoutSecs
	}
	return secs
}

// result builds the answer of a run that ended or became a Job.
func (p plan) result(id event.ExecutionID, o call.Outcome) call.Result {
	base, res := run.FromOutcome(id, o, p.timeoutSecs)
	out := Output{Output: base, Failed: []wire.FailedTest{}, Diagnostics: []wire.Diagnostic{}, Validation: p.names()}
	if o.Result == nil {
		res.Output = out
		return res
	}
	facts := p.facts(*o.Result)
	facts.Execution = id
	v := facts.Validation
	out.Passed, out.Run, out.TestsPassed, out.TestsFailed = v.Passed, v.TestsRun, v.TestsPassed, v.TestsFailed
	out.Skipped, out.ZeroTests, out.FailureKind = v.TestsSkipped, v.ZeroTests, facts.FailureKind
	out.Validation.Parser = Parser{Kind: v.Parser, Version: v.ParserVer}
	if x := o.Result.Process; x != nil {
		if x.Tests != nil {
			out.Failed, out.Diagnostics = append(out.Failed, x.Tests.FailedTests...), append(out.Diagnostics, x.Tests.Diagnostics...)
		}
		out.Stdout = p.shown(x.Stdout.Text, x.Stdout.Truncated)
		if t := x.Tests; t != nil && v.Parser != evidence.ParserNone && !evidence.CountsTests(v.Parser) {
			out.Errors, out.Warnings = &t.Errors, &t.Warnings
		}
	}
	if facts.FailureKind != "" {
		res.Failed, res.Error = true, p.sentence(facts, len(out.Diagnostics), res.Error)
	}
	res.Facts, res.Output = facts, out
	return res
}

func (p plan) covers() *event.ValidationScope {
	return p.scope.Of(p.purpose, cmp.Or(p.parser, p.process.Parser))
}

func (p plan) names() Identity {
	c := p.covers()
	return Identity{Target: c.TargetID, Scope: c.Scope, Parser: Parser{Kind: c.Parser, Version: c.ParserVer}}
}

// facts judges a proven end; the same for an answer and for the late end of a Job.
func (p plan) facts(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	nothing := r.Process != nil && p.unmade != nil && p.unmade(r.Process)
	v, kind := evidence.Validate(*p.covers(), p.minTests, r.Process, nothing)
	if f.Validation = v; kind != "" {
		f.FailureKind = kind
	}
	return f
}

// errorsOf counts build errors, of which a Runner tells the first ones only.
func errorsOf(n int) string {
	switch {
	case n == 1:
		return "1 error"
	case n >= wire.MaxDiagnostics:
		return fmt.Sprintf("%d errors or more", n)
	}
	return fmt.Sprintf("%d errors", n)
}

// sentence says in one line how it failed; ended is what the run itself says.
func (p plan) sentence(f call.Facts, diagnostics int, ended string) string {
	v := f.Validation
	switch f.FailureKind {
	case evidence.FailTests:
		return fmt.Sprintf("%d of %d tests failed", v.TestsFailed, v.TestsRun)
	case evidence.FailCompile:
		return "the code does not build: " + errorsOf(diagnostics)
	case event.GapNoModule:
		if p.nothing != "" {
			return p.nothing
		}
		return "there is no module to test in this directory"
	case event.GapTooFewTests:
		return fmt.Sprintf("fewer tests ran than were asked for: %d of %d", v.TestsRun, p.minTests)
	case evidence.FailExit:
		if v.Parser != evidence.ParserNone && diagnostics > 0 {
			return p.tool + " found " + errorsOf(diagnostics)
		}
	case evidence.FailProcess:
		return fmt.Sprintf("%s ended with exit status %d without a failing test", path.Base(p.process.Executable), *f.ExitCode)
	}
	return ended
}
