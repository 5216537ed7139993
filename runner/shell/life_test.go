package shell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// sessionN is a Session for each number.
func sessionN(n int) event.SessionID {
	return event.SessionID(fmt.Sprintf("wc_sess_%032x", 0x1000+n))
}

// refusedOpen tries to open another shell for the Session; empty: it has to be possible.
func (o *opened) refusedOpen(want fault.Kind) {
	o.t.Helper()
	v, f := o.openLocal(context.Background(), o.p, wire.ShellOpenIn{Session: o.at.Session})
	if kindOf(f) != want {
		o.t.Errorf("%v %+v, want %q", f, v, want)
	}
	if f == nil {
		(&opened{o.world, wire.ShellAt{Session: o.at.Session, ID: v.ID}, v}).shut()
	}
}

// A Session has one shell at a time, whoever opens; an ended one never comes back under its id.
// Covers: SHL-02, SHL-14, SHL-18
func TestOneShellForASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	o := w.open(wire.ShellOpenIn{})
	v, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: sessionA})
	if kindOf(f) != fault.ShellAlreadyOpen || f.Details["shell_id"] != o.at.ID || f.ExecutionState != "not_started" {
		t.Errorf("%+v %v", v, f)
	}
	pid := o.prints("echo $$")
	if out := o.shut(); out.AlreadyClosed || out.Shell.State != wire.ShellClosed || out.Shell.Reason != wire.ShellByCaller || out.Shell.Ended == "" {
		t.Errorf("%+v", out)
	}
	w.nothingLeft(pid)
	again := w.open(wire.ShellOpenIn{})
	if again.at.ID == o.at.ID {
		t.Error("the id was used again")
	}
	for range 2 {
		if out := o.shut(); !out.AlreadyClosed || out.Shell.State != wire.ShellClosed || out.Shell.ID != o.at.ID {
			t.Errorf("%+v", out)
		}
	}
	o.refused(fault.ShellNotFound)
	if again.prints("echo here") != "here\n" || o.state().State != wire.ShellClosed {
		t.Error("the old id reached the new shell")
	}
	for name, at := range map[string]wire.ShellAt{"another Session": {Session: sessionB, ID: again.at.ID}, "no id": {Session: sessionA, ID: event.NewShellID()}} {
		if _, f := w.status(context.Background(), w.p, at); kindOf(f) != fault.ShellNotFound {
			t.Errorf("%s: %v", name, f)
		}
		if _, f := w.close(context.Background(), w.p, at); kindOf(f) != fault.ShellNotFound {
			t.Errorf("%s: %v", name, f)
		}
		if _, f := w.execute(context.Background(), w.p, wire.ShellExecuteIn{ShellAt: at, Command: "true"}); kindOf(f) != fault.ShellNotFound {
			t.Errorf("%s: %v", name, f)
		}
	}
	other := t.TempDir()
	p, err := w.r.AddProject(other)
	must(t, err)
	if _, f := w.status(context.Background(), p, again.at); kindOf(f) != fault.ShellNotFound {
		t.Errorf("another Project: %v", f)
	}
}

// Of many that open at once one has its shell.
// Covers: SHL-02
func TestARaceOfOpensHasOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	var won atomic.Int32
	var done sync.WaitGroup
	for range 6 {
		done.Go(func() {
			_, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: sessionA})
			if f == nil {
				won.Add(1)
			} else if f.Kind != fault.ShellAlreadyOpen {
				t.Error(f)
			}
		})
	}
	done.Wait()
	if won.Load() != 1 || len(w.live) != 1 {
		t.Errorf("%d winners, %d shells", won.Load(), len(w.live))
	}
}

// The close of a Session wins against an open in flight, whichever comes first: no shell is left,
// and none comes later.
// Covers: SHL-19, SHL-20
func TestAClosedSessionHasNoShell(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for i := range 4 {
		session := sessionN(i)
		opening := make(chan *fault.Error)
		go func() {
			_, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: session})
			opening <- f
		}()
		time.Sleep(time.Duration(i) * time.Millisecond)
		w.Release(session)
		if f := <-opening; f != nil && f.Kind != fault.ShellSessionInactive {
			t.Errorf("%v", f)
		}
		w.mu.Lock()
		left := w.live[session]
		w.mu.Unlock()
		if left != nil {
			t.Errorf("%d: a shell survived the close", i)
		}
		if _, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: session}); kindOf(f) != fault.ShellSessionInactive || f.ExecutionState != "not_started" {
			t.Errorf("after the close: %v", f)
		}
	}
	// With a script that takes its time the close meets it for sure.
	w.write("[shell]\nprofile = \"slow\"\n[shell.profiles.slow]\ninit_script = \"sleep 30\"\n")
	opening := make(chan *fault.Error)
	go func() {
		_, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: sessionA})
		opening <- f
	}()
	for len(w.living()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if n := w.Release(sessionA); n != 1 {
		t.Errorf("%d were ended", n)
	}
	if f := <-opening; kindOf(f) != fault.ShellSessionInactive {
		t.Errorf("%v", f)
	}
	w.nothingLeft()
}

func (w *world) living() (out []*record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.live {
		out = append(out, r)
	}
	return out
}

// A second command while one runs is refused, and does nothing; the first one does not notice.
// Covers: SHL-21
func TestCommandsComeOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	o := w.open(wire.ShellOpenIn{})
	first := make(chan wire.ShellExecuteOut)
	go func() {
		out, _ := o.run("touch began; while [ ! -e go ]; do sleep 0.01; done; echo first", 20*time.Second)
		first <- out
	}()
	for !o.there("began") {
		time.Sleep(time.Millisecond)
	}
	if v := o.state(); !v.Busy {
		t.Errorf("%+v", v)
	}
	for range 3 {
		o.refused(fault.ShellBusy)
	}
	must(t, os.WriteFile(filepath.Join(w.root, "go"), nil, 0o600))
	if out := <-first; !out.Completed || out.Stdout.Text != "first\n" {
		t.Errorf("%+v", out)
	}
	if v := o.state(); v.Busy || v.Commands != 1 {
		t.Errorf("%+v", v)
	}
}

func (w *world) there(name string) bool {
	_, err := os.Stat(filepath.Join(w.root, name))
	return err == nil
}

// Whatever ends a shell, its whole tree goes with it, also while a command runs: nothing is left
// of the process, of what it started, of its group or of its pipes.
// Covers: SHL-19, SHL-31
func TestEachTriggerReleasesTheShell(t *testing.T) {
	kill := func(o *opened) { _, _ = o.run("kill -9 $$", time.Second) }
	for name, c := range map[string]struct {
		trigger func(*opened)
		state   wire.ShellState
		reason  string
		next    fault.Kind
	}{
		"close":      {func(o *opened) { o.shut() }, wire.ShellClosed, wire.ShellByCaller, fault.ShellNotFound},
		"session":    {func(o *opened) { o.Release(sessionA) }, wire.ShellClosed, wire.ShellBySession, fault.ShellNotFound},
		"project":    {func(o *opened) { must(o.t, o.r.RemoveProject(o.p.ID)) }, wire.ShellClosed, wire.ShellByProject, fault.ShellNotFound},
		"disconnect": {func(o *opened) { o.Disconnected() }, wire.ShellLost, wire.ShellByDisconnect, fault.ShellResetRequired},
		"shutdown":   {func(o *opened) { o.Close() }, wire.ShellClosed, wire.ShellByShutdown, fault.ShellNotFound},
		"exit":       {func(o *opened) { _, _ = o.run("exit 3", time.Second) }, wire.ShellExited, wire.ShellByExit, fault.ShellProcessExited},
		"killed":     {kill, wire.ShellExited, wire.ShellByExit, fault.ShellProcessExited},
		"idle":       {func(o *opened) { o.waitFor(wire.ShellClosed) }, wire.ShellClosed, wire.ShellByIdle, fault.ShellNotFound},
	} {
		for _, busy := range []bool{false, true} {
			if busy && (name == "exit" || name == "killed" || name == "idle") {
				continue
			}
			t.Run(fmt.Sprint(name, busy), func(t *testing.T) {
				t.Parallel()
				options := Options{}
				if name == "idle" {
					options.Idle = 300 * time.Millisecond
				}
				o := newWorld(t, options).open(wire.ShellOpenIn{})
				pids := strings.Fields(o.prints(`sleep 63 >/dev/null & a=$!; setsid sleep 63 >/dev/null & echo; echo $$ $a $!`))
				running := make(chan wire.ShellExecuteOut, 1)
				if busy {
					go func() {
						out, _ := o.run("touch began; sleep 63", 20*time.Second)
						running <- out
					}()
					for !o.there("began") {
						time.Sleep(time.Millisecond)
					}
				}
				c.trigger(o)
				if busy {
					if out := <-running; out.Completed || out.TimedOut || out.Shell.State != c.state {
						t.Errorf("%+v", out)
					}
				}
				v := o.state()
				if v.State != c.state || v.Reason != c.reason || v.Ended == "" {
					t.Errorf("%+v", v)
				}
				o.refused(c.next)
				o.nothingLeft(pids...)
				if notes, _ := os.ReadDir(o.o.Dir); len(notes) > 1 {
					t.Errorf("notes are left: %v", notes)
				}
			})
		}
	}
}

// exit ends the shell, and is told as that with its status.
// Covers: SHL-31
func TestExitEndsTheShell(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, o *opened) {
		out, f := o.run("trap 'echo bye' EXIT; echo last; exit 3", 5*time.Second)
		if f != nil || !out.Exited || out.Reset || !out.Completed || out.ExitCode == nil || *out.ExitCode != 3 || !strings.HasPrefix(out.Stdout.Text, "last\n") ||
			out.Shell.State != wire.ShellExited || *out.Shell.ExitCode != 3 {
			t.Errorf("%+v %v", out, f)
		}
		if out := o.shut(); !out.AlreadyClosed || out.Shell.State != wire.ShellExited {
			t.Errorf("%+v", out)
		}
		for _, c := range []string{"set -e; false; echo no", "exec sh -c 'exit 9'", "kill -KILL $$"} {
			next := w.open(wire.ShellOpenIn{Shell: o.view.Dialect})
			out, f := next.run(c, 5*time.Second)
			if f != nil || !out.Exited || out.Shell.State != wire.ShellExited || out.Stdout.Text != "" {
				t.Errorf("%q: %+v %v", c, out, f)
			}
			if killed := strings.HasPrefix(c, "kill"); killed != (out.ExitCode == nil) {
				t.Errorf("%q: %+v", c, out)
			}
		}
	})
}

// A shell that ends while nothing runs in it is seen to have ended.
func TestAnIdleShellThatDiesIsSeen(t *testing.T) {
	t.Parallel()
	o := newWorld(t, Options{}).open(wire.ShellOpenIn{})
	o.prints("(sleep 0.2; kill -KILL $$) &")
	if v := o.waitFor(wire.ShellExited); v.Reason != wire.ShellByExit {
		t.Errorf("%+v", v)
	}
	o.refused(fault.ShellProcessExited)
	o.refusedOpen("")
}

// A Runner has so many shells, and no more; use keeps one from being idle.
// Covers: SHL-19
func TestShellsAreBoundedInNumberAndTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Max: 2, Idle: 400 * time.Millisecond})
	a := w.open(wire.ShellOpenIn{Session: sessionN(1)})
	b := w.open(wire.ShellOpenIn{Session: sessionN(2)})
	if _, f := w.openLocal(context.Background(), w.p, wire.ShellOpenIn{Session: sessionN(3)}); kindOf(f) != fault.ShellLimitReached || f.ExecutionState != "not_started" {
		t.Errorf("%v", f)
	}
	for range 4 {
		time.Sleep(200 * time.Millisecond)
		a.prints("true")
	}
	a.prints("sleep 0.6") // and so does a command that takes longer than that
	if v := a.state(); v.State != wire.ShellRunning {
		t.Errorf("%+v", v)
	}
	if v := b.waitFor(wire.ShellClosed); v.Reason != wire.ShellByIdle {
		t.Errorf("%+v", v)
	}
	w.open(wire.ShellOpenIn{Session: sessionN(3)})
}

// A Runner that was killed left its shells to the next life, which ends them; none is taken up
// again.
// Covers: SHL-27
func TestShellsEndWithTheRunnersLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	o := w.open(wire.ShellOpenIn{})
	pids := strings.Fields(o.prints(`sleep 64 >/dev/null & a=$!; setsid sleep 64 >/dev/null & echo; echo $$ $a $!`))
	dir := t.TempDir() // what the killed one had noted
	notes, err := os.ReadDir(w.o.Dir)
	must(t, err)
	for _, n := range notes {
		if n.Name() == "pipes" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(w.o.Dir, n.Name()))
		must(t, err)
		if strings.Contains(string(raw), "sleep") {
			t.Errorf("a note tells of a command: %s", raw)
		}
		must(t, os.WriteFile(filepath.Join(dir, n.Name()), raw, 0o600))
	}
	old := filepath.Join(t.TempDir(), pipesPrefix+"old")
	must(t, os.Mkdir(old, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "pipes"), []byte(old), 0o600))
	next := New(Options{Dir: dir})
	defer next.Close()
	w.nothingLeft(pids...)
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("notes are left: %v", left)
	}
	if _, err := os.Stat(old); err == nil {
		t.Error("the pipes of the dead life are left")
	}
	if _, f := next.status(context.Background(), w.p, o.at); kindOf(f) != fault.ShellNotFound {
		t.Errorf("%v", f)
	}
}
