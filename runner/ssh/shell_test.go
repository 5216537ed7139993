package ssh

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/shell"
	"webcodex/runner/wire"
)

// far is a persistent shell on a resource, told directly.
type far struct {
	shell.Engine
	t *testing.T
}

func (w *world) shell(in shell.RemoteIn) far {
	w.t.Helper()
	if in.Session == "" {
		in.Session = sessionA
	}
	if in.Resource == "" {
		in.Resource = "build"
	}
	if in.Dialect == "" {
		in.Dialect = "sh"
	}
	e, _, _, f := w.r.OpenShell(context.Background(), in)
	if f != nil {
		w.t.Fatalf("%v (%v)\nhost: %s", f, f.Unwrap(), w.Log)
	}
	w.t.Cleanup(e.Close)
	return far{e, w.t}
}

// ran is what came of a command.
type ran struct {
	shell.Ended
	out, err *proc.Tail
}

func (r ran) stdout() string { s, _ := r.out.Text(wire.MaxShellOutputBytes); return s }
func (r ran) stderr() string { s, _ := r.err.Text(wire.MaxShellOutputBytes); return s }

func (f far) run(command string, limit time.Duration) ran {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r := ran{out: proc.NewTail(wire.MaxShellOutputBytes), err: proc.NewTail(wire.MaxShellOutputBytes)}
	r.Ended = f.Execute(ctx, command, r.out, r.err)
	return r
}

func (f far) prints(command string) string {
	f.t.Helper()
	r := f.run(command, 20*time.Second)
	if !r.InStep || r.Status == nil || *r.Status != 0 {
		f.t.Fatalf("%q: %+v %q %q", command, r.Ended, r.stdout(), r.stderr())
	}
	return r.stdout()
}

// each runs a test with both dialects on a host.
func each(t *testing.T, test func(t *testing.T, w *world, f far)) {
	w := newWorld(t, Options{})
	for _, dialect := range wire.Shells {
		t.Run(dialect, func(t *testing.T) {
			w.t = t
			test(t, w, w.shell(shell.RemoteIn{Dialect: dialect}))
		})
	}
}

// A shell on a resource keeps its state, like one here: sh or bash, whatever system the Runner has.
// Covers: SHL-11, SHL-28, SSH-14
func TestARemoteShellKeepsItsState(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, f far) {
		dir := t.TempDir()
		pid := f.prints("echo $$")
		r := f.run("cd "+dir+"; export E=1; P=2; umask 027; f() { echo \"f $P\"; }; unset HOME; echo out; echo err >&2; (exit 4)", 10*time.Second)
		if !r.InStep || *r.Status != 4 || r.stdout() != "out\n" || r.stderr() != "err\n" {
			t.Errorf("%+v %q %q", r.Ended, r.stdout(), r.stderr())
		}
		if got, want := f.prints(`pwd; sh -c 'echo "$E$P"'; echo "$P" "${HOME-none}"; umask; f; echo $$; echo ${SSH_CONNECTION:+ssh}`), dir+"\n1\n2 none\n0027\nf 2\n"+pid+"ssh\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := f.prints("cat; read x || echo end; for n in 0 1 2; do test -t $n && echo terminal; done; echo $PAGER"); got != "end\ncat\n" {
			t.Errorf("%q", got)
		}
		for _, c := range []string{"if", "echo ${zz?unset}", ". /nonexistent/x", "no_such_command", "set -u; echo $nope"} {
			if r := f.run(c, 10*time.Second); !r.InStep || *r.Status == 0 {
				t.Errorf("%q: %+v", c, r.Ended)
			}
			f.prints("set +u")
		}
		for _, text := range []string{"a b", `it's`, `\`, `\\n`, "!", "a\nb", "ü€𝄞", "%s%n", "\t", "\r", "\x01"} {
			if got := f.prints("printf '%s|' " + shell.Quote(text)); got != text+"|" {
				t.Errorf("%q came as %q", text, got)
			}
		}
		f.prints("true '" + strings.Repeat("!", wire.MaxShellCommandBytes-len("true ''")) + "'")
		if got := f.prints("printf() { echo no; }; cat() { echo no; }; alias sh=false; PATH=/nowhere; IFS=0123456789; echo still"); got != "still\n" {
			t.Errorf("%q", got)
		}
		if got := f.prints("echo here"); got != "here\n" {
			t.Errorf("%q", got)
		}
	})
}

// What a command prints ends with it and cannot be taken for its end; who goes on in the background
// is not heard with the next.
// Covers: SHL-22, SHL-23, SHL-24
func TestRemoteOutputEndsWhereTheCommandEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, f far) {
		frame := strings.Repeat("0123456789abcdef", 2) + " 0 0 0 0 0\n"
		r := f.run("f="+shell.Quote(frame)+`; for n in 1 2 3 4 5 6 7 8 9; do ( printf '%s' "$f" >&$n ) 2>/dev/null; done; echo last; (exit 5)`, 10*time.Second)
		if !r.InStep || *r.Status != 5 || !strings.HasSuffix(r.stdout(), "last\n") || !strings.HasPrefix(r.stdout(), frame) {
			t.Errorf("%+v %q %q", r.Ended, r.stdout(), r.stderr())
		}
		f.prints("while :; do echo LEAK; echo LEAK >&2; sleep 0.01; done & echo $! >" + w.marker())
		for i := range 20 {
			r := f.run(fmt.Sprintf("printf %%s a%d; printf %%s b%d >&2", i, i), 10*time.Second)
			if r.stdout() != fmt.Sprint("a", i) || r.stderr() != fmt.Sprint("b", i) {
				t.Fatalf("%d: %q %q", i, r.stdout(), r.stderr())
			}
		}
		f.prints("kill $(cat " + w.marker() + ")")
		for _, n := range []int{wire.MaxShellOutputBytes, wire.MaxShellOutputBytes + 1, 3_000_000} {
			r := f.run(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo e >&2", n), 20*time.Second)
			if r.out.Total() != int64(n) || len(r.stdout()) != wire.MaxShellOutputBytes || r.stderr() != "e\n" {
				t.Errorf("%d: %d, %d kept", n, r.out.Total(), len(r.stdout()))
			}
		}
	})
}

// At its limit a command is interrupted there, and the shell goes on; one that ignores that takes
// its shell with it, and everything that the shell had started.
// Covers: SHL-25, SHL-26
func TestARemoteShellAtALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{patient: 2 * time.Second})
	for _, dialect := range wire.Shells {
		f := w.shell(shell.RemoteIn{Dialect: dialect})
		f.prints("keep=yes")
		for _, c := range []string{"echo begun; sleep 60; echo no", "echo begun; while :; do :; done", "echo begun; sleep 60 | cat"} {
			r := f.run(c, 300*time.Millisecond)
			if !r.Late || !r.InStep || !strings.HasPrefix("begun\n", r.stdout()) {
				t.Errorf("%q: %+v %q\n%s", c, r.Ended, r.stdout(), tailOf(w.Log.String()))
			}
			if got := f.prints("echo $keep"); got != "yes\n" {
				t.Errorf("%q: then %q", c, got)
			}
		}
		pids := strings.Fields(f.prints("sleep 67 >/dev/null 2>&1 & echo; echo $$ $!"))
		r := f.run("trap '' INT; sleep 67", 300*time.Millisecond)
		if !r.Late || r.InStep {
			t.Errorf("%+v", r.Ended)
		}
		f.Close()
		gone(t, pids...)
	}
}

func tailOf(s string) string { return s[max(0, len(s)-400):] }

// gone waits until processes have ended.
func gone(t *testing.T, pids ...string) {
	t.Helper()
	for _, pid := range pids {
		for until := time.Now().Add(3 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			raw, err := os.ReadFile("/proc/" + pid + "/stat")
			if _, rest, _ := strings.Cut(string(raw), ") "); err != nil || strings.HasPrefix(rest, "Z") {
				break
			}
			if time.Now().After(until) {
				t.Errorf("%s is alive", pid)
				break
			}
		}
	}
}

// However a shell ends, by itself, by our close or because the connection broke, nothing of it is
// left on the resource: no process of its group, no file.
// Covers: SHL-19, SHL-31
func TestARemoteShellLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for name, end := range map[string]func(f far){
		"closed idle": func(f far) { f.Close() },
		"closed busy": func(f far) {
			go f.run("touch "+w.marker()+"; sleep 68", 10*time.Second)
			w.waitMark()
			f.Close()
		},
		"exit": func(f far) {
			r := f.run("echo last; exit 3", 10*time.Second)
			if r.InStep || r.stdout() != "last\n" {
				t.Errorf("%+v %q", r.Ended, r.stdout())
			}
			<-f.Gone()
			if x := f.Exit(); x.Code == nil || *x.Code != 3 || x.Damaged || x.Lost || x.Unknown {
				t.Errorf("%+v", x)
			}
		},
		"the connection breaks": func(f far) {
			go f.run("touch "+w.marker()+"; sleep 68", 10*time.Second)
			w.waitMark()
			w.Cut()
			<-f.Gone()
			if x := f.Exit(); !x.Lost || !x.Unknown || x.Code != nil {
				t.Errorf("%+v", x)
			}
		},
		"the host's own process dies": func(f far) {
			r := f.run("echo begun; kill -9 $(ps -o ppid= -p $PPID)", 10*time.Second)
			if x := f.Exit(); r.InStep || !x.Lost || !x.Unknown {
				t.Errorf("%+v %+v", r.Ended, x)
			}
		},
		"idle, and the connection breaks": func(f far) {
			w.Cut()
			<-f.Gone()
		},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(w.marker())
			f := w.shell(shell.RemoteIn{})
			dir := strings.TrimSpace(f.prints("readlink /proc/$$/fd/* | sed -n 's#/s$##p' | grep webcodex-shell"))
			pids := strings.Fields(f.prints("sleep 68 >/dev/null 2>&1 & echo; echo $$ $!"))
			if _, err := os.Stat(dir); err != nil || !strings.Contains(dir, "webcodex-shell-") {
				t.Fatalf("%q: %v", dir, err)
			}
			end(f)
			gone(t, pids...)
			for until := time.Now().Add(3 * time.Second); ; time.Sleep(10 * time.Millisecond) {
				if _, err := os.Stat(dir); err != nil {
					break
				}
				if time.Now().After(until) {
					t.Errorf("%s is left", dir)
					break
				}
			}
		})
	}
}

func (w *world) waitMark() {
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(w.marker()); err == nil {
			return
		}
	}
	w.t.Error("the command did not begin")
}

// What cannot be opened is told before anything runs, and nothing falls back.
// Covers: SHL-05, SHL-09
func TestARemoteShellThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	there := t.TempDir()
	must(t, os.Mkdir(filepath.Join(there, "resource"), 0o700))
	must(t, os.Mkdir(filepath.Join(there, "call"), 0o700))
	w.write(w.resource("build", ""), w.resource("placed", fmt.Sprintf("default_cwd = %q", filepath.Join(there, "resource"))))
	for name, c := range map[string]struct {
		in     shell.RemoteIn
		kind   fault.Kind
		reason string
	}{
		"no such resource": {shell.RemoteIn{Resource: "none"}, fault.SSHResourceNotFound, ""},
		"no directory":     {shell.RemoteIn{Cwd: "/no/such/dir"}, fault.InvalidPath, "not_found"},
		"a file":           {shell.RemoteIn{Cwd: "/etc/passwd"}, fault.InvalidPath, "not_directory"},
		"no shell":         {shell.RemoteIn{Dialect: "no-such-shell"}, fault.CommandSpawnFailed, "not_found"},
		"control":          {shell.RemoteIn{Cwd: "a\nb"}, fault.RunnerRefused, "malformed"},
	} {
		c.in.Session = sessionA
		if c.in.Resource == "" {
			c.in.Resource = "build"
		}
		if c.in.Dialect == "" {
			c.in.Dialect = "sh"
		}
		_, _, _, f := w.r.OpenShell(context.Background(), c.in)
		if f == nil || f.Kind != c.kind || f.Reason != c.reason || f.ExecutionState != "not_started" {
			t.Errorf("%s: %v", name, f)
		}
	}
	login := w.prints("pwd")
	for _, c := range []struct{ resource, cwd, want string }{
		{"build", "", login}, {"placed", "", filepath.Join(there, "resource") + "\n"}, {"placed", filepath.Join(there, "call"), filepath.Join(there, "call") + "\n"},
		{"build", "~", strings.TrimSpace(w.prints("echo $HOME")) + "\n"},
	} {
		if got := w.shell(shell.RemoteIn{Resource: c.resource, Cwd: c.cwd}).prints("pwd"); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A shell has one channel, for as long as it lives and whatever it runs, on the connection that the
// Session's other commands have; another Session has another.
// Covers: SSH-17
func TestARemoteShellHasOneChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.prints("true")
	f := w.shell(shell.RemoteIn{})
	for range 5 {
		f.prints("echo on")
	}
	w.prints("true")
	if w.Connections() != 1 || w.Commands() != 3 {
		t.Errorf("%d connections, %d channels of 1 and 3", w.Connections(), w.Commands())
	}
	other := w.shell(shell.RemoteIn{Session: sessionB})
	other.prints("true")
	if w.Connections() != 2 || w.Commands() != 4 {
		t.Errorf("%d connections, %d channels of 2 and 4", w.Connections(), w.Commands())
	}
	f.Close()
	w.prints("true")
	if w.Connections() != 2 {
		t.Errorf("%d connections: the close of a shell closed that of its Session", w.Connections())
	}
}
