package shell

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/internal/ownerfile"
	"webcodex/runner/wire"
)

// A profile's environment and script are there from the first command on, and were applied once.
// Covers: SHL-10
func TestAProfileIsAppliedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	bin := filepath.Join(t.TempDir(), "bin")
	must(t, os.Mkdir(bin, 0o755))
	must(t, os.WriteFile(filepath.Join(bin, "fromprofile"), []byte("#!/bin/sh\necho tool\n"), 0o755))
	w.write(`[shell]
profile = "dev"
[shell.profiles.dev]
dialect = "bash"
env = { GREETING = "hello world" }
path_prepend = ["` + bin + `"]
init_script = """
echo once >>counter
plain=set
f() { echo "f $plain"; }
false
"""
[shell.profiles.other]
projects = ["none-00000000"]
`)
	o := w.open(wire.ShellOpenIn{})
	if v := o.view; v.Dialect != "bash" || v.Profile != "dev" || v.InitExitCode == nil || *v.InitExitCode != 1 || v.Commands != 0 {
		t.Errorf("%+v", v)
	}
	for range 3 {
		if got := o.prints(`echo "$GREETING"; f; fromprofile; cat counter; echo ${BASH_VERSION:+bash}`); got != "hello world\nf set\ntool\nonce\nbash\n" {
			t.Errorf("%q", got)
		}
	}
	// It is not for run_shell or for another Project's shells (see Projects); and another shell of the
	// Project gets it anew.
	o.shut()
	if got := w.open(wire.ShellOpenIn{}).prints("cat counter"); got != "once\nonce\n" {
		t.Errorf("%q", got)
	}
}

// A script that does not come to its end leaves no shell.
// Covers: SHL-10
func TestAProfileThatDoesNotComeUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for reason, script := range map[string]string{"shell_exited_during_initialization": "exit 4", "initialization_timeout": "sleep 66"} {
		w.write("[shell]\nprofile = \"dev\"\n[shell.profiles.dev]\ninit_script = \"" + script + "\"\n")
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		v, f := w.openLocal(ctx, w.p, wire.ShellOpenIn{Session: sessionA})
		cancel()
		if kindOf(f) != fault.ShellProfileUnavailable || f.Reason != reason || f.ExecutionState != "not_started" {
			t.Errorf("%s: %+v %v", reason, v, f)
		}
		if len(w.living()) != 0 {
			t.Error("a shell is left")
		}
	}
	w.nothingLeft()
}

// Which shell and program a wish, a profile and a system lead to; what does not fit is refused.
// Covers: SHL-03, SHL-08
func TestDialects(t *testing.T) {
	t.Parallel()
	bash, power := profile{Dialect: "bash", Program: "/opt/bash"}, profile{Dialect: powershell, Program: "/opt/pwsh"}
	for _, c := range []struct {
		system, asked string
		p             profile
		dialect, prog string
	}{
		{"linux", "", profile{}, "sh", "sh"},
		{"linux", "bash", profile{}, "bash", "bash"},
		{"darwin", "sh", profile{}, "sh", "sh"},
		{"linux", "", bash, "bash", "/opt/bash"},
		{"linux", "bash", bash, "bash", "/opt/bash"},
		{"linux", "sh", bash, "", ""},
		{"linux", "", power, "", ""},
		{"linux", "sh", power, "", ""},
		{"windows", "sh", power, "", ""},
		{"windows", "bash", profile{}, "", ""},
		{"windows", "", bash, "", ""},
	} {
		if dialect, prog, ok := dialectOf(c.system, c.asked, c.p); dialect != c.dialect || prog != c.prog || ok != (c.dialect != "") {
			t.Errorf("%+v: %s %s", c, dialect, prog)
		}
	}
	w := newWorld(t, Options{system: "windows"})
	if _, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: sessionA, Shell: "bash"}); kindOf(f) != fault.ShellDialectUnsupported ||
		f.ExecutionState != "not_started" || f.Field != "shell" {
		t.Errorf("%v", f)
	}
}

// What a shell was opened under is looked at again before each command and each status; closing
// stays possible.
// Covers: SHL-16, SHL-17
func TestPolicyIsCheckedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(w *world)
		want   fault.Kind
	}{
		"profile changed": {func(w *world) { w.write("[shell]\nprofile = \"dev\"\n[shell.profiles.dev]\nenv = { A = \"2\" }\n") }, fault.ShellStale},
		"profile gone":    {func(w *world) { w.write("") }, fault.ShellStale},
		"another profile": {func(w *world) {
			w.write("[shell]\nprofile = \"new\"\n[shell.profiles.dev]\nenv = { A = \"1\" }\n[shell.profiles.new]\nenv = { A = \"1\" }\n")
		}, fault.ShellStale},
		"shells off":       {func(w *world) { w.write("[shell]\npersistent = false\n") }, fault.CapabilityUnavailable},
		"settings damaged": {func(w *world) { w.write("[shell]\nnonsense = 1\n") }, fault.ShellProfileUnavailable},
		"written by others": {func(w *world) {
			w.write("[shell]\nprofile = \"dev\"\n[shell.profiles.dev]\nenv = { A = \"1\" }\n#\n")
			must(w.t, os.Chmod(w.file, 0o666))
			w.read = ownerfile.Stamp{}
		}, fault.ShellProfileUnavailable},
		"cwd leads out": {func(w *world) {
			must(w.t, os.Rename(filepath.Join(w.root, "sub"), filepath.Join(w.root, "moved")))
			must(w.t, os.Symlink("/etc", filepath.Join(w.root, "sub")))
		}, fault.ShellCwdDenied},
		"cwd is a file": {func(w *world) {
			must(w.t, os.Remove(filepath.Join(w.root, "sub")))
			must(w.t, os.WriteFile(filepath.Join(w.root, "sub"), nil, 0o600))
		}, fault.ShellCwdDenied},
		"cwd removed": {func(w *world) { must(w.t, os.Remove(filepath.Join(w.root, "sub"))) }, ""},
		"the same again": {func(w *world) {
			w.write("[shell]\nprofile = \"dev\"\n[shell.profiles.dev]\nenv = { A = \"1\" } # a note\n")
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.write("[shell]\nprofile = \"dev\"\n[shell.profiles.dev]\nenv = { A = \"1\" }\n")
			must(t, os.Mkdir(filepath.Join(w.root, "sub"), 0o755))
			o := w.open(wire.ShellOpenIn{Cwd: "sub"})
			if got := o.prints("pwd; echo $A"); got != w.root+"/sub\n1\n" {
				t.Errorf("%q", got)
			}
			o.prints("cd ..")
			c.change(w)
			if c.want == "" {
				if got := o.prints("pwd; echo $A"); got != w.root+"\n1\n" { // it is where it was
					t.Errorf("%q", got)
				}
			} else {
				o.refused(c.want)
				if _, f := w.status(context.Background(), w.p, o.at); kindOf(f) != c.want || f.Details["shell_state"] != wire.ShellRunning {
					t.Errorf("status: %v", f)
				}
			}
			if out := o.shut(); out.AlreadyClosed || out.Shell.State != wire.ShellClosed {
				t.Errorf("%+v", out)
			}
			w.nothingLeft()
		})
	}
}

// A directory that may not be one starts nothing, and takes no place.
func TestACwdThatIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	must(t, os.Symlink("/etc", filepath.Join(w.root, "out")))
	must(t, os.WriteFile(filepath.Join(w.root, "file"), nil, 0o600))
	for cwd, reason := range map[string]string{"/etc": "absolute", "../x": "outside_project", "out": "symlink_outside", "none": "not_found", "file": "not_directory"} {
		if _, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: sessionA, Cwd: cwd}); kindOf(f) != fault.InvalidPath || f.Reason != reason || f.ExecutionState != "not_started" {
			t.Errorf("%s: %v", cwd, f)
		}
	}
	w.open(wire.ShellOpenIn{})
}

// The operator's file is read strictly.
func TestSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[shell]\nprofile = \"x\"":                                                         "names none",
		"[shell.profiles.\"a/b\"]":                                                         "a name is",
		"[shell.profiles.a]\ndialect = \"fish\"":                                           "dialect",
		"[shell.profiles.a]\ndialect = \"sh\"\nprogram = \"sh\"":                           "absolute",
		"[shell.profiles.a]\nprogram = \"/bin/sh\"":                                        "needs its dialect",
		"[shell.profiles.a]\nenv = { \"A B\" = \"x\" }":                                    "env",
		"[shell.profiles.a]\nenv = { WC_EXECUTION_ID = \"x\" }":                            "itself",
		"[shell.profiles.a]\npath_prepend = [\"bin\"]":                                     "path_prepend",
		"[shell.profiles.a]\ninit_script = \"" + strings.Repeat("x", maxInit+1) + "\"":     "init_script",
		"[shell.profiles.a]\nnope = 1":                                                     "no setting",
		"[shell.profiles.a]\ninit_script = \"" + strings.Repeat("x", maxInit) + "\"":       "",
		"[shell]\nprofile = \"a\"\n[shell.profiles.a]\ndialect = \"sh\"\nprojects=[\"p\"]": "",
	} {
		_, err := parseSettings(text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
	s, err := parseSettings("[shell]\nprofile = \"all\"\n[shell.profiles.all]\n[shell.profiles.one]\nprojects = [\"p\"]\n")
	must(t, err)
	if s.profileOf("p").name != "one" || s.profileOf("q").name != "all" || (settings{}).profileOf("p").name != "" {
		t.Errorf("%+v", s)
	}
}
