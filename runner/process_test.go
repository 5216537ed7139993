package runner

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func TestScriptsAndShells(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for name, c := range map[string]struct {
		op    wire.Op
		in    wire.ProcessIn
		want  string
		needs string
	}{
		"process":    {op: wire.OpProcess, in: wire.ProcessIn{Executable: "printf", Args: []string{"%s|", "a b", "", "$HOME"}}, want: "a b||$HOME|"},
		"sh":         {op: wire.OpShell, in: wire.ProcessIn{Shell: "sh", Command: "echo $((1+2)) | cat"}, want: "3\n"},
		"bash":       {op: wire.OpShell, in: wire.ProcessIn{Shell: "bash", Command: "a=(x y); echo ${a[1]}"}, want: "y\n", needs: "bash"},
		"sh script":  {op: wire.OpScript, in: wire.ProcessIn{Language: "sh", Script: "echo \"$1-$2\"; cat", Args: []string{"a b", "c"}, Stdin: "in"}, want: "a b-c\nin"},
		"python":     {op: wire.OpScript, in: wire.ProcessIn{Language: "python", Script: "import sys\nprint(sys.argv[1:], sys.stdin.read())", Args: []string{"é"}, Stdin: "s"}, want: "['é'] s\n", needs: "python3"},
		"node":       {op: wire.OpScript, in: wire.ProcessIn{Language: "node", Script: "console.log(process.argv.slice(2).join())", Args: []string{"a", "b"}}, want: "a,b\n", needs: "node"},
		"powershell": {op: wire.OpScript, in: wire.ProcessIn{Language: "powershell", Script: "Write-Output $args[0]", Args: []string{"a"}}, want: "a\n", needs: "pwsh"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
				t.Skip(c.needs + " is not here")
			}
			r := g.do(g.make(c.op, c.in))
			if r.Process == nil || r.Process.Stdout.Text != c.want {
				t.Errorf("%+v %+v", r, r.Process)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(g.scripts.path, "*")); len(left) > 0 {
		t.Errorf("script files stay: %v", left)
	}
	if err := os.RemoveAll(g.scripts.path); err != nil { // as a cleaner of old files would
		t.Fatal(err)
	}
	if r := g.do(g.make(wire.OpScript, wire.ProcessIn{Language: "sh", Script: "echo again"})); r.Process == nil || r.Process.Stdout.Text != "again\n" {
		t.Errorf("%+v", r)
	}
	if strings.HasPrefix(g.scripts.path, g.dir) {
		t.Error("scripts lie in the data directory")
	}
}

// A script's file goes with the script, not only when the server has heard of the end.
func TestAScriptFileGoesBeforeTheEndIsHeard(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	heard := make(chan struct{})
	g.link = t.Context()
	g.Runner.link = deaf{g.up, heard}
	o := g.make(wire.OpScript, wire.ProcessIn{Language: "sh", Script: "echo ran"})
	if reply := g.offer(g.link, o); !reply.Accepted {
		t.Fatalf("%+v", reply)
	}
	<-heard
	if left, _ := filepath.Glob(filepath.Join(g.scripts.path, "*")); len(left) > 0 {
		t.Errorf("script files stay: %v", left)
	}
}

// deaf is a server that hears no end; told is closed by the first one.
type deaf struct {
	*upstream
	told chan struct{}
}

func (d deaf) Result(context.Context, wire.Result) (wire.Ack, error) {
	select {
	case <-d.told:
	default:
		close(d.told)
	}
	return wire.Ack{}, errors.New("lost")
}

// What cannot start is told with its kind, and nothing has happened.
//
// Covers: EXE-21
func TestSpawnFailures(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	if err := os.WriteFile(g.path("plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 40<<10)
	for name, c := range map[string]struct {
		in     wire.ProcessIn
		reason string
	}{
		"missing":        {wire.ProcessIn{Executable: "no-such-program"}, "executable_not_found"},
		"not executable": {wire.ProcessIn{Executable: "./plain"}, "not_executable"},
		"directory":      {wire.ProcessIn{Executable: "/"}, "is_directory"},
		// The launch envelope of the system is narrower than the bounds of the wire.
		"envelope": {wire.ProcessIn{Executable: "true", Env: []string{"A=" + strings.Repeat(big, 4)}}, "launch_envelope"},
	} {
		t.Run(name, func(t *testing.T) {
			o := g.make(wire.OpProcess, c.in)
			r := g.do(o)
			if r.State != wire.JStartFailed || fault.KindOf(r.Fault) != fault.CommandSpawnFailed || r.Fault.Reason != c.reason ||
				r.Fault.ExecutionState != string(event.NotStarted) || r.Fault.CommandStarted {
				t.Errorf("%+v %+v", r, r.Fault)
			}
			if g.state(o.ID) != wire.JStartFailed {
				t.Errorf("the journal says %q", g.state(o.ID))
			}
		})
	}
}

func TestWorkingDirectories(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	outside := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(g.path("a/b"), 0o700), os.WriteFile(g.path("file"), nil, 0o600),
		os.Symlink(outside, g.path("out")), os.Symlink(filepath.Join(outside, "nothing"), g.path("later")),
		os.Symlink("a/b", g.path("in")), exec.Command("mkfifo", g.path("fifo")).Run(),
		os.Mkdir(g.p.Path+"-sibling", 0o700),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Remove(g.p.Path + "-sibling") })
	for cwd, reason := range map[string]string{
		"": "", ".": "", "a/b": "", "in": "", "a/../a": "",
		"/tmp": "absolute", "..": "outside_project", "a/../../x": "outside_project", "../" + filepath.Base(g.p.Path) + "-sibling": "outside_project",
		"out": "symlink_outside", "later": "symlink_outside", "missing": "not_found", "file": "not_directory", "fifo": "not_directory",
	} {
		t.Run(cwd, func(t *testing.T) {
			r := g.do(g.make(wire.OpProcess, wire.ProcessIn{Executable: "pwd", Cwd: cwd}))
			if reason == "" {
				if r.Process == nil || !strings.HasPrefix(r.Process.Stdout.Text, g.p.Path) {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.State != wire.JStartFailed || fault.KindOf(r.Fault) != fault.InvalidPath || r.Fault.Reason != reason {
				t.Errorf("%+v %+v, want %s", r, r.Fault, reason)
			}
		})
	}
}

// A call without a Session has the Project's and the Runner's defaults and nothing else.
//
// Covers: EXE-23
func TestDefaultsWithoutSession(t *testing.T) {
	t.Setenv("WEBCODEX_SECRET_FOR_TEST", "leaked")
	g := newRig(t)
	r := g.do(g.make(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "pwd; env"}))
	out := r.Process.Stdout.Text
	if !strings.HasPrefix(out, g.p.Path+"\n") || strings.Contains(out, "leaked") || !strings.Contains(out, "GIT_TERMINAL_PROMPT=0") {
		t.Errorf("%s", out)
	}
}

// Purpose is the server's evidence; the Runner has no member for it, so it can change nothing
// about a failed process.
//
// Covers: EXE-27
func TestAFailedProcessStaysFailed(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.make(wire.OpShell, map[string]any{"shell": "sh", "command": "exit 4", "purpose": "diagnostic"})
	r := g.do(o)
	if p := r.Process; p == nil || p.ExitCode == nil || *p.ExitCode != 4 || !p.Completed {
		t.Errorf("%+v", r)
	}
}

func TestCancelAndTimeoutAreTold(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.make(wire.OpProcess, wire.ProcessIn{Executable: "sleep", Args: []string{"60"}})
	g.offer(g.link, o)
	g.until(o.ID, wire.JRunning)
	if ack := g.cancel(wire.Cancel{ID: o.ID}); !ack.OK {
		t.Errorf("%+v", ack)
	}
	if r := g.end(); !r.Process.Cancelled || r.Process.TimedOut || r.Process.Completed || r.Process.ExitCode != nil {
		t.Errorf("%+v", r.Process)
	}
	g.until(o.ID, wire.JSettled)
	if ack := g.cancel(wire.Cancel{ID: o.ID}); ack.OK || ack.Reason != "ended" {
		t.Errorf("ending an ended one answers %+v", ack)
	}
	o = g.make(wire.OpProcess, wire.ProcessIn{Executable: "sleep", Args: []string{"60"}})
	o.Bounds.TimeoutMS = 1000
	if r := g.do(o); !r.Process.TimedOut || r.Process.Cancelled {
		t.Errorf("%+v", r.Process)
	}
}
