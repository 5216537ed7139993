package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// world is a Runner with one Project and its shells.
type world struct {
	*Shells
	t    *testing.T
	r    *runner.Runner
	p    *runner.Project
	root string
	file string // the operator's settings
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	w := &world{t: t, root: filepath.Join(base, "project"), file: filepath.Join(base, "shells.toml")}
	must(t, os.Mkdir(w.root, 0o755))
	w.r, err = runner.New(runner.Options{Dir: filepath.Join(base, "runner"), Client: "testing"})
	must(t, err)
	t.Cleanup(func() { _ = w.r.Close() })
	w.p, err = w.r.AddProject(w.root)
	must(t, err)
	o.File = w.file
	if o.Dir == "" {
		o.Dir = filepath.Join(base, "runner", "shells")
	}
	w.Shells = New(o)
	Register(w.r, w.Shells)
	t.Cleanup(w.Close)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	sessionA = event.SessionID("wc_sess_00000000000000000000000000000001")
	sessionB = event.SessionID("wc_sess_00000000000000000000000000000002")
)

// settings replaces the operator's file as an editor does.
func (w *world) write(text string) {
	must(w.t, os.WriteFile(w.file+".new", []byte(text), 0o600))
	must(w.t, os.Rename(w.file+".new", w.file))
}

func (w *world) open(in wire.ShellOpenIn) *opened {
	w.t.Helper()
	if in.Session == "" {
		in.Session = sessionA
	}
	v, f := w.openLocal(context.Background(), w.p, in)
	if f != nil {
		w.t.Fatalf("open: %v (%v)", f, f.Unwrap())
	}
	return &opened{w, wire.ShellAt{Session: in.Session, ID: v.ID}, v}
}

// opened is an open shell.
type opened struct {
	*world
	at   wire.ShellAt
	view wire.ShellView
}

func (o *opened) run(command string, limit time.Duration) (wire.ShellExecuteOut, *fault.Error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return o.execute(ctx, o.p, wire.ShellExecuteIn{ShellAt: o.at, Command: command, Chars: wire.MaxShellOutputBytes})
}

// does runs a command that has to end, and gives what it says.
func (o *opened) does(command string) wire.ShellExecuteOut {
	o.t.Helper()
	out, f := o.run(command, 20*time.Second)
	if f != nil {
		o.t.Fatalf("%q: %v (%v)", command, f, f.Unwrap())
	}
	if !out.Completed || out.Shell.State != wire.ShellRunning {
		o.t.Fatalf("%q: %+v", command, out)
	}
	return out
}

// prints runs a command that has to end well, and gives what it printed.
func (o *opened) prints(command string) string {
	o.t.Helper()
	out := o.does(command)
	if *out.ExitCode != 0 {
		o.t.Fatalf("%q: %+v", command, out)
	}
	return out.Stdout.Text
}

func (o *opened) state() wire.ShellView {
	o.t.Helper()
	v, f := o.status(context.Background(), o.p, o.at)
	if f != nil {
		o.t.Fatal(f)
	}
	return v
}

func (o *opened) shut() wire.ShellCloseOut {
	o.t.Helper()
	out, f := o.close(context.Background(), o.p, o.at)
	if f != nil {
		o.t.Fatal(f)
	}
	return out
}

// waitFor waits for the shell to be in a state.
func (o *opened) waitFor(state wire.ShellState) wire.ShellView {
	o.t.Helper()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if v := o.state(); v.State == state && v.Ended != "" {
			return v
		}
	}
	o.t.Fatalf("it is not %s: %+v", state, o.state())
	return wire.ShellView{}
}

func kindOf(f *fault.Error) fault.Kind {
	if f == nil {
		return ""
	}
	return f.Kind
}

// alive reports whether a process lives.
func alive(pid string) bool {
	raw, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
	if err != nil {
		var n int
		_, _ = fmt.Sscan(pid, &n)
		return n > 0 && syscall.Kill(n, 0) == nil
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// nothingLeft says that no process, group or pipe of a shell is there.
func (w *world) nothingLeft(pids ...string) {
	w.t.Helper()
	for _, pid := range pids {
		if alive(pid) {
			w.t.Errorf("%s is alive", pid)
		}
	}
	var left []string
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		left = slices.DeleteFunc(proc.ControlGroups(), func(group string) bool { return !w.owns(group) })
		if len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		w.t.Errorf("left: %v", left)
	}
	if w.notes.pipes != "" {
		if files, _ := os.ReadDir(w.notes.pipes); len(files) > 0 {
			w.t.Errorf("pipes are left: %v", files)
		}
	}
}

// owns reports that a control group is of one of the world's shells.
func (w *world) owns(group string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.all {
		if strings.HasSuffix(group, string(id)) {
			return true
		}
	}
	return false
}
