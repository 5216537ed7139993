package validate

import (
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

func ended(code int, tests *wire.TestReport) wire.Result {
	return wire.Result{State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &code, Tests: tests}}
}

func outcome(r wire.Result) call.Outcome { return call.Outcome{Result: &r} }

// What a run proves, by exit status, parsed results and demands.
//
// Covers: VAL-01, VAL-13, VAL-15, VAL-17, VAL-18
func TestWhatARunProves(t *testing.T) {
	yes, no := true, false
	compile := []wire.Diagnostic{{Kind: "compile_error", File: "a.go", Line: 1, Message: "undefined: x"}}
	noModule := []wire.Diagnostic{{Kind: "setup_error", Message: "pattern ./...: directory prefix . does not contain main module"}}
	stderr := ended(1, &wire.TestReport{})
	stderr.Process.Stderr.Text = "go: go.mod file not found in current directory or any parent directory"
	timedOut := ended(1, &wire.TestReport{Run: 3, Passed: 3})
	timedOut.Process.TimedOut, timedOut.Process.ExitCode, timedOut.Process.Completed = true, nil, false
	killed := ended(1, &wire.TestReport{})
	killed.Process.Signal, killed.Process.ExitCode = "killed", nil
	lost := wire.Result{State: wire.JLost}
	for name, c := range map[string]struct {
		r        wire.Result
		minTests int
		passed   *bool
		kind     string
		zero     bool
	}{
		"passed":                   {ended(0, &wire.TestReport{Detected: true, Run: 3, Passed: 3}), 0, &yes, "", false},
		"zero tests":               {ended(0, &wire.TestReport{Detected: true}), 0, &yes, "", true},
		"zero tests, one wanted":   {ended(0, &wire.TestReport{Detected: true}), 1, nil, "insufficient_tests", true},
		"only skipped, one wanted": {ended(0, &wire.TestReport{Detected: true, Skipped: 4}), 1, nil, "insufficient_tests", true},
		"enough":                   {ended(0, &wire.TestReport{Detected: true, Run: 5, Passed: 5}), 5, &yes, "", false},
		"unparsed, one wanted":     {ended(0, nil), 1, nil, "insufficient_tests", true},
		"a failing test":           {ended(1, &wire.TestReport{Run: 3, Passed: 2, Failed: 1}), 0, &no, "test_failure", false},
		"fails with demand unmet":  {ended(1, &wire.TestReport{Run: 1, Failed: 1}), 9, &no, "test_failure", false},
		"lying exit status":        {ended(0, &wire.TestReport{Run: 1, Failed: 1}), 0, &no, "test_failure", false},
		"does not build":           {ended(1, &wire.TestReport{Diagnostics: compile}), 0, &no, "compile_error", true},
		"builds in part":           {ended(1, &wire.TestReport{Run: 4, Passed: 4, Diagnostics: compile}), 0, &no, "compile_error", false},
		"no module":                {ended(1, &wire.TestReport{Diagnostics: noModule}), 0, nil, "not_a_module", true},
		"no module, on stderr":     {stderr, 0, nil, "not_a_module", true},
		"nothing is known":         {ended(2, nil), 0, &no, "process_exit", true},
		"ran out of time":          {timedOut, 0, nil, "timed_out", false},
		"killed":                   {killed, 0, nil, "signal", false},
		"lost":                     {lost, 0, nil, "lost", false},
	} {
		p, err := goPlan(GoTestIn{MinTests: c.minTests}, "agent:x:y")
		if err != nil {
			t.Fatal(err)
		}
		f := p.facts(c.r)
		v := f.Validation
		if (v.Passed == nil) != (c.passed == nil) || v.Passed != nil && *v.Passed != *c.passed || f.FailureKind != c.kind || v.ZeroTests != c.zero {
			t.Errorf("%s: passed %v, kind %q, zero %v", name, v.Passed, f.FailureKind, v.ZeroTests)
		}
		if c.r.State != wire.JTerminal {
			continue
		}
		res := p.result("wc_exec_x", outcome(c.r))
		out := res.Output.(Output)
		if res.Failed != (c.kind != "") || res.Failed == (res.Error == "") || out.FailureKind != c.kind || out.Failed == nil || out.Diagnostics == nil {
			t.Errorf("%s: failed %v %q, %+v", name, res.Failed, res.Error, out)
		}
	}
}

// Covers: VAL-03, VAL-14, VAL-16, VAL-19, VAL-22, VAL-23
func TestIdentities(t *testing.T) {
	base := GoTestIn{Packages: []string{"./a", "./b/..."}, Cwd: "sub", Purpose: "test"}
	plan := func(change func(*GoTestIn), project string) Identity {
		in := base
		change(&in)
		p, err := goPlan(in, project)
		if err != nil {
			t.Fatal(err)
		}
		return p.names()
	}
	same := func(*GoTestIn) {}
	want := plan(same, "p")
	for name, change := range map[string]func(*GoTestIn){
		"order":    func(in *GoTestIn) { in.Packages = []string{"./b/...", "./a", "./a"} },
		"demand":   func(in *GoTestIn) { in.MinTests, in.RequireTests = 7, true },
		"time-out": func(in *GoTestIn) { in.TimeoutSecs = 9 },
	} {
		if got := plan(change, "p"); got != want {
			t.Errorf("%s makes another: %+v", name, got)
		}
	}
	for name, change := range map[string]func(*GoTestIn){
		"packages": func(in *GoTestIn) { in.Packages = []string{"./a"} },
		"cwd":      func(in *GoTestIn) { in.Cwd = "" },
	} {
		if got := plan(change, "p"); got.Target == want.Target || got.Scope == want.Scope {
			t.Errorf("%s makes no other: %+v", name, got)
		}
	}
	if got := plan(func(in *GoTestIn) { in.Purpose = "release" }, "p"); got.Scope == want.Scope || got.Target != want.Target {
		t.Errorf("purpose: %+v", got)
	}
	if got := plan(same, "q"); got.Target == want.Target {
		t.Error("two Projects have one target")
	}
	if len(want.Target) != len("target:")+24 || len(want.Scope) != len("validation_scope:v1:")+64 || strings.Contains(want.Scope+want.Target, "sub") {
		t.Errorf("%+v", want)
	}
	a, _ := cargoPlan(CargoTestIn{Filter: "x", Features: []string{"b", "a"}}, "p")
	b, _ := cargoPlan(CargoTestIn{Filter: "x", Features: []string{"a", "b"}}, "p")
	c, _ := cargoPlan(CargoTestIn{Filter: "y", Features: []string{"a", "b"}}, "p")
	if a.names() != b.names() || a.names() == c.names() || a.names().Target == want.Target {
		t.Errorf("%+v %+v %+v", a.names(), b.names(), c.names())
	}
}

func TestCommandLines(t *testing.T) {
	p, err := goPlan(GoTestIn{Packages: []string{".", "./x/..."}, Cwd: "m"}, "p")
	if got := strings.Join(p.process.Args, " "); err != nil || got != "test -json . ./x/..." || p.process.Executable != "go" || p.process.Cwd != "m" {
		t.Errorf("%s %v", got, err)
	}
	c, err := cargoPlan(CargoTestIn{Package: "-p", Filter: "some::test", Features: []string{"b", "a"}, AllTargets: true, NoRun: true}, "p")
	if got := strings.Join(c.process.Args, " "); err != nil ||
		got != "test --message-format=json --color=never --package=-p --features=a,b --all-targets --no-run -- some::test" {
		t.Errorf("%s %v", got, err)
	}
	for _, bad := range []string{"-run=x", "all", "../up", "./a/../../b", "example.com/x", "/abs", "", "./a\x00", ".git" + "/x"} {
		if p, err := goPlan(GoTestIn{Packages: []string{bad}}, "p"); err == nil {
			t.Errorf("package %q was taken: %v", bad, p.process.Args)
		}
	}
	for _, in := range []CargoTestIn{{Filter: "--nocapture"}, {Features: []string{"a,b"}}, {Features: []string{""}}} {
		if _, err := cargoPlan(in, "p"); err == nil {
			t.Errorf("%+v was taken", in)
		}
	}
}

func TestReadableText(t *testing.T) {
	events := `utput":"half"}` + "\n" + `{"Action":"output","Output":"=== RUN   TestX\n"}` + "\n" + `{"Action":"output","Output":"    x_test.go:3: want 1\n"}` + "\n" +
		`{"Action":"output","Output":"--- PASS: TestY (0.00s)\n"}` + "\n" + `{"Action":"pass"}` + "\n" + `{"Action":"output","Output":"FAIL\n"}` + "\nnot an event\n"
	if got := goText(events, true); got != "    x_test.go:3: want 1\nFAIL\nnot an event\n" {
		t.Errorf("%q", got)
	}
	cargo := `ed"}}` + "\n" + `{"reason":"compiler-message","message":{"rendered":"error: no\n"}}` + "\n" + `{"reason":"build-finished","success":true}` + "\n\nrunning 1 test\n"
	if got := cargoText(cargo, true); got != "error: no\n\nrunning 1 test\n" {
		t.Errorf("%q", got)
	}
}
