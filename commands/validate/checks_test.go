package validate

import (
	"slices"
	"strings"
	"testing"

	"webcodex/commands/evidence"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func exited(code int, t *wire.TestReport) wire.Result {
	return wire.Result{State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &code, Tests: t}}
}

// The exit status decides of every validator, what was parsed explains it, and a count that was
// asked for is never taken on trust.
//
// Covers: VAL-01, VAL-15, VAL-17
func TestWhatTheOtherValidatorsProve(t *testing.T) {
	made := func(p plan, err error) plan {
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	check := made(cargoCheckPlan(CargoCheckIn{}, "p"))
	format := made(cargoFmtPlan(CargoFmtIn{Check: true}, "p"))
	vet := made(goVetPlan(GoVetIn{}, "p"))
	npm := made(npmTestPlan(NPMTestIn{}, "p"))
	npmMin := made(npmTestPlan(NPMTestIn{RequireTests: true}, "p"))
	py := made(pytestPlan(PytestIn{}, "p"))
	declared := plan{tool: "run_validation", parser: evidence.ParserTAP, scope: evidence.Scope{Tool: "run_validation"}}
	compile := &wire.TestReport{Version: 1, Detected: true, Errors: 2, Diagnostics: []wire.Diagnostic{{Kind: evidence.FailCompile, File: "a.rs", Line: 1}}}
	vetted := &wire.TestReport{Version: 1, Detected: true, Errors: 1, Diagnostics: []wire.Diagnostic{{Kind: "vet", File: "a.go", Line: 2}}}
	tap := func(run, failed int) *wire.TestReport {
		return &wire.TestReport{Version: 1, Detected: true, Run: run, Passed: run - failed, Failed: failed}
	}
	silent := &wire.TestReport{Version: 1}
	yes, no := new(bool), new(bool)
	*yes = true
	for name, tc := range map[string]struct {
		p      plan
		r      wire.Result
		passed *bool
		kind   string
		zero   bool
		parser string
	}{
		"check passes":             {check, exited(0, silent), yes, "", false, evidence.ParserCargoCheck},
		"check fails":              {check, exited(101, compile), no, evidence.FailCompile, false, evidence.ParserCargoCheck},
		"check, forged":            {check, exited(0, compile), yes, "", false, evidence.ParserCargoCheck},
		"format differs":           {format, exited(1, silent), no, evidence.FailExit, false, evidence.ParserRustfmt},
		"vet finds":                {vet, exited(1, vetted), no, evidence.FailExit, false, evidence.ParserGoVet},
		"vet passes":               {vet, exited(0, silent), yes, "", false, evidence.ParserGoVet},
		"npm without TAP":          {npm, exited(0, silent), yes, "", false, evidence.ParserNone},
		"npm without TAP fails":    {npm, exited(1, silent), no, evidence.FailExit, false, evidence.ParserNone},
		"npm, tests asked for":     {npmMin, exited(0, silent), nil, event.GapTooFewTests, true, evidence.ParserTAP},
		"npm with TAP":             {npm, exited(0, tap(3, 0)), yes, "", false, evidence.ParserTAP},
		"npm, a lying exit":        {npm, exited(0, tap(3, 1)), no, evidence.FailTests, false, evidence.ParserTAP},
		"npm, tests pass, exit 1":  {npm, exited(1, tap(3, 0)), no, evidence.FailProcess, false, evidence.ParserTAP},
		"pytest":                   {py, exited(1, tap(4, 2)), no, evidence.FailTests, false, evidence.ParserJUnit},
		"pytest, nothing there":    {py, exited(5, tap(0, 0)), nil, event.GapNoModule, true, evidence.ParserJUnit},
		"pytest, no report":        {py, exited(2, silent), no, evidence.FailProcess, true, evidence.ParserJUnit},
		"declared, nothing parsed": {declared, exited(0, silent), yes, "", true, evidence.ParserTAP},
	} {
		f := tc.p.facts(tc.r)
		v := f.Validation
		if (v.Passed == nil) != (tc.passed == nil) || v.Passed != nil && *v.Passed != *tc.passed || f.FailureKind != orExit(tc.kind, tc.r) || v.ZeroTests != tc.zero || v.Parser != tc.parser {
			t.Errorf("%s: %+v %s", name, v, f.FailureKind)
		}
	}
	cancelled := exited(0, nil)
	cancelled.Process.ExitCode, cancelled.Process.Completed, cancelled.Process.Cancelled = nil, false, true
	for _, p := range []plan{check, format, vet, npm, py, declared} {
		if v := p.facts(cancelled).Validation; v.Passed != nil {
			t.Errorf("%s: a cancelled run proves %v", p.tool, *v.Passed)
		}
	}
}

// orExit is the failure kind that an exit status has by itself, where the validator has none.
func orExit(kind string, r wire.Result) string {
	if kind == "" && *r.Process.ExitCode != 0 {
		return "exit_status"
	}
	return kind
}

// What a call asks for becomes arguments that no text can turn into another option, and an identity
// that the same request has again.
//
// Covers: VAL-14, VAL-22
func TestPlansOfTheOtherValidators(t *testing.T) {
	off := false
	check, _ := cargoCheckPlan(CargoCheckIn{Package: "x", Features: []string{"b", "a"}, AllTargets: &off}, "p")
	if want := []string{"check", "--message-format=json", "--color=never", "--package=x", "--features=a,b"}; !slices.Equal(check.process.Args, want) {
		t.Errorf("%q", check.process.Args)
	}
	if whole, _ := cargoCheckPlan(CargoCheckIn{}, "p"); !slices.Contains(whole.process.Args, "--all-targets") || whole.timeoutSecs != DefaultCheckSecs {
		t.Errorf("%+v", whole)
	}
	py, err := pytestPlan(PytestIn{Paths: []string{"tests/test_a.py::TestX::test_y[../z]"}, Keyword: "-x or y"}, "p")
	if err != nil || !slices.Equal(py.process.Args, []string{"-q", "--color=no", "-o", "junit_family=xunit2", "-k=-x or y", "tests/test_a.py::TestX::test_y[../z]"}) {
		t.Errorf("%v %q", err, py.process.Args)
	}
	for _, whole := range []string{".", "./"} {
		if p, err := pytestPlan(PytestIn{Paths: []string{whole}}, "p"); err != nil || !slices.Contains(p.process.Args, whole) {
			t.Errorf("%q: %v", whole, err)
		}
	}
	for _, bad := range []string{"/etc", "../x", "-p", "a/../../b", ".git/x", "", "::x", "a/..", "..", "a\x00"} {
		if _, err := pytestPlan(PytestIn{Paths: []string{bad}}, "p"); fault.As(err) == nil || fault.As(err).Field != "paths" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := cargoFmtPlan(CargoFmtIn{TimeoutSecs: MaxFormatSecs + 1}, "p"); fault.KindOf(err) != fault.InvalidArguments {
		t.Error(err)
	}
	if p, err := cargoFmtPlan(CargoFmtIn{Check: true, TimeoutSecs: MaxFormatSecs + 1}, "p"); err != nil || p.timeoutSecs != MaxFormatSecs+1 {
		t.Errorf("%+v %v", p, err)
	}
	targets := map[string]string{}
	for name, p := range map[string]plan{
		"check": check, "check of all": planOf(cargoCheckPlan(CargoCheckIn{}, "p")), "fmt": planOf(cargoFmtPlan(CargoFmtIn{}, "p")), "fmt check": planOf(cargoFmtPlan(CargoFmtIn{Check: true}, "p")),
		"vet": planOf(goVetPlan(GoVetIn{}, "p")), "npm": planOf(npmTestPlan(NPMTestIn{}, "p")), "npm lint": planOf(npmTestPlan(NPMTestIn{Script: "lint"}, "p")),
		"pytest": planOf(pytestPlan(PytestIn{}, "p")), "pytest one": py,
	} {
		id := p.covers().TargetID
		if was := targets[id]; was != "" {
			t.Errorf("%s and %s are one target", name, was)
		}
		targets[id] = name
	}
	with, without := planOf(npmTestPlan(NPMTestIn{MinTests: 5, Script: "test"}, "p")), planOf(npmTestPlan(NPMTestIn{}, "p"))
	if with.covers().TargetID != without.covers().TargetID || with.covers().Scope != without.covers().Scope {
		t.Error("a demand is part of the identity")
	}
	for _, in := range []RunIn{{Executable: "x", Parser: "none", MinTests: 1}, {Executable: "x", Parser: "tap", Report: "r.xml"}, {Executable: "x", Parser: "junit", Report: "../r.xml"},
		{Executable: "x", Parser: "junit", Report: "/r.xml"}, {Executable: "x\x00", Parser: "none"}, {Executable: "x", Parser: "none", Args: []string{strings.Repeat("x", 8000), strings.Repeat("x", 8001)}}} {
		if err := in.check(); err == nil {
			t.Errorf("%.80v was not refused", in)
		}
	}
	if err := (RunIn{Executable: "x", Parser: "junit", Report: "build/r.xml"}).check(); err != nil {
		t.Error(err)
	}
}

func planOf(p plan, err error) plan {
	if err != nil {
		panic(err)
	}
	return p
}
