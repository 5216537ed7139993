package execution_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/execution"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

func mark(file string) wire.ProcessIn {
	return wire.ProcessIn{Shell: "sh", Command: "echo ran >>" + file}
}

func ran(l *life, file string) int { return countLines(filepath.Join(l.project.Path, file), "ran") }

// Nothing starts before the start is durable, and nothing at all when it cannot become so.
func TestTheGrantWaitsForTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	x := w.execution(w.target(l), wire.OpShell, mark("marker"), 10*time.Second)
	release := make(chan struct{})
	asked := make(chan struct{}, 10)
	x.Ready = func(ctx context.Context) error {
		asked <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	done := make(chan wire.Result, 1)
	go func() { done <- w.run(x) }()
	<-asked
	time.Sleep(100 * time.Millisecond)
	if ran(l, "marker") != 0 {
		t.Error("it ran before its start was durable")
	}
	close(release)
	if r := <-done; r.State != wire.JTerminal || ran(l, "marker") != 1 {
		t.Errorf("%+v", r)
	}
	x = w.execution(w.target(l), wire.OpShell, mark("never"), 10*time.Second)
	x.Ready = func(context.Context) error { return errors.New("the disk is full") }
	if r := w.run(x); r.State != wire.JNever || ran(l, "never") != 0 {
		t.Errorf("%+v", r)
	}
}

func TestCancelOnDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	sleep := wire.ProcessIn{Shell: "sh", Command: "echo ran >>marker; exec sleep 60"}
	started := func() {
		for deadline := time.Now().Add(10 * time.Second); ran(l, "marker") == 0 && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
	}
	x := w.execution(w.target(l), wire.OpShell, sleep, time.Minute)
	x.CancelOnDone = true
	ctx, cancel := context.WithCancel(t.Context())
	go func() { started(); cancel() }()
	out, err := w.fleet.Run(ctx, x)
	if err != nil || out.Result == nil || !out.Result.Process.Cancelled {
		t.Fatalf("%+v %v", out, err)
	}
	// Cancelled before the grant: proven never to start.
	x = w.execution(w.target(l), wire.OpShell, mark("never"), time.Minute)
	x.CancelOnDone = true
	ctx, cancel = context.WithCancel(t.Context())
	x.Ready = func(context.Context) error { cancel(); time.Sleep(50 * time.Millisecond); return nil }
	out, err = w.fleet.Run(ctx, x)
	if err != nil || out.Result == nil || out.Result.State != wire.JNever {
		t.Fatalf("%+v %v", out, err)
	}
	// A Job is not cancelled by its caller's end, and Cancel ends it.
	x = w.execution(w.target(l), wire.OpShell, sleep, time.Minute)
	x.CancelOnDone, x.Grace = true, time.Millisecond
	late := make(chan wire.Result, 1)
	x.Late = func(_ context.Context, r wire.Result) error { late <- r; return nil }
	ctx, cancel = context.WithCancel(t.Context())
	if out, err = w.fleet.Run(ctx, x); err != nil || !out.Promoted {
		t.Fatalf("%+v %v", out, err)
	}
	cancel()
	select {
	case r := <-late:
		t.Fatalf("the Job ended with its caller: %+v", r)
	case <-time.After(200 * time.Millisecond):
	}
	if ok, err := w.fleet.Cancel(t.Context(), client, x.Offer.ID, "stopped"); err != nil || !ok {
		t.Fatalf("%v %v", ok, err)
	}
	if r := <-late; !r.Process.Cancelled {
		t.Errorf("%+v", r.Process)
	}
	if ok, err := w.fleet.Cancel(t.Context(), client, x.Offer.ID, "stopped"); err != nil || ok {
		t.Errorf("ending an ended Job: %v %v", ok, err)
	}
	if ran(l, "never") != 0 {
		t.Error("the cancelled call ran")
	}
}

// A result is acknowledged when the call's finish is durable and not before; a late end is
// told again until it could be recorded.
func TestAcknowledgementFollowsTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	x := w.execution(w.target(l), wire.OpShell, mark("marker"), 10*time.Second)
	settled := make(chan struct{})
	x.Settled = settled
	w.run(x)
	time.Sleep(200 * time.Millisecond)
	if q := w.query(x.Offer.ID); q.State != wire.JTerminal {
		t.Errorf("acknowledged before the finish was durable: %s", q.State)
	}
	close(settled)
	w.until(x.Offer.ID, wire.JSettled)

	x = w.execution(w.target(l), wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "sleep 0.3"}, 10*time.Second)
	x.Grace = time.Millisecond
	var tries atomic.Int32
	x.Late = func(context.Context, wire.Result) error {
		if tries.Add(1) < 3 {
			return errors.New("not now")
		}
		return nil
	}
	if out, err := w.fleet.Run(t.Context(), x); err != nil || !out.Promoted {
		t.Fatalf("%+v %v", out, err)
	}
	w.until(x.Offer.ID, wire.JSettled)
	if n := tries.Load(); n != 3 {
		t.Errorf("the late end was told %d times", n)
	}
}

func (w *world) query(id event.ExecutionID) wire.QueryReply {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	q, err := w.fleet.Query(ctx, client, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return q
}

func (w *world) until(id event.ExecutionID, s wire.JournalState) {
	w.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); w.query(id).State != s; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("the journal says %s, not %s", w.query(id).State, s)
		}
	}
}

// A Runner's messages count only where they match an open id, its client, instance and digest.
func TestForgedMessagesCountForNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	forger, err := w.log.RunnerBus(client)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := w.log.RunnerBus("stranger")
	if err != nil {
		t.Fatal(err)
	}
	x := w.execution(w.target(l), wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "sleep 1; exit 7"}, 10*time.Second)
	done := make(chan wire.Result, 1)
	go func() { done <- w.run(x) }()
	time.Sleep(300 * time.Millisecond) // it runs by now; a query could close it instead
	good := wire.Result{ID: x.Offer.ID, Digest: x.Offer.Digest, Instance: l.Instance(), State: wire.JNever}
	digest, instance := good, good
	digest.Digest, instance.Instance = strings.Repeat("0", 64), event.NewInstanceID()
	send := func(conn interface {
		Publish(string, []byte) error
	}, c event.ClientID, v wire.Verb, m any) {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Publish(wire.Subject(c, v), b)
	}
	send(forger, client, wire.VerbResult, digest)
	send(forger, client, wire.VerbResult, instance)
	send(stranger, "stranger", wire.VerbResult, good)
	send(stranger, client, wire.VerbResult, good) // not its subject: the bus drops it
	send(forger, client, wire.VerbResult, strings.Repeat("[", 70))
	_ = forger.Publish(wire.Subject(client, wire.VerbResult), []byte(strings.Repeat("[", 100_000)))
	if r := <-done; r.State != wire.JTerminal || *r.Process.ExitCode != 7 {
		t.Errorf("a forged result was believed: %+v", r)
	}
	claim, _ := json.Marshal(wire.Claim{ID: x.Offer.ID, Digest: x.Offer.Digest, Instance: l.Instance()})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := forger.RequestWithContext(ctx, wire.Subject(client, wire.VerbClaim), claim)
	if err != nil {
		t.Fatal(err)
	}
	var reply wire.ClaimReply
	if err := json.Unmarshal(m.Data, &reply); err != nil || reply.Granted {
		t.Errorf("a second claim of an id is granted: %+v %v", reply, err)
	}
}

// While a Runner lives no other takes its name; when it has gone another may.
func TestSecondInstanceIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	second, err := runner.New(runner.Options{Dir: filepath.Join(w.dir, "second"), Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.AddProject(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	stop := w.serve(second)
	defer stop()
	time.Sleep(300 * time.Millisecond)
	if rs := w.fleet.Runners(); len(rs) != 1 || rs[0].Instance != l.Instance() {
		t.Fatalf("%+v", rs)
	}
	if r := w.run(w.execution(w.target(l), wire.OpShell, mark("marker"), 10*time.Second)); r.Instance != l.Instance() || ran(l, "marker") != 1 {
		t.Errorf("%+v", r)
	}
	l.stop()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if rs := w.fleet.Runners(); len(rs) == 1 && rs[0].Instance == second.Instance() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the second Runner was never let in")
		}
	}
}

// A stopping Runner ends what runs and tells the ends before it goes.
func TestAStoppingRunnerTellsTheEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := w.runner(t.TempDir())
	x := w.execution(w.target(l), wire.OpShell, wire.ProcessIn{Shell: "sh", Command: "echo ran >marker; exec sleep 60"}, time.Minute)
	done := make(chan wire.Result, 1)
	go func() { done <- w.run(x) }()
	for deadline := time.Now().Add(10 * time.Second); ran(l, "marker") == 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	l.stop()
	select {
	case r := <-done:
		if r.State != wire.JTerminal || !r.Process.Cancelled {
			t.Errorf("%+v", r)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not told")
	}
}

// Known Projects survive in the log's memory: without their Runner they are not unknown.
func TestKnownProjectsWithoutRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := event.ProjectRegistered{Project: event.ProjectRef{Client: "away", Project: "p-00000001"}, Name: "p", Root: "r"}
	bus, err := w.log.ServerBus()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	registered := make(chan event.ProjectRegistered, 10)
	fleet, err := execution.New(execution.Options{Bus: bus, Dir: dir, Server: event.NewInstanceID(),
		Known:    func() []event.ProjectRegistered { return []event.ProjectRegistered{p} },
		Register: func(_ context.Context, p event.ProjectRegistered) error { registered <- p; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	if _, err := fleet.Target(p.Project); fault.KindOf(err) != fault.RunnerUnavailable {
		t.Errorf("%v", err)
	}
	if got := fleet.Projects(); len(got) != 1 || got[0].Connected {
		t.Errorf("%+v", got)
	} else if b, err := json.Marshal(got[0]); err != nil || strings.Contains(string(b), `"git"`) {
		t.Errorf("nobody has said whether it is a repository: %s %v", b, err)
	}
	info, err := os.Stat(filepath.Join(dir, "digest.key"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != 32 {
		t.Errorf("the key file: %v %v", info, err)
	}
	o := wire.Offer{ID: event.NewExecutionID(), Op: wire.OpShell, Body: []byte(`{"command":"a secret"}`)}
	again, err := execution.New(execution.Options{Bus: bus, Dir: dir, Server: event.NewInstanceID()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	other := o
	other.Body = []byte(`{"command":"another"}`)
	if fleet.Digest(o) != again.Digest(o) || fleet.Digest(o) == fleet.Digest(other) || fleet.Digest(o) == w.fleet.Digest(o) {
		t.Error("the digest is not keyed by the data directory's key and the command")
	}
}
