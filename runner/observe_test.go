package runner

import (
	"os"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

func (g *rig) observe(id event.ExecutionID, token string, lines int, wait time.Duration) (wire.JobView, string) {
	g.t.Helper()
	out, err := g.observeJobs(g.t.Context(), g.p, wire.ObserveJobsIn{Items: []wire.ObserveItem{{ID: string(id), Token: token}},
		TailLines: lines, WaitMS: wait.Milliseconds()})
	if err != nil || len(out.Items) != 1 {
		g.t.Fatalf("%+v %v", out, err)
	}
	return out.Items[0], out.WaitOutcome
}

// A Job is followed from a baseline by deltas to its end, waiting only where nothing is new.
func TestObserveAJob(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.make(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "printf 'a\\nb\\nc\\n'; printf 'é' >&2; while [ ! -e go ]; do sleep 0.02; done; echo d"})
	g.offer(g.link, o)
	g.until(o.ID, wire.JRunning)
	var v wire.JobView
	for deadline := time.Now().Add(10 * time.Second); v.StdoutDelta != "b\nc\n" || v.StderrDelta != "é"; {
		if v, _ = g.observe(o.ID, "", 2, 0); time.Now().After(deadline) {
			t.Fatalf("baseline %+v", v)
		}
	}
	if !v.Known || !v.Reset || v.Terminal || v.State != wire.JRunning {
		t.Errorf("baseline %+v", v)
	}
	if same, outcome := g.observe(o.ID, v.Token, 2, 50*time.Millisecond); outcome != "timeout" || same.Reset || same.StdoutDelta != "" {
		t.Errorf("nothing new: %s %+v", outcome, same)
	}
	if err := os.WriteFile(g.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := ""
	for range 20 {
		var outcome string
		if v, outcome = g.observe(o.ID, v.Token, 2, 20*time.Second); outcome != "changed" || v.Reset {
			t.Fatalf("%s %+v", outcome, v)
		}
		if seen += v.StdoutDelta; v.Terminal {
			break
		}
	}
	if seen != "d\n" || !v.Terminal || v.Outcome == nil || *v.Outcome.ExitCode != 0 {
		t.Errorf("saw %q, then %+v", seen, v)
	}
	if _, outcome := g.observe(o.ID, v.Token, 2, time.Minute); outcome != "changed" {
		t.Errorf("an ended Job lets an observer wait: %s", outcome)
	}
	if v, _ := g.observe(event.NewExecutionID(), "", 2, time.Minute); v.Known {
		t.Errorf("an unknown id answers %+v", v)
	}
	other := &Project{ID: "other-00000000"}
	out, err := g.observeJobs(t.Context(), other, wire.ObserveJobsIn{Items: []wire.ObserveItem{{ID: string(o.ID)}}})
	if err != nil || out.Items[0].Known {
		t.Errorf("another Project sees %+v %v", out, err)
	}
}

// A token that lost its place, is of another life, or is forged gives a fresh tail and says so.
func TestObserverTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.make(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "head -c 300000 /dev/zero | tr '\\0' x; echo; echo end"})
	g.do(o)
	foreign := token{instance: event.NewInstanceID(), stdout: 300_000}.String()
	lost := token{instance: g.instance, stdout: 5}.String()
	beyond := token{instance: g.instance, stdout: 1 << 40}.String()
	negative := token{instance: g.instance, stdout: -7}.String()
	for _, tok := range []string{foreign, lost, beyond, negative, "", "%%%", "bm90IGEgdG9rZW4", strings.Repeat("A", 10_000)} {
		v, _ := g.observe(o.ID, tok, 1, 0)
		if !v.Reset || v.StdoutDelta != "end\n" {
			t.Errorf("token %.20q: reset %v, %d bytes", tok, v.Reset, len(v.StdoutDelta))
		}
	}
	v, _ := g.observe(o.ID, "", 200, 0)
	if len(v.StdoutDelta) > observedChars/2 {
		t.Errorf("%d bytes at once", len(v.StdoutDelta))
	}
}

// Ended executions are let go of at the bound, running ones never.
func TestEndedExecutionsAreBounded(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	sleeper := g.make(wire.OpProcess, wire.ProcessIn{Executable: "sleep", Args: []string{"60"}})
	g.offer(g.link, sleeper)
	for range keptEnded + 5 {
		e := &execution{offer: wire.Offer{ID: event.NewExecutionID()}, stop: func(error) {}, done: make(chan struct{})}
		g.mu.Lock()
		g.execs[e.offer.ID] = e
		g.mu.Unlock()
		g.finish(e, wire.Result{State: wire.JTerminal})
	}
	if len(g.execs) != keptEnded+1 || g.execs[sleeper.ID] == nil {
		t.Errorf("%d are kept", len(g.execs))
	}
	g.cancel(wire.Cancel{ID: sleeper.ID})
	g.end()
}

// Output that arrives while an observer begins to wait is seen by it: either at once, or by the
// word that something changed.
func TestNoOutputIsMissedWhileAWaitBegins(t *testing.T) {
	t.Parallel()
	for n := range 20_000 {
		e := &execution{stdout: proc.NewTail(64), stderr: proc.NewTail(64)}
		go func() {
			e.stdout.Write([]byte("x"))
			e.note()
		}()
		changed, seen := e.watch(token{})
		if seen {
			continue
		}
		select {
		case <-changed:
		case <-time.After(5 * time.Second):
			t.Fatalf("round %d: output is there, and nobody told", n)
		}
	}
}

// The beginning of a character is no news: an observer waits for the rest instead of being woken
// for nothing, again and again.
func TestHalfACharacterIsNoNews(t *testing.T) {
	e := &execution{stdout: proc.NewTail(64), stderr: proc.NewTail(64)}
	e.stdout.Write([]byte("\xc3"))
	changed, seen := e.watch(token{})
	if seen {
		t.Fatal("half a character is told")
	}
	e.stdout.Write([]byte("\xa9"))
	e.note()
	select {
	case <-changed:
	case <-time.After(5 * time.Second):
		t.Fatal("nobody told")
	}
	if _, seen := e.watch(token{}); !seen {
		t.Error("the whole character is no news")
	}
	if _, seen := e.watch(token{stdout: 2}); seen {
		t.Error("what was read is news")
	}
	if _, seen := e.watch(token{stdout: 99}); !seen {
		t.Error("a place that was never reached is not told of")
	}
}
