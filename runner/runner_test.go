package runner

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// upstream is a server that grants what a test lets it, and loses acknowledgements on demand.
type upstream struct {
	mu       sync.Mutex
	claims   []wire.Claim
	results  []wire.Result
	deny     bool
	unheard  int // acknowledgements that get lost
	onClaim  func()
	settled  chan wire.Result
	claimErr error
}

func newUpstream() *upstream { return &upstream{settled: make(chan wire.Result, 1000)} }

func (u *upstream) Claim(_ context.Context, c wire.Claim) (wire.ClaimReply, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.claims = append(u.claims, c)
	if u.onClaim != nil {
		u.onClaim()
	}
	return wire.ClaimReply{Granted: !u.deny, RemainingMS: 3_600_000}, u.claimErr
}

func (u *upstream) Started(wire.Started) {}

func (u *upstream) Result(_ context.Context, r wire.Result) (wire.Ack, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.results = append(u.results, r)
	if u.unheard > 0 {
		u.unheard--
		return wire.Ack{}, errors.New("lost")
	}
	u.settled <- r
	return wire.Ack{OK: true}, nil
}

// rig is a Runner with one Project and no real link.
type rig struct {
	*Runner
	t    *testing.T
	up   *upstream
	p    *Project
	dir  string
	link context.Context
}

func newRig(t *testing.T, change ...func(*Options)) *rig {
	t.Helper()
	return openRig(t, t.TempDir(), t.TempDir(), change...)
}

func openRig(t *testing.T, dir, root string, change ...func(*Options)) *rig {
	t.Helper()
	o := Options{Dir: dir, Client: "c1", Build: "test"}
	for _, c := range change {
		c(&o)
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err, fault.As(err).Unwrap())
	}
	p, err := r.AddProject(root)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{Runner: r, t: t, up: newUpstream(), p: p, dir: dir, link: context.Background()}
	r.link = g.up
	t.Cleanup(func() { _ = r.Close() })
	return g
}

func (g *rig) make(op wire.Op, in any) wire.Offer {
	g.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		g.t.Fatal(err)
	}
	o := wire.Offer{ID: event.NewExecutionID(), Op: op, Body: body, Bounds: wire.Bounds{TimeoutMS: 20_000},
		Fence: wire.Fence{Client: "c1", Instance: g.instance, Project: g.p.ID, Root: g.p.Fingerprint}}
	o.Digest = wire.Digest([]byte("k"), o)
	return o
}

// do offers and waits for the acknowledged end.
func (g *rig) do(o wire.Offer) wire.Result {
	g.t.Helper()
	if reply := g.offer(g.link, o); !reply.Accepted {
		g.t.Fatalf("refused: %+v", reply)
	}
	return g.end()
}

func (g *rig) end() wire.Result {
	g.t.Helper()
	select {
	case r := <-g.up.settled:
		return r
	case <-time.After(30 * time.Second):
		g.t.Fatal("no end came")
		return wire.Result{}
	}
}

func (g *rig) state(id event.ExecutionID) wire.JournalState {
	e, ok := g.journal.find(id)
	if !ok {
		return wire.JAbsent
	}
	return e.state
}

// until waits for a journal state.
func (g *rig) until(id event.ExecutionID, s wire.JournalState) {
	g.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); g.state(id) != s; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("the journal says %q, not %q", g.state(id), s)
		}
	}
}

func (g *rig) path(name string) string { return filepath.Join(g.p.Path, name) }

func appendMark(name string) wire.ProcessIn {
	return wire.ProcessIn{Command: "echo ran >>" + name, Shell: "sh"}
}

func (g *rig) marks(name string) int {
	b, _ := os.ReadFile(g.path(name))
	return strings.Count(string(b), "ran")
}

// An offer delivered again, at any time, starts nothing and answers the same.
//
// Covers: EXE-38
func TestAnIDStartsAtMostOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.make(wire.OpShell, appendMark("marker"))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { g.offer(g.link, o) })
	}
	group.Wait()
	first := g.end()
	g.until(o.ID, wire.JSettled)
	again := g.offer(g.link, o)
	if again.Known == nil || again.State != wire.JSettled || *again.Known.Process.ExitCode != *first.Process.ExitCode {
		t.Errorf("the second delivery answers %+v", again)
	}
	if n := g.marks("marker"); n != 1 || len(g.up.claims) != 1 {
		t.Errorf("it ran %d times for %d claims", n, len(g.up.claims))
	}
	other := g.make(wire.OpShell, appendMark("other"))
	other.ID = o.ID
	if reply := g.offer(g.link, other); reply.Accepted || fault.KindOf(reply.Fault) != fault.ExecutionConflict {
		t.Errorf("the id with another command answers %+v", reply)
	}
	if g.marks("other") != 0 {
		t.Error("the other command ran")
	}
}

// The Runner believes nothing that it can check: a forged or mistaken fence, op or bound is
// refused, whatever the server said.
//
// Covers: AUTH-19, EXE-19, EXE-22, EXE-37
func TestTheRunnerChecksForItself(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	shell := appendMark("marker")
	for name, c := range map[string]struct {
		change func(*wire.Offer)
		in     any
		op     wire.Op
		reason string
	}{
		"client":      {change: func(o *wire.Offer) { o.Fence.Client = "c2" }, reason: "fence_instance"},
		"instance":    {change: func(o *wire.Offer) { o.Fence.Instance = event.NewInstanceID() }, reason: "fence_instance"},
		"root":        {change: func(o *wire.Offer) { o.Fence.Root = strings.Repeat("0", 64) }, reason: "fence_root"},
		"project":     {change: func(o *wire.Offer) { o.Fence.Project = "x-00000000" }},
		"unknown op":  {change: func(o *wire.Offer) { o.Op = "nothing" }, reason: "unknown_op"},
		"a read":      {change: func(o *wire.Offer) { o.Op = wire.OpObserveJobs }, reason: "unknown_op"},
		"no timeout":  {change: func(o *wire.Offer) { o.Bounds.TimeoutMS = 0 }, reason: "timeout"},
		"too long":    {change: func(o *wire.Offer) { o.Bounds.TimeoutMS = 3_600_001 }, reason: "timeout"},
		"not an id":   {change: func(o *wire.Offer) { o.ID = "x" }, reason: "malformed"},
		"wire form":   {in: wire.ProcessIn{Command: strings.Repeat("x", 64<<10+1), Shell: "sh"}, reason: "too_large"},
		"shell":       {in: wire.ProcessIn{Command: "true", Shell: "zsh"}, reason: "malformed"},
		"no command":  {in: wire.ProcessIn{Shell: "sh"}, reason: "malformed"},
		"language":    {op: wire.OpScript, in: wire.ProcessIn{Script: "x", Language: "perl"}, reason: "malformed"},
		"script":      {op: wire.OpScript, in: wire.ProcessIn{Script: strings.Repeat("x", 512<<10+1), Language: "sh"}, reason: "too_large"},
		"executable":  {op: wire.OpProcess, in: wire.ProcessIn{Executable: strings.Repeat("x", 1025)}, reason: "too_large"},
		"257 args":    {op: wire.OpProcess, in: wire.ProcessIn{Executable: "true", Args: make([]string, 257)}, reason: "too_large"},
		"an argument": {op: wire.OpProcess, in: wire.ProcessIn{Executable: "true", Args: []string{strings.Repeat("x", 8193)}}, reason: "too_large"},
		"all args":    {op: wire.OpProcess, in: wire.ProcessIn{Executable: "true", Args: []string{strings.Repeat("x", 8000), strings.Repeat("x", 8000), "x"}}, reason: "too_large"},
		"stdin":       {op: wire.OpProcess, in: wire.ProcessIn{Executable: "true", Stdin: strings.Repeat("x", 64<<10+1)}, reason: "too_large"},
		"cwd":         {op: wire.OpProcess, in: wire.ProcessIn{Executable: "true", Cwd: strings.Repeat("x", 1025)}, reason: "too_large"},
		"NUL":         {op: wire.OpProcess, in: wire.ProcessIn{Executable: "true", Args: []string{"a\x00b"}}, reason: "nul"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.op == "" {
				c.op = wire.OpShell
			}
			if c.in == nil {
				c.in = shell
			}
			o := g.make(c.op, c.in)
			if c.change != nil {
				c.change(&o)
			}
			reply := g.offer(g.link, o)
			if reply.Accepted || reply.Fault == nil || reply.Fault.Reason != c.reason && c.reason != "" {
				t.Fatalf("answered %+v", reply.Fault)
			}
			if o.ID.Valid() && (g.state(o.ID) != wire.JRefused || reply.Fault.ExecutionState != string(event.NotStarted)) {
				t.Errorf("the journal says %q", g.state(o.ID))
			}
		})
	}
	if g.marks("marker") != 0 || len(g.up.claims) != 0 {
		t.Error("something was claimed or ran")
	}
	read := wire.Read{Fence: wire.Fence{Client: "c1", Instance: g.instance, Project: g.p.ID, Root: "x"}, Op: wire.OpObserveJobs}
	if reply := g.read(t.Context(), read); reply.Fault == nil || reply.Fault.Reason != "fence_root" {
		t.Errorf("a read with a wrong fence answers %+v", reply)
	}
}

// Nothing starts without a grant, without a fresh grant, or after it was called off.
func TestNoGrantNoStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(g *rig, o wire.Offer){
		"denied": func(g *rig, _ wire.Offer) { g.up.deny = true },
		"lost":   func(g *rig, _ wire.Offer) { g.up.claimErr = errors.New("lost") },
		"asleep for an hour": func(g *rig, _ wire.Offer) {
			var slept time.Duration
			g.bootTime = func() time.Duration { return slept }
			g.up.onClaim = func() { slept = time.Hour }
		},
		"called off": func(g *rig, o wire.Offer) {
			g.up.onClaim = func() { g.cancel(wire.Cancel{ID: o.ID}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			o := g.make(wire.OpShell, appendMark("marker"))
			c(g, o)
			if r := g.do(o); r.State != wire.JNever {
				t.Errorf("it ended %+v", r)
			}
			if g.state(o.ID) != wire.JNever || g.marks("marker") != 0 {
				t.Errorf("the journal says %q, it ran %d times", g.state(o.ID), g.marks("marker"))
			}
			if reply := g.offer(g.link, o); reply.Known == nil || reply.Known.State != wire.JNever {
				t.Errorf("offered again: %+v", reply)
			}
		})
	}
}

// A query about an id that is not there closes it before it says so.
func TestAbsenceIsMadeTrue(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.make(wire.OpShell, appendMark("marker"))
	q := g.query(wire.Query{ID: o.ID})
	if q.State != wire.JAbsent || q.Generation != g.journal.life.Generation || q.Boot == "" {
		t.Fatalf("%+v", q)
	}
	if reply := g.offer(g.link, o); reply.Known == nil || reply.State != wire.JNever {
		t.Errorf("the late offer answers %+v", reply)
	}
	if g.marks("marker") != 0 || len(g.up.claims) != 0 {
		t.Error("it ran or was claimed")
	}
	if q := g.query(wire.Query{}); q.State != wire.JAbsent || len(g.journal.entries) != 1 {
		t.Errorf("a question about no id answers %+v", q)
	}
}

// A result is told until it is acknowledged, and no longer.
func TestResultsAreRepeated(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.up.unheard = 3
	o := g.make(wire.OpShell, appendMark("marker"))
	g.do(o)
	g.until(o.ID, wire.JSettled)
	if n := len(g.up.results); n != 4 || g.marks("marker") != 1 {
		t.Errorf("told %d times, ran %d times", n, g.marks("marker"))
	}
}

func TestEffectsAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var ids []event.ExecutionID
	for range maxRunning {
		o := g.make(wire.OpProcess, wire.ProcessIn{Executable: "sleep", Args: []string{"60"}})
		if reply := g.offer(g.link, o); !reply.Accepted {
			t.Fatalf("%+v", reply.Fault)
		}
		ids = append(ids, o.ID)
	}
	reply := g.offer(g.link, g.make(wire.OpShell, appendMark("marker")))
	if reply.Accepted || fault.KindOf(reply.Fault) != fault.TooManyCalls {
		t.Errorf("one more answers %+v", reply)
	}
	for _, id := range ids {
		g.cancel(wire.Cancel{ID: id})
	}
	for range ids {
		g.end()
	}
	g.do(g.make(wire.OpShell, appendMark("marker")))
	if g.marks("marker") != 1 {
		t.Error("no place became free")
	}
}
