package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// printed is what a process that ended well has printed.
func (g *rig) printed(op wire.Op, in wire.ProcessIn) string {
	g.t.Helper()
	r := g.do(g.make(op, in))
	if r.Process == nil || r.Process.ExitCode == nil || *r.Process.ExitCode != 0 {
		g.t.Errorf("%s: %+v %+v %+v", op, r, r.Process, r.Fault)
		return ""
	}
	return r.Process.Stdout.Text
}

// Each bound holds at its value; one past it is refused by the Runner itself
// (TestTheRunnerChecksForItself).
//
// Covers: EXE-19, EXE-22, EXE-37
func TestInputsAtTheirBounds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	if err := os.WriteFile(g.path("p"), []byte("#!/bin/sh\nprintf %s $#\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	long := func(end string, n int) string { // a path of n bytes that means end
		return strings.Repeat("./", (n-len(end))/2) + strings.Repeat("/", (n-len(end))%2) + end
	}
	shell := func(n int) string { return "printf ok #" + strings.Repeat("x", n-11) }
	for name, c := range map[string]struct {
		op   wire.Op
		in   wire.ProcessIn
		want string
	}{
		"executable": {wire.OpProcess, wire.ProcessIn{Executable: long("p", wire.MaxExecutableBytes)}, "0"},
		"256 args":   {wire.OpProcess, wire.ProcessIn{Executable: "./p", Args: slices.Repeat([]string{""}, wire.MaxArgs)}, "256"},
		"an arg":     {wire.OpProcess, wire.ProcessIn{Executable: "./p", Args: []string{strings.Repeat("x", wire.MaxArgBytes)}}, "1"},
		"all args":   {wire.OpProcess, wire.ProcessIn{Executable: "./p", Args: slices.Repeat([]string{strings.Repeat("x", 8000)}, 2)}, "2"},
		"stdin":      {wire.OpProcess, wire.ProcessIn{Executable: "wc", Args: []string{"-c"}, Stdin: strings.Repeat("é", wire.MaxStdinBytes/2)}, "65536\n"},
		"cwd":        {wire.OpProcess, wire.ProcessIn{Executable: "./p", Cwd: long(".", wire.MaxCwdBytes)}, "0"},
		"script":     {wire.OpScript, wire.ProcessIn{Language: "sh", Script: shell(wire.MaxScriptBytes)}, "ok"},
		"wire form":  {wire.OpShell, wire.ProcessIn{Shell: "sh", Command: shell(wire.MaxCommandWire)}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := g.printed(c.op, c.in); strings.TrimLeft(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for _, limit := range []int64{1000, 3_600_000} {
		o := g.make(wire.OpProcess, wire.ProcessIn{Executable: "true"})
		o.Bounds.TimeoutMS = limit
		if r := g.do(o); r.Process == nil || !r.Process.Completed {
			t.Errorf("%d ms: %+v", limit, r)
		}
	}
}

// An executable is a bare name in PATH or a path, which counts from the working directory. What
// is no program is refused with its reason, at once, and nothing has happened.
func TestExecutables(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	outside := t.TempDir()
	program := []byte("#!/bin/sh\nprintf '%s' \"$0\"\n")
	for _, err := range []error{
		os.MkdirAll(g.path("sub"), 0o700), os.WriteFile(g.path("here"), program, 0o700), os.WriteFile(g.path("sub/there"), program, 0o700),
		os.WriteFile(g.path("with space"), program, 0o700), os.WriteFile(filepath.Join(outside, "away"), program, 0o700), os.WriteFile(g.path("-dash"), program, 0o700),
		os.WriteFile(g.path("bare"), []byte("echo no interpreter line\n"), 0o700), os.WriteFile(g.path("empty"), nil, 0o700),
		os.WriteFile(g.path("lost"), []byte("#!/no/such/interpreter\n"), 0o700), os.WriteFile(g.path("crlf"), []byte("#!/bin/sh\r\necho x\r\n"), 0o700),
		os.WriteFile(g.path("plain"), program, 0o600), os.Symlink(filepath.Join(outside, "away"), g.path("link")), os.Symlink("nothing", g.path("dangling")),
		os.Symlink("loop", g.path("loop")), exec.Command("mkfifo", "-m", "777", g.path("fifo")).Run(), os.WriteFile(g.path("true"), []byte("#!/bin/sh\necho repository's\n"), 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(g.p.Path, filepath.Join(outside, "away"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ executable, cwd, reason string }{
		"relative":            {"./here", "", ""},
		"of the cwd":          {"./there", "sub", ""},
		"up from the cwd":     {"../here", "sub", ""},
		"absolute, outside":   {filepath.Join(outside, "away"), "", ""},
		"relative, outside":   {relative, "", ""},
		"a link outside":      {"./link", "", ""},
		"with a space":        {"./with space", "", ""},
		"with a dash":         {"./-dash", "", ""},
		"not of the cwd":      {"./here", "sub", "executable_not_found"},
		"missing":             {"./missing", "", "executable_not_found"},
		"missing below":       {"missing/x", "", "executable_not_found"},
		"below a file":        {"here/x", "", "not_executable"},
		"not in PATH":         {"here", "", "executable_not_found"},
		"a dot":               {".", "", "executable_not_found"},
		"two dots":            {"..", "", "executable_not_found"},
		"a space":             {" ", "", "executable_not_found"},
		"a newline":           {"true\n", "", "executable_not_found"},
		"a command line":      {"printf ok", "", "executable_not_found"},
		"not executable":      {"./plain", "", "not_executable"},
		"a directory":         {"./sub", "", "is_directory"},
		"the root":            {"/", "", "is_directory"},
		"no interpreter line": {"./bare", "", "no_interpreter"},
		"empty":               {"./empty", "", "no_interpreter"},
		"lost interpreter":    {"./lost", "", "executable_not_found"},
		"interpreter with CR": {"./crlf", "", "executable_not_found"},
		"dangling":            {"./dangling", "", "executable_not_found"},
		"a loop of links":     {"./loop", "", "not_executable"},
		"a FIFO":              {"./fifo", "", "not_executable"},
		"a device":            {"/dev/null", "", "not_executable"},
		"a name too long":     {"./" + strings.Repeat("x", 300), "", "launch_envelope"},
	} {
		t.Run(name, func(t *testing.T) {
			r := g.do(g.make(wire.OpProcess, wire.ProcessIn{Executable: c.executable, Cwd: c.cwd}))
			if c.reason == "" {
				if r.Process == nil || r.Process.Stdout.Text != c.executable {
					t.Errorf("%+v %+v", r.Process, r.Fault)
				}
				return
			}
			if r.State != wire.JStartFailed || fault.KindOf(r.Fault) != fault.CommandSpawnFailed || r.Fault.Reason != c.reason || r.Fault.Field != "executable" {
				t.Errorf("%+v %+v", r.Process, r.Fault)
			}
			if r.Fault != nil && strings.Contains(r.Fault.Message+r.Fault.Next, "/") {
				t.Errorf("a path is told: %s %s", r.Fault.Message, r.Fault.Next)
			}
		})
	}
	if out := g.printed(wire.OpProcess, wire.ProcessIn{Executable: "true"}); out != "" {
		t.Errorf("a bare name ran %q of the repository", out)
	}
}

// A dialect or language whose interpreter is not on the Runner is told by the argument that
// chose it; none is put in its place.
func TestInterpretersThatAreNotThere(t *testing.T) {
	bin := t.TempDir()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sh, filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":relative:")
	g := newRig(t)
	if out := g.printed(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "echo $0"}); out != "sh\n" {
		t.Errorf("%q", out)
	}
	ask := func(op wire.Op, field string, in wire.ProcessIn) {
		t.Helper()
		r := g.do(g.make(op, in))
		if r.State != wire.JStartFailed || r.Fault == nil || r.Fault.Kind != fault.CommandSpawnFailed || r.Fault.Field != field || r.Fault.Reason != "executable_not_found" {
			t.Errorf("%+v: %+v %+v", in, r, r.Fault)
		}
	}
	ask(wire.OpShell, "shell", wire.ProcessIn{Shell: "bash", Command: "echo x"})
	for _, language := range wire.Languages {
		if language != "sh" {
			ask(wire.OpScript, "language", wire.ProcessIn{Language: language, Script: "x"})
		}
	}
	if left, _ := filepath.Glob(filepath.Join(g.scripts.path, "*")); len(left) > 0 {
		t.Errorf("script files stay: %v", left)
	}
}

// Texts arrive byte for byte: nothing is quoted, split, trimmed or taken for an option, and what
// the shell cannot read is the shell's failure, at once.
func TestTextsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	odd := []string{"--help", "-c", "--", "", " ", "a\rb", "a\nb", "$(id)", "`id`", "'", `"`, `\`, "*", "~", "é\u0301", "\ufeff", "\x1b[2J", "%s", "a;b", "&"}
	want := strings.Join(odd, "|") + "|"
	for _, c := range []struct {
		op wire.Op
		in wire.ProcessIn
	}{
		{wire.OpProcess, wire.ProcessIn{Executable: "printf", Args: slices.Concat([]string{"%s|"}, odd)}},
		{wire.OpScript, wire.ProcessIn{Language: "sh", Script: `printf '%s|' "$@"`, Args: odd}},
		{wire.OpProcess, wire.ProcessIn{Executable: "cat", Stdin: want}},
	} {
		if got := g.printed(c.op, c.in); got != want {
			t.Errorf("%s: %q", c.op, got)
		}
	}
	shells := []string{"sh"}
	if _, err := exec.LookPath("bash"); err == nil {
		shells = append(shells, "bash")
	}
	for _, shell := range shells {
		for command, want := range map[string]string{
			"printf '%s' 'a\rb'": "a\rb", "printf x\nprintf y": "xy", " \t printf x": "x", "printf é漢🙂": "é漢🙂", "# nothing": "", ":\n\n": "",
			"\"printf\" '%s' \"it's\"": "it's", "printf '\\033[2J'": "\x1b[2J",
		} {
			if got := g.printed(wire.OpShell, wire.ProcessIn{Shell: shell, Command: command}); got != want {
				t.Errorf("%s %q: %q", shell, command, got)
			}
		}
		for command, codes := range map[string][]int{"echo 'x": {1, 2}, `echo "x`: {1, 2}, "echo $(": {1, 2}, "echo `": {1, 2}, "(": {1, 2}, "if": {1, 2}, "true\r": {127},
			"--version": {127}, "-c": {127}, "-e 'x'": {127}, "+x": {127}, "--": {127}} {
			begun := time.Now()
			r := g.do(g.make(wire.OpShell, wire.ProcessIn{Shell: shell, Command: command}))
			if p := r.Process; p == nil || !p.Completed || p.ExitCode == nil || !slices.Contains(codes, *p.ExitCode) || p.Stdout.Text != "" || p.Stderr.Text == "" {
				t.Errorf("%s %q: %+v", shell, command, r.Process)
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%s %q took %v", shell, command, took)
			}
		}
	}
}

// While a directory is swapped against a link that leads out, again and again, a command runs in
// the Project or not at all.
func TestASwappedDirectoryLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a child is put into an opened directory by its path there")
	}
	rounds := 60
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds = 10_000
	}
	g := newRig(t)
	outside := t.TempDir()
	for _, err := range []error{os.Mkdir(g.path("real"), 0o700), os.Symlink(outside, g.path("bad"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				for _, name := range []string{"real", "bad"} {
					_ = os.Rename(g.path(name), g.path("d"))
					time.Sleep(100 * time.Microsecond)
					_ = os.Rename(g.path("d"), g.path(name))
				}
			}
		}
	})
	ran, refused := 0, 0
	for i := range rounds {
		r := g.do(g.make(wire.OpProcess, wire.ProcessIn{Executable: "touch", Args: []string{"n" + strconv.Itoa(i)}, Cwd: "d"}))
		switch {
		case r.Process != nil && r.Process.ExitCode != nil && *r.Process.ExitCode == 0:
			ran++
		case fault.KindOf(r.Fault) == fault.InvalidPath:
			refused++
		default:
			t.Errorf("%+v %+v", r.Process, r.Fault)
		}
	}
	close(stop)
	swapper.Wait()
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("%d commands ran outside", len(left))
	}
	inside, _ := os.ReadDir(g.path("real"))
	if len(inside) != ran {
		t.Errorf("%d ran, %d files are inside", ran, len(inside))
	}
	t.Logf("%d ran, %d were refused", ran, refused)
}
