package ssh

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal(what)
}

func (r *Resources) connectionsHeld() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// One Session, one resource and one generation of its settings share one connection, however
// many ask at once; nothing else shares it. A resource is used under a Session alone.
// Covers: SSH-03, SSH-11
func TestConnectionBelongsToItsTriple(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.write(w.resource("build", ""), w.resource("twin", ""))
	var all sync.WaitGroup
	for range 5 {
		for _, in := range []struct {
			name    string
			session event.SessionID
		}{{"build", sessionA}, {"build", sessionB}, {"twin", sessionA}} {
			all.Go(func() {
				out, f := w.runIn(in.name, in.session, "", "echo in", 20*time.Second)
				if f != nil || out.Stdout.Text != "in\n" {
					t.Errorf("%+v: %+v %v", in, out, f)
				}
			})
		}
	}
	all.Wait()
	if w.Connections() != 3 || w.Commands() != 15 {
		t.Errorf("%d connections for 3 triples, %d commands", w.Connections(), w.Commands())
	}
	for _, bad := range []event.SessionID{"", "wc_sess_1", "~s1"} {
		if _, f := w.r.Open(context.Background(), bad, "build"); f == nil || f.Kind != fault.SSHSessionRequired || f.ExecutionState != "not_started" {
			t.Errorf("%q: %v", bad, f)
		}
	}
}

// Settings that change mean the commands prepared after it: what runs goes on where it is, once.
// A resource that is gone fails before anything starts, and its connections end.
// Covers: SSH-06, SSH-08
func TestSettingsChangeWhileACommandRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.write(w.resource("build", ""), w.resource("other", ""))
	type end struct {
		out wire.ProcessOutcome
		f   *fault.Error
	}
	c, f := w.r.Open(context.Background(), sessionA, "build")
	if f != nil {
		t.Fatal(f)
	}
	if _, f := w.runIn("other", sessionA, "", "true", 10*time.Second); f != nil {
		t.Fatal(f)
	}
	cmd := command("", "echo x >> "+shellQuote(w.marker())+"; while [ ! -e "+shellQuote(w.marker()+".go")+" ]; do sleep 0.05; done; echo went on")
	started, ended := make(chan struct{}), make(chan end, 1)
	cmd.Started = func() { close(started) }
	go func() {
		out, f := c.Run(context.Background(), cmd, 30*time.Second)
		ended <- end{out, f}
	}()
	<-started

	w.write(w.resource("build", `default_cwd = "/"`), w.resource("other", ""))
	if got := w.prints("pwd"); got != "/\n" || w.Connections() != 3 {
		t.Errorf("after the change: %q, %d connections", got, w.Connections())
	}
	w.write(w.resource("other", ""))
	if f := w.refused("build"); f.Kind != fault.SSHResourceNotFound || f.Field != "resource" {
		t.Errorf("%+v", f)
	}
	eventually(t, "the connections of a resource that is gone stay", func() bool { return w.r.connectionsHeld() == 2 }) // the running one, other
	if _, f := w.runIn("other", sessionA, "", "true", 10*time.Second); f != nil || w.Connections() != 3 {
		t.Errorf("another resource was touched: %v, %d connections", f, w.Connections())
	}
	must(t, os.WriteFile(w.marker()+".go", nil, 0o600))
	if e := <-ended; e.f != nil || e.out.Stdout.Text != "went on\n" || w.marks() != 1 {
		t.Errorf("the running command: %+v %v, ran %d times", e.out, e.f, w.marks())
	}
	eventually(t, "its connection outlives it", func() bool { return w.r.connectionsHeld() == 1 })
}

// A connection without commands ends after a while; one that answers no more is noticed, and its
// command's outcome is unknown.
// Covers: SSH-13, SSH-09
func TestIdleAndDeadConnectionsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Idle: 300 * time.Millisecond, Keepalive: 250 * time.Millisecond})
	w.prints("true")
	w.prints("sleep 0.6; true") // longer than the idle time, which does not count while it runs
	if w.Connections() != 1 {
		t.Errorf("%d connections", w.Connections())
	}
	eventually(t, "an idle connection stays", func() bool { return w.r.connectionsHeld() == 0 })
	c, f := w.r.Open(context.Background(), sessionA, "build")
	if f != nil {
		t.Fatal(f)
	}
	cmd := command("", "sleep 3")
	cmd.Started = func() { w.Hold(true) }
	began := time.Now()
	out, f := c.Run(context.Background(), cmd, 30*time.Second)
	if f == nil || f.Kind != fault.SSHTransportFailed || out.Completed {
		t.Errorf("%+v %v", out, f)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("a dead link was noticed after %v", d)
	}
	w.Hold(false)
}

// A host that holds everything back cannot keep a command beyond its limit.
func TestHeldLinkEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	c, f := w.r.Open(context.Background(), sessionA, "build")
	if f != nil {
		t.Fatal(f)
	}
	w.Hold(true)
	began := time.Now()
	out, f := c.Run(context.Background(), command("", "true"), time.Second)
	if f != nil || !out.TimedOut || out.RemoteProcess != RemoteUnknown || time.Since(began) > 6*time.Second {
		t.Errorf("%+v %v after %v", out, f, time.Since(began))
	}
	w.Hold(false)
	if w.prints("echo on") != "on\n" || w.Connections() != 2 {
		t.Errorf("a connection that hung was used again: %d", w.Connections())
	}
}

// After Close nothing is opened and nothing stays.
func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	w.prints("true")
	w.r.Close()
	if f := w.refused("build"); f.Kind != fault.ShuttingDown {
		t.Errorf("%+v", f)
	}
	eventually(t, "a connection stays", func() bool { return w.r.connectionsHeld() == 0 })
}
