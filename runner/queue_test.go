package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// job is an offer of a shell command that waits for a slot.
func (g *rig) job(command string) wire.Offer {
	g.t.Helper()
	o := g.make(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: command})
	o.Bounds.Job = true
	return o
}

func (g *rig) accept(o wire.Offer) {
	g.t.Helper()
	if reply := g.offer(g.link, o); !reply.Accepted {
		g.t.Fatalf("refused: %+v", reply.Fault)
	}
}

// lines waits until a file has so many lines.
func (g *rig) lines(name string, n int) {
	g.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		b, _ := os.ReadFile(g.path(name))
		if strings.Count(string(b), "\n") >= n {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("%s has %q, not %d lines", name, b, n)
		}
	}
}

func (g *rig) touch(name string) {
	g.t.Helper()
	if err := os.WriteFile(g.path(name), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
}

func (g *rig) stateOf(id event.ExecutionID) wire.JobView { return g.glance(g.p, string(id)) }

// At most as many Jobs run as there are slots; the others wait in the order of their acceptance,
// without a claim. A call that is waited for takes no slot and passes them all.
func TestJobsTakeTurns(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Jobs = 2 })
	var jobs []wire.Offer
	for n := range 5 {
		o := g.job(fmt.Sprintf("echo %d >>order; while [ ! -e go%d ]; do sleep 0.01; done", n, n))
		jobs = append(jobs, o)
		g.accept(o)
		g.lines("order", min(n+1, 2))
	}
	for _, o := range jobs[:2] {
		g.until(o.ID, wire.JRunning)
	}
	for n, o := range jobs[2:] {
		if v := g.stateOf(o.ID); !v.Waiting || v.Ahead != n || v.State != wire.JAccepted || v.StartedAt != "" || v.AcceptedAt == "" {
			t.Errorf("job %d: %+v", n+2, v)
		}
	}
	if n := *g.hello().Slots; n != (wire.JobSlots{Limit: 2, Running: 2, Queued: 3}) || len(g.up.claims) != 2 {
		t.Errorf("%+v, %d claims", n, len(g.up.claims))
	}
	if r := g.do(g.make(wire.OpShell, appendMark("marker"))); r.State != wire.JTerminal {
		t.Errorf("a call had to wait: %+v", r)
	}
	for n := range jobs {
		g.touch(fmt.Sprintf("go%d", n))
		if r := g.end(); r.ID != jobs[n].ID || *r.Process.ExitCode != 0 {
			t.Errorf("job %d ended as %+v", n, r)
		}
		g.lines("order", min(n+3, len(jobs)))
	}
	if b, _ := os.ReadFile(g.path("order")); string(b) != "0\n1\n2\n3\n4\n" {
		t.Errorf("they started as %q", b)
	}
}

// A Job is stopped in every state: one that waits is proven not to have started and leaves its
// place, one that runs is ended, one that has ended stays as it was.
func TestAJobIsStoppedInEveryState(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Jobs = 1 })
	running, waiting, last := g.job("echo ran >>running; sleep 60"), g.job("echo ran >>waiting"), g.job("echo ran >>last")
	for _, o := range []wire.Offer{running, waiting, last} {
		g.accept(o)
	}
	g.until(running.ID, wire.JRunning)
	g.lines("running", 1)
	if ack := g.cancel(wire.Cancel{ID: waiting.ID, Reason: "stopped"}); !ack.OK {
		t.Fatalf("%+v", ack)
	}
	r := g.end()
	if r.ID != waiting.ID || r.State != wire.JNever || r.Fault == nil || r.Fault.Kind != fault.Cancelled || r.Fault.ExecutionState != string(event.NotStarted) {
		t.Errorf("stopped in line: %+v", r)
	}
	if v := g.stateOf(waiting.ID); !v.Terminal || v.Waiting || v.Fault == nil || v.Fault.FailureKind != "cancelled" {
		t.Errorf("%+v", v)
	}
	if v := g.stateOf(last.ID); v.Ahead != 0 || !v.Waiting {
		t.Errorf("the place was not given up: %+v", v)
	}
	g.cancel(wire.Cancel{ID: running.ID})
	for range 2 {
		switch r := g.end(); r.ID {
		case running.ID:
			if !r.Process.Cancelled {
				t.Errorf("%+v", r.Process)
			}
		case last.ID:
			if *r.Process.ExitCode != 0 {
				t.Errorf("%+v", r.Process)
			}
		}
	}
	if ack := g.cancel(wire.Cancel{ID: last.ID}); ack.OK || g.stateOf(last.ID).Fault != nil {
		t.Errorf("stopping what has ended: %+v %+v", ack, g.stateOf(last.ID))
	}
	if g.marks("waiting") != 0 || g.marks("running") != 1 || g.marks("last") != 1 {
		t.Errorf("they ran %d, %d, %d times", g.marks("waiting"), g.marks("running"), g.marks("last"))
	}
}

// A thousand Jobs wait; the next is refused, as often as it is tried, and was not started. The
// inventory names them all. A Runner that stops starts none of them and proves so in its next life.
func TestAThousandJobsWait(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Jobs = 1 })
	first := g.job("while [ ! -e go ]; do sleep 0.01; done")
	g.accept(first)
	g.until(first.ID, wire.JRunning)
	var jobs []wire.Offer
	for range maxQueued {
		o := g.job("echo ran >>marker")
		jobs = append(jobs, o)
		g.accept(o)
	}
	for range 3 {
		reply := g.offer(g.link, g.job("echo ran >>marker"))
		if reply.Accepted || reply.Fault.Kind != fault.TooManyCalls || reply.Fault.Reason != "job_queue_full" || reply.Fault.ExecutionState != "not_started" {
			t.Fatalf("%+v", reply.Fault)
		}
	}
	if n := len(g.hello().Jobs); n != maxQueued+1 {
		t.Errorf("the inventory has %d", n)
	}
	if v := g.stateOf(jobs[maxQueued-1].ID); v.Ahead != maxQueued-1 {
		t.Errorf("%+v", v)
	}
	if r := g.do(g.make(wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "true"})); r.State != wire.JTerminal {
		t.Errorf("a call found no room beside them: %+v", r)
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		for range maxQueued + 1 {
			g.end()
		}
	}()
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	<-heard
	again := openRig(t, g.dir, g.p.Path)
	for _, o := range jobs {
		if v := again.past(again.p, string(o.ID)); v.State != wire.JNever || !v.Gone {
			t.Fatalf("the next life says %+v", v)
		}
	}
	if again.marks("marker") != 0 {
		t.Error("one of them ran")
	}
}

// As many Jobs run at once as there may be slots.
func TestAllSlotsAtOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Jobs = MaxJobs })
	for range MaxJobs + 1 {
		g.accept(g.job("echo ran >>marker; while [ ! -e go ]; do sleep 0.05; done"))
	}
	for deadline := time.Now().Add(20 * time.Second); g.marks("marker") < MaxJobs && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := *g.slots(); n.Running != MaxJobs || n.Queued != 1 || g.marks("marker") != MaxJobs {
		t.Errorf("%+v, %d started", n, g.marks("marker"))
	}
	g.touch("go")
	for range MaxJobs + 1 {
		if r := g.end(); *r.Process.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	}
}

// The time limit of a Job counts from its start, not from its acceptance.
func TestTheLimitCountsFromTheStart(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *Options) { o.Jobs = 1 })
	g.accept(g.job("sleep 1.5"))
	short := g.job("sleep 0.1; echo ran >>marker")
	short.Bounds.TimeoutMS = 1000
	g.accept(short)
	g.end()
	if r := g.end(); r.ID != short.ID || r.Process.TimedOut || g.marks("marker") != 1 {
		t.Errorf("%+v", r)
	}
}

// A Job whose turn comes while the link is down, or while its Runner has no lease, waits; then it
// starts once. Where a grant was lost on the way, the server's next word is no, and it never starts.
//
// Covers: EXE-38
func TestAClaimOutlivesTheLink(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claim func(n int) (wire.ClaimReply, error)
		runs  int
	}{
		"down":       {func(n int) (wire.ClaimReply, error) { return wire.ClaimReply{Granted: n > 3}, failing(n <= 3) }, 1},
		"no lease":   {func(n int) (wire.ClaimReply, error) { return lease(n > 3), nil }, 1},
		"lost grant": {func(n int) (wire.ClaimReply, error) { return wire.ClaimReply{Reason: "denied"}, failing(n == 1) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			up := &claims{upstream: g.up, say: c.claim}
			g.Runner.link = up
			o := g.job("echo ran >>marker")
			g.accept(o)
			r := g.end()
			if g.marks("marker") != c.runs || (r.State == wire.JTerminal) != (c.runs == 1) {
				t.Errorf("it ran %d times and ended %+v after %d claims", g.marks("marker"), r, up.n)
			}
		})
	}
}

func failing(yes bool) error {
	if yes {
		return errors.New("no responders")
	}
	return nil
}

func lease(has bool) wire.ClaimReply {
	if !has {
		return wire.ClaimReply{Reason: wire.NoLease}
	}
	return wire.ClaimReply{Granted: true, RemainingMS: 10_000}
}

// claims is an upstream with its own word on each claim.
type claims struct {
	*upstream
	say func(n int) (wire.ClaimReply, error)
	mu  sync.Mutex
	n   int
}

func (c *claims) Claim(context.Context, wire.Claim) (wire.ClaimReply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	reply, err := c.say(c.n)
	reply.RemainingMS = 10_000
	return reply, err
}

// The log of a Job is read page by page, from its end or from an offset; what is no longer kept is
// counted. After the Runner's end the journal tells how the Job ended, and that its log is gone.
func TestTheLogOfAJob(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	o := g.job("i=0; while [ $i -lt 60000 ]; do echo line $i; i=$((i+1)); done; printf 'oops\\n' >&2; exit 3")
	g.accept(o)
	g.end()
	read := func(in wire.JobLogIn) wire.JobLogOut {
		t.Helper()
		in.ID = string(o.ID)
		out, err := g.jobLog(t.Context(), g.p, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	tail := read(wire.JobLogIn{Lines: 2, MaxBytes: 1000})
	if tail.Stdout.Text != "line 59998\nline 59999\n" || tail.Stderr.Text != "oops\n" || tail.Stdout.NextOffset != tail.Stdout.Bytes || !tail.Job.Terminal {
		t.Errorf("%+v %+v", tail.Stdout, tail.Stderr)
	}
	if tail.Stdout.Dropped == 0 || tail.Stdout.Dropped+2*jobBytes < tail.Stdout.Bytes {
		t.Errorf("%d of %d bytes are gone", tail.Stdout.Dropped, tail.Stdout.Bytes)
	}
	zero, all := int64(0), ""
	page := read(wire.JobLogIn{Stream: wire.Stdout, Offset: &zero, MaxBytes: maxLogBytes})
	if page.Stderr != nil || page.Stdout.Offset != tail.Stdout.Dropped || len(page.Stdout.Text) != maxLogBytes {
		t.Errorf("first page from %d, %d bytes", page.Stdout.Offset, len(page.Stdout.Text))
	}
	for page.Stdout.Text != "" {
		all += page.Stdout.Text
		page = read(wire.JobLogIn{Stream: wire.Stdout, Offset: &page.Stdout.NextOffset, MaxBytes: maxLogBytes})
	}
	if int64(len(all)) != tail.Stdout.Bytes-tail.Stdout.Dropped || !strings.HasSuffix(all, "line 59998\nline 59999\n") {
		t.Errorf("%d bytes in pages", len(all))
	}
	g.until(o.ID, wire.JSettled)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	again := openRig(t, g.dir, g.p.Path)
	out, err := again.jobLog(t.Context(), again.p, wire.JobLogIn{ID: string(o.ID), MaxBytes: 100})
	if err != nil || !out.Job.Known || !out.Job.Gone || !out.Job.Terminal || *out.Job.Outcome.ExitCode != 3 || out.Stdout != nil {
		t.Errorf("%+v %v", out, err)
	}
	if v, _ := again.observe(o.ID, "", 2, 0); !v.Gone || !v.Reset || v.StdoutDelta != "" {
		t.Errorf("%+v", v)
	}
}

// Who waits for ends is told when all of the Jobs have ended, or one where that is enough, and
// when the time is over.
func TestWaitForEnds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	a, b := g.job("while [ ! -e a ]; do sleep 0.01; done"), g.job("while [ ! -e b ]; do sleep 0.01; done")
	g.accept(a)
	g.accept(b)
	wait := func(any bool, d time.Duration) string {
		out, err := g.jobStates(t.Context(), g.p, wire.JobStatesIn{IDs: []string{string(a.ID), string(b.ID)}, Any: any, WaitMS: d.Milliseconds()})
		if err != nil || len(out.Items) != 2 {
			t.Fatalf("%+v %v", out, err)
		}
		return out.WaitOutcome
	}
	if o := wait(true, 30*time.Millisecond); o != "timeout" {
		t.Errorf("nothing has ended: %s", o)
	}
	time.AfterFunc(50*time.Millisecond, func() { g.touch("a") })
	if o := wait(true, time.Minute); o != "terminal" {
		t.Errorf("one has ended: %s", o)
	}
	if o := wait(false, 30*time.Millisecond); o != "timeout" {
		t.Errorf("one runs: %s", o)
	}
	time.AfterFunc(50*time.Millisecond, func() { g.touch("b") })
	if o := wait(false, time.Minute); o != "terminal" {
		t.Errorf("both have ended: %s", o)
	}
	if o := wait(false, 0); o != "not_waited" {
		t.Error(o)
	}
}

// Ended executions are kept by number and by what their output takes.
func TestShelf(t *testing.T) {
	t.Parallel()
	s := shelf{count: 3, bytes: 100}
	var gone []event.ExecutionID
	for i, size := range []int64{10, 20, 30, 40, 60, 500} {
		gone = append(gone, s.put(event.ExecutionID(fmt.Sprint(i)), size)...)
	}
	if got := fmt.Sprint(gone, s.ids, s.held); got != "[0 1 2 3 4] [5] 500" {
		t.Error(got)
	}
}
