package execution_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/execution"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

const client = event.ClientID("testrunner")

// world is a server's log, bus and fleet, and what a Runner needs to join it.
type world struct {
	t     testing.TB
	dir   string
	log   *eventlog.Log
	fleet *execution.Fleet
}

func newWorld(t testing.TB, change ...func(*execution.Options)) *world {
	t.Helper()
	dir := t.TempDir()
	log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: filepath.Join(dir, "data"), Durability: eventlog.Process,
		Server: event.NewInstanceID(), MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	bus, err := log.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	o := execution.Options{Bus: bus, Dir: filepath.Join(dir, "data"), Server: event.NewInstanceID()}
	for _, c := range change {
		c(&o)
	}
	fleet, err := execution.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fleet.Close)
	return &world{t: t, dir: dir, log: log, fleet: fleet}
}

// life is one Runner life.
type life struct {
	*runner.Runner
	project *runner.Project
	stop    func()
}

func (w *world) runner(root string) *life {
	w.t.Helper()
	r, err := runner.New(runner.Options{Dir: filepath.Join(w.dir, "runner"), Client: client, Build: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := r.AddProject(root)
	if err != nil {
		w.t.Fatal(err)
	}
	l := &life{Runner: r, project: p}
	l.stop = w.serve(r)
	w.t.Cleanup(l.stop)
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	if err := w.fleet.WaitRunner(ctx, client); err != nil {
		w.t.Fatal(err)
	}
	return l
}

// serve runs a Runner until stop is called.
func (w *world) serve(r *runner.Runner) (stop func()) {
	w.t.Helper()
	bus, err := w.log.RunnerBus(client)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := r.Serve(ctx, bus); err != nil {
			w.t.Errorf("serve: %v", err)
		}
	}()
	var stopped atomic.Bool
	return func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		<-done
		bus.Close()
		if err := r.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	}
}

func (w *world) target(l *life) call.Target {
	w.t.Helper()
	t, err := w.fleet.Target(event.ProjectRef{Client: client, Project: l.project.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

func (w *world) execution(t call.Target, op wire.Op, in any, timeout time.Duration) call.Execution {
	w.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	o := wire.Offer{ID: event.NewExecutionID(), Op: op, Body: body, Bounds: wire.Bounds{TimeoutMS: timeout.Milliseconds()},
		Fence: wire.Fence{Client: t.Ref.Client, Instance: t.Instance, Project: t.Ref.Project, Root: t.Root}}
	o.Digest = w.fleet.Digest(o)
	return call.Execution{Target: t, Offer: o, Ready: func(context.Context) error { return nil }}
}

func (w *world) run(x call.Execution) wire.Result {
	w.t.Helper()
	out, err := w.fleet.Run(w.t.Context(), x)
	if err != nil {
		w.t.Fatalf("run: %v", err)
	}
	if out.Result == nil {
		w.t.Fatalf("run gave %+v, not a result", out)
	}
	return *out.Result
}

func process(executable string, args ...string) wire.ProcessIn {
	return wire.ProcessIn{Executable: executable, Args: args}
}

func TestRunsAProcessOverTheLink(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	res := w.run(w.execution(w.target(l), wire.OpShell, wire.ProcessIn{Command: "echo out; echo err >&2; exit 3", Shell: "sh"}, 10*time.Second))
	p := res.Process
	if res.State != wire.JTerminal || p == nil || p.ExitCode == nil || *p.ExitCode != 3 || !p.Completed {
		t.Fatalf("result %+v process %+v", res, p)
	}
	if p.Stdout.Text != "out\n" || p.Stderr.Text != "err\n" || p.Stdout.Bytes != 4 {
		t.Fatalf("output %+v %+v", p.Stdout, p.Stderr)
	}
}

func TestProjectsAndTargets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	if got := w.fleet.Projects(); len(got) != 1 || !got[0].Connected || got[0].Ref.Project != l.project.ID || got[0].Git == nil || *got[0].Git {
		t.Fatalf("projects %+v", got)
	}
	if got := w.fleet.Runners(); len(got) != 1 || got[0].Client != client || got[0].Projects != 1 {
		t.Fatalf("runners %+v", got)
	}
	if _, err := w.fleet.Target(event.ProjectRef{Client: client, Project: "nothing-00000000"}); fault.KindOf(err) != fault.UnknownProject {
		t.Fatalf("an unknown Project answers %v", err)
	}
	old := w.target(l)
	l.stop()
	x := w.execution(old, wire.OpProcess, process("touch", filepath.Join(w.dir, "marker")), time.Minute)
	if _, err := w.fleet.Run(t.Context(), x); fault.KindOf(err) != fault.RunnerUnavailable || fault.As(err).ExecutionState != "not_started" {
		t.Fatalf("a Runner that is gone answers %v", err)
	}
	if _, err := w.fleet.Target(old.Ref); fault.KindOf(err) != fault.RunnerUnavailable {
		t.Fatalf("its Project answers %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "marker")); err == nil {
		t.Fatal("something ran")
	}
	if got := w.fleet.Projects(); len(got) != 1 || got[0].Connected {
		t.Fatalf("projects %+v", got)
	}
}

func TestPromotionToAJobAndItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	x := w.execution(w.target(l), wire.OpShell, wire.ProcessIn{Command: "echo first; sleep 1; echo second", Shell: "sh"}, 30*time.Second)
	x.Grace = 50 * time.Millisecond
	late := make(chan wire.Result, 2)
	x.Late = func(_ context.Context, r wire.Result) error { late <- r; return nil }
	out, err := w.fleet.Run(t.Context(), x)
	if err != nil || !out.Promoted {
		t.Fatalf("run gave %+v, %v", out, err)
	}
	r := <-late
	if r.State != wire.JTerminal || r.Process.Stdout.Text != "first\nsecond\n" {
		t.Fatalf("late end %+v", r)
	}
	var seen wire.ObserveJobsOut
	body, err := w.fleet.Ask(t.Context(), w.target(l), wire.OpObserveJobs, []byte(`{"items":[{"id":"`+string(x.Offer.ID)+`"}],"tail_lines":1}`), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &seen); err != nil || len(seen.Items) != 1 || !seen.Items[0].Terminal || !strings.HasSuffix(seen.Items[0].StdoutDelta, "second\n") {
		t.Fatalf("observed %+v %v", seen, err)
	}
}
