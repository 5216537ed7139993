package execution_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/execution"
	"webcodex/eventlog/event"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// job is an execution that is a Job from the start, with its late ends.
func (w *world) job(t call.Target, command string) (call.Execution, chan wire.Result) {
	w.t.Helper()
	x := w.execution(t, wire.OpShell, wire.ProcessIn{Shell: "sh", Command: command}, 20*time.Second)
	x.Offer.Bounds.Job = true
	x.Offer.Digest = w.fleet.Digest(x.Offer)
	late := make(chan wire.Result, 10)
	x.Late = func(_ context.Context, r wire.Result) error { late <- r; return nil }
	return x, late
}

func (w *world) startJob(x call.Execution) {
	w.t.Helper()
	if out, err := w.fleet.Run(w.t.Context(), x); err != nil || !out.Promoted {
		w.t.Fatalf("%+v %v", out, err)
	}
}

func (w *world) lateEnd(late chan wire.Result) wire.Result {
	w.t.Helper()
	select {
	case r := <-late:
		return r
	case <-time.After(30 * time.Second):
		w.t.Fatal("no end came")
		return wire.Result{}
	}
}

func (w *world) waitRan(l *life, file string, n int) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ran(l, file) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d ran, not %d", ran(l, file), n)
		}
	}
}

// A Job is accepted at once, its grant waits for its slot, and a call that is waited for passes it.
func TestAJobAnswersAtOnceAndClaimsLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	to := w.target(l)
	if s := w.fleet.Runners()[0].Slots; s == nil || *s != (wire.JobSlots{Limit: runner.DefaultJobs}) {
		t.Errorf("its hello says %+v", s)
	}
	var asked atomic.Int32
	var lates []chan wire.Result
	for range 6 { // four slots
		x, late := w.job(to, "echo ran >>marker; while [ ! -e go ]; do sleep 0.01; done")
		x.Ready = func(context.Context) error { asked.Add(1); return nil }
		w.startJob(x)
		lates = append(lates, late)
	}
	w.waitRan(l, "marker", 4)
	if r := w.run(w.execution(to, wire.OpShell, mark("call"), 10*time.Second)); r.State != wire.JTerminal || ran(l, "call") != 1 {
		t.Errorf("%+v", r)
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("%d grants were asked for", n)
	}
	if err := os.WriteFile(filepath.Join(l.project.Path, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, late := range lates {
		if r := w.lateEnd(late); r.State != wire.JTerminal || *r.Process.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	}
	if ran(l, "marker") != 6 {
		t.Errorf("%d ran", ran(l, "marker"))
	}
}

// The server is lost while Jobs run and wait. The next one takes over what runs, with its real end,
// told once; what waits gets no grant any more and is proven not to have started. A Runner that
// comes back later, or as another life, is asked when it is there.
//
// Covers: EXE-38, EXE-39
func TestJobsOfALostServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	root := t.TempDir()
	l := w.runner(root)
	to := w.target(l)
	var all []call.Execution
	for range 6 {
		x, _ := w.job(to, "echo ran >>marker; while [ ! -e go ]; do sleep 0.01; done; exit 5")
		w.startJob(x)
		all = append(all, x)
	}
	w.waitRan(l, "marker", 4)
	w.fleet.Close()
	bus, err := w.log.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := execution.New(execution.Options{Bus: bus, Dir: filepath.Join(w.dir, "data"), Server: event.NewInstanceID()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fresh.Close)
	w.fleet = fresh
	lates := make([]chan wire.Result, len(all))
	for i, x := range all { // some before the Runner is there, some after
		if i == 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if err := fresh.WaitRunner(ctx, client); err != nil {
				t.Fatal(err)
			}
		}
		lates[i] = make(chan wire.Result, 10)
		x.Ready = func(context.Context) error { t.Error("it was asked for a grant"); return nil }
		x.Late = func(_ context.Context, r wire.Result) error { lates[i] <- r; return nil }
		fresh.Adopt(x)
	}
	for _, late := range lates[4:] {
		if r := w.lateEnd(late); r.State != wire.JNever {
			t.Errorf("what waited ended %+v", r)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, late := range lates[:4] {
		if r := w.lateEnd(late); r.State != wire.JTerminal || *r.Process.ExitCode != 5 || r.ID != all[i].Offer.ID {
			t.Errorf("what ran ended %+v", r)
		}
	}
	for _, x := range all[:4] {
		w.until(x.Offer.ID, wire.JSettled)
	}
	time.Sleep(100 * time.Millisecond)
	for _, late := range lates {
		if len(late) > 0 {
			t.Errorf("told again: %+v", <-late)
		}
	}
	if ran(l, "marker") != 4 {
		t.Errorf("%d ran", ran(l, "marker"))
	}
	// What an earlier life of the Runner ran is settled by its journal.
	gone, _ := w.job(w.target(l), "echo ran >>last; exit 6")
	w.startJob(gone)
	w.waitRan(l, "last", 1)
	w.until(gone.Offer.ID, wire.JSettled)
	l.stop()
	late := make(chan wire.Result, 10)
	again := gone
	again.Late = func(_ context.Context, r wire.Result) error { late <- r; return nil }
	fresh.Adopt(again)
	if len(late) > 0 {
		t.Error("an end was told although nobody could be asked")
	}
	w.runner(root)
	if r := w.lateEnd(late); r.State != wire.JTerminal || *r.Process.ExitCode != 6 {
		t.Errorf("by the journal: %+v", r)
	}
}

// The link is down when a Job's turn comes, and when another ends: the first starts when it is back,
// the second's end is told then, each once.
//
// Covers: EXE-38
func TestTheLinkDropsUnderJobs(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 0, false)
	to := n.aim()
	ctx := context.Background()
	var all []*told
	for range 6 {
		all = append(all, n.call(ctx, n.fleet, to, asJob))
	}
	for deadline := time.Now().Add(20 * time.Second); countLines(n.marker(all[0]), "start") == 0 && time.Now().Before(deadline); {
		time.Sleep(2 * time.Millisecond)
	}
	n.setCut(true)
	time.Sleep(time.Second) // four end, the turn of two comes
	for _, d := range all[4:] {
		if countLines(n.marker(d), "start") != 0 {
			t.Errorf("%s started without a grant", d.x.Offer.ID)
		}
	}
	n.setCut(false)
	if tally := n.report(all); tally["terminal"] != 6 {
		t.Errorf("%v", tally)
	}
}

func (n *network) setCut(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = cut
}

// A Job whose Runner stays away is told as unknown when its limit is long over, once; the proof that
// comes when the Runner is back is told too, and then the Runner may forget it.
//
// Covers: EXE-39
func TestAnOverdueJobIsUnknownUntilItIsProven(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 0, false)
	n.fleet.HurryProof(200 * time.Millisecond)
	to := n.aim()
	x := n.execution(to, wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "echo start >>overdue; sleep 0.5; exit 5"}, time.Second)
	x.Offer.Bounds.Job = true
	x.Offer.Digest = n.fleet.Digest(x.Offer)
	late := make(chan wire.Result, 10)
	x.Late = func(_ context.Context, r wire.Result) error { late <- r; return nil }
	n.startJob(x)
	for deadline := time.Now().Add(20 * time.Second); countLines(filepath.Join(n.dir, "root", "overdue"), "start") == 0 && time.Now().Before(deadline); {
		time.Sleep(2 * time.Millisecond)
	}
	n.setCut(true)
	if r := n.lateEnd(late); r.State != wire.JLost {
		t.Errorf("while the Runner is away: %+v", r)
	}
	n.setCut(false)
	if r := n.lateEnd(late); r.State != wire.JTerminal || *r.Process.ExitCode != 5 {
		t.Errorf("when it is back: %+v", r)
	}
	n.until(x.Offer.ID, wire.JSettled)
	if len(late) > 0 {
		t.Errorf("told again: %+v", <-late)
	}
}
