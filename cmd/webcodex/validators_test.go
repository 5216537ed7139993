package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/evidence"
	"webcodex/commands/validate"
	"webcodex/mcp/client"
	view "webcodex/projections/session"
)

// validators are all tools that validate, with a call that is fine but for the Session.
var validators = map[string]args{"go_test": {}, "go_vet": {}, "cargo_test": {}, "cargo_check": {}, "cargo_fmt": {"check": true}, "npm_test": {}, "pytest": {},
	"run_validation": {"executable": "true", "parser": "none"}}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not here", program)
	}
}

// validating gives a way to call tools in a Session of a world.
func validating(w *world) func(tool string, extra args) (validate.Output, client.Result) {
	p := args{"project": w.project, "session_id": w.work(args{}).SessionID}
	return func(tool string, extra args) (validate.Output, client.Result) {
		w.t.Helper()
		return w.tests(tool, with(p, extra))
	}
}

func passes(out validate.Output) string {
	switch {
	case out.Passed == nil:
		return "null"
	case *out.Passed:
		return "true"
	}
	return "false"
}

// A Session on a named resource runs none of them, here or there, and none takes its directory.
//
// Covers: EXE-14
func TestNoValidatorRunsBesideAResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	away := w.work(args{"execution_context": args{"resource": "elsewhere"}})
	for tool, a := range validators {
		r := w.call(tool, with(a, args{"project": w.project, "session_id": away.SessionID}))
		if !r.IsError || r.Kind() != "unavailable" || !strings.Contains(string(r.Output), `"execution_state":"not_started"`) || !strings.Contains(string(r.Output), "unsupported_resource") {
			t.Errorf("%s: %s", tool, r.Output)
		}
	}
	below := w.work(args{"execution_context": args{"default_cwd": "sub"}})
	w.write(filepath.Join(w.repo, "sub", "x.txt"), "x\n")
	out, _ := w.tests("run_validation", args{"project": w.project, "session_id": below.SessionID, "executable": "pwd", "parser": "none"})
	if strings.HasSuffix(strings.TrimSpace(out.Stdout), "/sub") || passes(out) != "true" {
		t.Errorf("%+v", out)
	}
}

// A command of the caller's is judged by its exit status; the parser explains it, and is not fooled
// by what imitates it.
//
// Covers: VAL-01, VAL-15, VAL-17, VAL-23
func TestRunValidationEndToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	run := validating(w)
	sh := func(parser, script string, extra args) (validate.Output, client.Result) {
		t.Helper()
		return run("run_validation", with(args{"executable": "sh", "args": []string{"-c", script}, "parser": parser}, extra))
	}
	out, r := sh("tap", `printf 'TAP version 13\nok 1 - a\nnot ok 2 - COMMANDMARK\n1..2\nexit status 0\n'; exit 1`, nil)
	if passes(out) != "false" || out.FailureKind != evidence.FailTests || out.Run != 2 || out.TestsFailed != 1 || out.Failed[0].Name != "COMMANDMARK" || r.IsError {
		t.Errorf("%+v", out)
	}
	if out, _ = sh("tap", `printf '1..1\nnot ok 1 x\n'`, nil); passes(out) != "false" || out.FailureKind != evidence.FailTests {
		t.Errorf("a lying exit status: %+v", out)
	}
	if out, _ = sh("tap", `printf '1..1\nok 1 x\n'; exit 3`, nil); passes(out) != "false" || out.FailureKind != evidence.FailProcess {
		t.Errorf("a failing exit status: %+v", out)
	}
	if out, _ = sh("none", `printf 'exit status 0\nPASS\n\033[2J\033[1;1Hok\n'; exit 1`, nil); passes(out) != "false" || out.Validation.Parser.Kind != "none" {
		t.Errorf("forged: %+v", out)
	}
	flood := `i=0; while [ $i -lt 20000 ]; do printf '\r\033[K%0100d' $i; i=$((i+1)); done; printf '\nTAP version 13\nok 1 - a\n1..1\n'`
	if out, _ = sh("tap", flood, nil); passes(out) != "true" || out.Run != 1 || out.StdoutBytes < 2_000_000 || len(out.Stdout) > 60_000 {
		t.Errorf("progress bars: %s run %d, %d bytes, %d kept", passes(out), out.Run, out.StdoutBytes, len(out.Stdout))
	}
	if out, _ = sh("tap", `printf '1..2\nok 1\nok 2\n'`, args{"min_tests": 3}); passes(out) != "null" || out.FailureKind != "insufficient_tests" {
		t.Errorf("%+v", out)
	}
	report := `<testsuite><testcase name="a"/><testcase name="b"><failure message="no"/></testcase></testsuite>`
	junit := args{"report": "out/r.xml"}
	if out, _ = sh("junit", "mkdir -p out; echo '"+report+"' > out/r.xml; exit 1", junit); out.Run != 2 || out.TestsFailed != 1 || passes(out) != "false" {
		t.Errorf("a report: %+v", out)
	}
	if out, _ = sh("junit", "echo '"+report+"'", junit); out.Run != 0 || !out.ZeroTests || passes(out) != "true" {
		t.Errorf("a report of another run: %+v", out)
	}
	if out, _ = sh("junit", "ln -sf /etc/hostname out/r.xml", junit); out.Run != 0 {
		t.Errorf("a report outside: %+v", out)
	}
	if out, _ = sh("junit", "echo '"+report+"'; exit 1", nil); out.Run != 2 || out.TestsFailed != 1 {
		t.Errorf("a report as output: %+v", out)
	}
	w.refused("run_validation", args{"project": w.project, "executable": "x", "parser": "xunit"}, "invalid_arguments", "parser")
	w.refused("run_validation", args{"project": w.project, "executable": "no-such-program-anywhere", "parser": "none"}, "command_spawn_failed", "")
}

// A validation that outlives its answer is judged when it ends, and a later pass of the same
// command resolves its failure.
//
// Covers: VAL-03, VAL-12
func TestAValidationThatBecomesAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	a := with(p, args{"executable": "sh", "args": []string{"-c", `sleep 1; printf '1..1\n%s 1 - slow\n' "$(cat verdict)"; grep -q ^ok verdict`}, "parser": "tap", "sync_wait_secs": 0})
	summary := func() view.ValidationSummary {
		return must[view.ValidationSummary](w, "read_validation_summary", p)
	}
	for _, step := range []struct{ verdict, want string }{{"not ok", "failed"}, {"ok", "passed"}} {
		w.write(filepath.Join(w.repo, "verdict"), step.verdict+"\n")
		out, r := w.tests("run_validation", a)
		if !out.Promoted || passes(out) != "null" || r.IsError {
			t.Fatalf("%+v", out)
		}
		deadline := time.Now().Add(20 * time.Second)
		for string(summary().Status) != step.want {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", step.want, summary())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// go vet, npm and pytest as they are installed here, and what their tests print.
func TestInstalledValidatorsEndToEnd(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("GOPROXY", "off")
	w := newWorld(t, "process")
	run := validating(w)
	t.Run("go_vet", func(t *testing.T) {
		out, _ := run("go_vet", nil)
		if passes(out) != "true" || out.ZeroTests || *out.Errors != 0 {
			t.Errorf("%+v", out)
		}
		w.write(filepath.Join(w.repo, "vet.go"), "package sample\n\nimport \"fmt\"\n\nfunc V() { fmt.Printf(\"%d\\n\", \"x\") }\n")
		out, r := run("go_vet", nil)
		if passes(out) != "false" || out.FailureKind != "exit_status" || *out.Errors != 1 || out.Diagnostics[0].File != "vet.go" || out.Diagnostics[0].Line != 5 ||
			!strings.Contains(r.Text, "go_vet found 1 error") {
			t.Errorf("%+v %s", out, r.Text)
		}
	})
	t.Run("npm_test", func(t *testing.T) {
		needs(t, "npm")
		if out, _ := run("npm_test", args{"cwd": "sub2"}); out.State != "" {
			t.Errorf("%+v", out)
		}
		w.write(filepath.Join(w.repo, "js", "package.json"), `{"name":"x","version":"1.0.0","scripts":{"test":"node --test --test-reporter=tap","plain":"node -e 0","bad":"node -e 'process.exit(4)'"}}`)
		w.write(filepath.Join(w.repo, "js", "a.test.js"), "const {test}=require('node:test');test('fine',()=>{});test('broken',()=>{throw new Error('boom')});\n")
		out, _ := run("npm_test", args{"cwd": "js"})
		if passes(out) != "false" || out.Run != 2 || out.TestsFailed != 1 || out.Failed[0].Name != "broken" || out.Failed[0].Message != "boom" || out.Validation.Parser.Kind != "tap" {
			t.Errorf("%+v", out)
		}
		if out, _ = run("npm_test", args{"cwd": "js", "script": "plain"}); passes(out) != "true" || out.Validation.Parser.Kind != "none" || out.ZeroTests {
			t.Errorf("%+v", out)
		}
		if out, _ = run("npm_test", args{"cwd": "js", "script": "bad"}); passes(out) != "false" || out.FailureKind != "exit_status" {
			t.Errorf("%+v", out)
		}
		if out, _ = run("npm_test", args{"cwd": "js", "script": "none-such"}); passes(out) != "null" || out.FailureKind != "not_a_module" {
			t.Errorf("%+v", out)
		}
		w.refused("npm_test", args{"project": w.project, "script": "--version"}, "invalid_arguments", "script")
	})
	t.Run("pytest", func(t *testing.T) {
		needs(t, "pytest")
		w.write(filepath.Join(w.repo, "py", "test_a.py"), "def test_fine(): pass\ndef test_broken():\n    assert 1 == 2, 'boom'\n")
		w.write(filepath.Join(w.repo, "py", "empty", "x.py"), "\n")
		out, _ := run("pytest", args{"cwd": "py"})
		if out.State == "" {
			t.Skip("pytest does not run here")
		}
		if passes(out) != "false" || out.Run != 2 || out.TestsFailed != 1 || out.Failed[0].Name != "test_broken" || out.Failed[0].File != "test_a.py" || out.Failed[0].Line != 3 ||
			strings.Contains(out.Stdout, "generated xml") {
			t.Errorf("%+v", out)
		}
		if out, _ = run("pytest", args{"cwd": "py", "paths": []string{"test_a.py::test_fine"}, "min_tests": 1}); passes(out) != "true" || out.Run != 1 {
			t.Errorf("%+v", out)
		}
		if out, _ = run("pytest", args{"cwd": "py", "keyword": "broken"}); out.Run != 1 || out.TestsFailed != 1 {
			t.Errorf("%+v", out)
		}
		if out, _ = run("pytest", args{"cwd": "py/empty"}); passes(out) != "null" || out.FailureKind != "not_a_module" {
			t.Errorf("%+v", out)
		}
	})
}

// cargo check and cargo fmt on a real package.
func TestCargoChecksEndToEnd(t *testing.T) {
	t.Parallel()
	needs(t, "cargo")
	needs(t, "rustfmt")
	w := newWorld(t, "process")
	run := validating(w)
	w.write(filepath.Join(w.repo, "rs", "Cargo.toml"), "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
	lib := filepath.Join(w.repo, "rs", "src", "lib.rs")
	w.write(lib, "pub fn add(a: i32, b: i32) -> i32 {\n    a+b\n}\n")
	cwd := args{"cwd": "rs"}
	out, r := run("cargo_check", cwd)
	if r.IsError {
		t.Skipf("cargo does not run here: %s", r.Text)
	}
	if passes(out) != "true" || *out.Errors != 0 || out.ZeroTests || out.Validation.Parser.Kind != "cargo-check" {
		t.Errorf("%+v", out)
	}
	if out, _ = run("cargo_fmt", with(cwd, args{"check": true})); passes(out) != "false" || *out.Errors != 1 || out.Diagnostics[0].File != "lib.rs" || out.Diagnostics[0].Line != 1 {
		t.Errorf("%+v", out)
	}
	if out, _ = run("cargo_fmt", cwd); passes(out) != "true" {
		t.Errorf("%+v", out)
	}
	if out, _ = run("cargo_fmt", with(cwd, args{"check": true})); passes(out) != "true" {
		t.Errorf("after formatting: %+v", out)
	}
	w.write(lib, "pub fn add(a: i32, b: i32) -> i32 {\n    a + c\n}\n")
	if out, _ = run("cargo_check", cwd); passes(out) != "false" || out.FailureKind != "compile_error" || *out.Errors == 0 || out.Diagnostics[0].File != "src/lib.rs" || out.Diagnostics[0].Line != 2 {
		t.Errorf("%+v", out)
	}
	if out, _ = run("cargo_check", nil); passes(out) != "null" || out.FailureKind != "not_a_module" {
		t.Errorf("no package: %+v", out)
	}
	w.refused("cargo_fmt", args{"project": w.project, "timeout_secs": 121}, "invalid_arguments", "timeout_secs")
}
