package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/commands/git"
	"webcodex/commands/validate"
	"webcodex/mcp/client"
)

// tests calls a validation tool and gives its output and whether it says success.
func (w *world) tests(tool string, a args) (validate.Output, client.Result) {
	w.t.Helper()
	r := w.call(tool, a)
	var out validate.Output
	if r.IsError {
		return out, r
	}
	if err := r.Decode(&out); err != nil {
		w.t.Fatal(err)
	}
	return out, r
}

// go_test on a real module, by HTTP and through the real Runner: pass, fail, no build, no
// tests, no module, no go.
func TestGoTestEndToEnd(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("GOPROXY", "off")
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	run := func(extra args) (validate.Output, client.Result) {
		a := args{"project": w.project, "session_id": id}
		for k, v := range extra {
			a[k] = v
		}
		return w.tests("go_test", a)
	}
	out, _ := run(nil)
	if out.Passed == nil || !*out.Passed || out.Run != 1 || out.TestsPassed != 1 || out.ZeroTests || out.FailureKind != "" || *out.ExitCode != 0 || !strings.Contains(out.Stdout, "ok") {
		t.Errorf("passing: %+v", out)
	}
	w.write(filepath.Join(w.repo, "add.go"), "package sample\n\nfunc Add(a, b int) int { return a - b }\n")
	out, r := run(nil)
	if r.IsError || out.Passed == nil || *out.Passed || out.FailureKind != "test_failure" || out.TestsFailed != 1 || len(out.Failed) != 1 ||
		out.Failed[0].Name != "TestAdd" || out.Failed[0].File != "add_test.go" || out.Failed[0].Line != 7 || out.Failed[0].Message != "add_test.go:7: no" {
		t.Errorf("failing: %+v %s", out, r.Text)
	}
	w.write(filepath.Join(w.repo, "add.go"), "package sample\n\nfunc Add(a, b int) int { return a ! b }\n")
	if out, _ = run(nil); out.FailureKind != "compile_error" || *out.Passed || len(out.Diagnostics) == 0 || out.Diagnostics[0].File != "add.go" || out.Diagnostics[0].Line != 3 {
		t.Errorf("not building: %+v", out)
	}
	w.write(filepath.Join(w.repo, "none", "none.go"), "package none\n")
	if out, _ = run(args{"packages": []string{"./none"}}); out.Passed == nil || !*out.Passed || !out.ZeroTests {
		t.Errorf("no tests: %+v", out)
	}
	if out, _ = run(args{"packages": []string{"./none"}, "require_tests": true}); out.Passed != nil || out.FailureKind != "insufficient_tests" {
		t.Errorf("no tests, one wanted: %+v", out)
	}
	if out, _ = run(args{"packages": []string{"./nowhere"}}); out.Passed == nil || *out.Passed || out.FailureKind != "process_exit" || len(out.Diagnostics) == 0 {
		t.Errorf("no such package: %+v", out)
	}
	if err := os.Remove(filepath.Join(w.otherDir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	for _, packages := range [][]string{{"./..."}, {"."}} {
		if out, _ = w.tests("go_test", args{"project": w.other, "packages": packages}); out.Passed != nil || out.FailureKind != "not_a_module" {
			t.Errorf("no module, %v: %+v", packages, out)
		}
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	_, r = run(nil)
	if f := refusalOf(t, r); !r.IsError || f.Kind != "command_spawn_failed" || f.CommandStarted == nil || *f.CommandStarted {
		t.Errorf("no go: %s", r.Text)
	}
}

// cargo_test on a real package, where cargo is installed.
func TestCargoTestEndToEnd(t *testing.T) {
	// rustup's cargo is there without a toolchain too, and then does nothing.
	if err := exec.Command("cargo", "--version").Run(); err != nil {
		t.Skip("cargo is not installed")
	}
	t.Setenv("CARGO_NET_OFFLINE", "true")
	w := newWorld(t, "process")
	w.write(filepath.Join(w.repo, "rs", "Cargo.toml"), "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n")
	lib := filepath.Join(w.repo, "rs", "src", "lib.rs")
	w.write(lib, "#[cfg(test)]\nmod tests {\n    #[test]\n    fn good() {}\n    #[test]\n    fn bad() { assert_eq!(1, 2); }\n}\n")
	a := args{"project": w.project, "cwd": "rs"}
	out, _ := w.tests("cargo_test", a)
	if out.Promoted {
		t.Skip("this machine is too slow to build within the grace")
	}
	if out.Passed == nil || *out.Passed || out.Run != 2 || out.TestsFailed != 1 || out.FailureKind != "test_failure" ||
		out.Failed[0].Name != "tests::bad" || out.Failed[0].File != "src/lib.rs" || out.Failed[0].Line != 6 {
		t.Errorf("failing: %+v", out)
	}
	if out, _ = w.tests("cargo_test", args{"project": w.project, "cwd": "rs", "filter": "good"}); out.Passed == nil || !*out.Passed || out.Run != 1 {
		t.Errorf("filtered: %+v", out)
	}
	w.write(lib, "pub fn f() -> i32 { \"x\" }\n")
	if out, _ = w.tests("cargo_test", a); out.FailureKind != "compile_error" || out.Diagnostics[0].File != "src/lib.rs" || !strings.Contains(out.Stdout, "mismatched types") {
		t.Errorf("not building: %+v", out)
	}
	if out, _ = w.tests("cargo_test", args{"project": w.other}); out.Passed != nil || out.FailureKind != "not_a_module" {
		t.Errorf("no package: %+v", out)
	}
}

// The git tools over HTTP see an edit and put it back.
func TestGitToolsEndToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	p := args{"project": w.project}
	if out := must[git.StatusOut](w, "get_git_status", p); !out.Clean || out.Branch != "main" {
		t.Errorf("%+v", out)
	}
	w.write(filepath.Join(w.repo, "add.go"), "package sample\n")
	if out := must[git.StatusOut](w, "get_git_status", p); out.Counts.Unstaged != 1 || out.Files[0].Path != "add.go" {
		t.Errorf("%+v", out)
	}
	if out := must[git.HunksOut](w, "read_git_diff_hunks", args{"project": w.project, "paths": []string{"add.go"}}); out.HunkCount != 1 || !strings.Contains(out.Files[0].Hunks[0].Text, "-func Add") {
		t.Errorf("%+v", out)
	}
	if out := must[git.RestoreOut](w, "restore_git_paths", args{"project": w.project, "paths": []string{"add.go", "go.mod"}}); !out.StateChanged || len(out.Unchanged) != 1 {
		t.Errorf("%+v", out)
	}
	if out := must[git.StatusOut](w, "get_git_status", p); !out.Clean {
		t.Errorf("%+v", out)
	}
	r := w.call("restore_git_paths", args{"project": w.project, "paths": []string{".git/config"}})
	if f := refusalOf(t, r); !r.IsError || f.Kind != "invalid_path" || f.Reason != "git_internal" {
		t.Errorf("%s", r.Text)
	}
}
