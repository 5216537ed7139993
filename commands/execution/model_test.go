package execution_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/execution"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// network carries the messages between a real server end and a real Runner process, and
// loses, repeats and delays them.
type network struct {
	*world
	faults bool
	cut    bool // nothing gets through; guarded by mu

	mu    sync.Mutex
	rng   *rand.Rand
	life  *runnerLife
	unsub []func()
	// kill is told of every message before it is passed on and after; true kills the Runner.
	kill func(v wire.Verb, after bool) bool
	done chan struct{}
}

func newNetwork(t *testing.T, seed uint64, faults bool) *network {
	t.Helper()
	w := newWorld(t)
	if err := os.Mkdir(filepath.Join(w.dir, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := &network{world: w, faults: faults, rng: rand.New(rand.NewPCG(seed, 1)), done: make(chan struct{})}
	n.start()
	t.Cleanup(func() { close(n.done); n.stop() })
	return n
}

// fate is what happens to one message on its way.
func (n *network) fate() (drop, twice bool, delay time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut || !n.faults {
		return n.cut, false, 0
	}
	if n.rng.IntN(3) == 0 {
		delay = time.Duration(n.rng.IntN(60)) * time.Millisecond
	}
	return n.rng.IntN(8) == 0, n.rng.IntN(8) == 0, delay
}

// pass delivers a message by the network's rules; each copy goes its own way.
func (n *network) pass(deliver func()) {
	drop, twice, delay := n.fate()
	if twice {
		go func() { time.Sleep(delay / 2); deliver() }()
	}
	if drop {
		return
	}
	time.Sleep(delay)
	deliver()
}

// start brings up a Runner life and connects it.
func (n *network) start() {
	n.t.Helper()
	bus, err := n.log.RunnerBus(client)
	if err != nil {
		n.t.Fatal(err)
	}
	var once sync.Once
	ready := make(chan struct{})
	n.life = startRunner(n.t.(*testing.T), n.dir, func(p *runnerLife, f frame) {
		go func() {
			var h wire.Hello
			if f.Verb == wire.VerbHello && json.Unmarshal(f.Data, &h) == nil && h.Listening {
				once.Do(func() {
					for _, v := range toRunner {
						sub, err := bus.SubscribeSync(wire.Subject(client, v))
						if err != nil {
							return
						}
						n.unsub = append(n.unsub, func() { _ = sub.Unsubscribe() })
						go func() {
							for {
								m, err := sub.NextMsg(time.Hour)
								if err != nil {
									return
								}
								go n.down(p, v, m.Data, func(b []byte) { _ = m.Respond(b) })
							}
						}()
					}
					_ = bus.Flush()
					close(ready)
				})
			}
			n.up(p, f, func(ctx context.Context, data []byte) []byte {
				m, err := bus.RequestWithContext(ctx, wire.Subject(client, f.Verb), data)
				if err != nil {
					return nil
				}
				return m.Data
			})
		}()
	})
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		n.t.Error("the Runner did not connect")
	}
}

// stop cuts the connection of a dead life.
func (n *network) stop() {
	n.life.kill()
	for _, u := range n.unsub {
		u()
	}
	n.unsub = nil
}

func (n *network) maybeKill(p *runnerLife, v wire.Verb, after bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.kill != nil && n.kill(v, after) {
		n.kill = nil
		_ = p.cmd.Process.Kill()
	}
}

// down carries a request to the Runner and its answer back.
func (n *network) down(p *runnerLife, v wire.Verb, data []byte, answer func([]byte)) {
	n.maybeKill(p, v, false)
	n.pass(func() {
		reply := p.request(v, data, 10*time.Second)
		n.maybeKill(p, v, true)
		if reply != nil {
			n.pass(func() { answer(reply) })
		}
	})
}

// up carries a message of the Runner to the server and its answer back.
func (n *network) up(p *runnerLife, f frame, ask func(context.Context, []byte) []byte) {
	n.maybeKill(p, f.Verb, false)
	n.pass(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		reply := ask(ctx, f.Data)
		n.maybeKill(p, f.Verb, true)
		if reply != nil {
			n.pass(func() { p.send(frame{Reply: true, N: f.N, Data: reply}) })
		}
	})
}

// told is what the server said about one execution.
type told struct {
	x       call.Execution
	out     call.Outcome
	err     error
	late    chan wire.Result
	settled chan struct{}
}

func (n *network) launch(fleet *execution.Fleet, t call.Target, script string, grace time.Duration) *told {
	x := n.execution(t, wire.OpShell, wire.ProcessIn{Shell: "sh", Command: script}, 10*time.Second)
	d := &told{late: make(chan wire.Result, 10), settled: make(chan struct{})}
	x.Grace, x.Settled = grace, d.settled
	x.Late = func(_ context.Context, r wire.Result) error { d.late <- r; return nil }
	d.x = x
	return d
}

// asJob in place of a grace is a Job from the start: it waits for a slot before it claims.
const asJob = time.Duration(-1)

func (n *network) marker(d *told) string { return filepath.Join(n.dir, "root", string(d.x.Offer.ID)) }

// run makes the call; script sees its own id as its marker file.
func (n *network) call(ctx context.Context, fleet *execution.Fleet, t call.Target, grace time.Duration) *told {
	d := n.launch(fleet, t, "", grace)
	id := string(d.x.Offer.ID)
	body, _ := json.Marshal(wire.ProcessIn{Shell: "sh", Command: "echo start >>" + id + "; sleep 0.2; echo end >>" + id + "; exit 5"})
	d.x.Offer.Body = body
	d.x.Offer.Bounds.Job = grace == asJob
	d.x.Offer.Digest = fleet.Digest(d.x.Offer)
	d.out, d.err = fleet.Run(ctx, d.x)
	close(d.settled)
	return d
}

// check holds what was told against the marker file, which is the truth.
func (n *network) check(d *told) string {
	starts, ends := countLines(n.marker(d), "start"), countLines(n.marker(d), "end")
	if starts > 1 {
		n.t.Errorf("%s started %d times", d.x.Offer.ID, starts)
	}
	if d.err != nil {
		if fault.As(d.err).ExecutionState != string(event.NotStarted) {
			n.t.Errorf("%s: the error %v proves nothing", d.x.Offer.ID, d.err)
		}
		if starts != 0 {
			n.t.Errorf("%s started and was told not_started: %v", d.x.Offer.ID, d.err)
		}
		return "unavailable"
	}
	r := d.out.Result
	if d.out.Promoted || d.out.Unknown {
		select {
		case late := <-d.late:
			r = &late
		default:
			if d.out.Promoted {
				return "promoted, no end yet"
			}
			return "unknown"
		}
		if len(d.late) > 0 {
			n.t.Errorf("%s: the late end was told more than once", d.x.Offer.ID)
		}
	}
	n.checkResult(d.x.Offer.ID, *r, starts, ends)
	return string(r.State)
}

func (n *network) checkResult(id event.ExecutionID, r wire.Result, starts, ends int) {
	switch r.State {
	case wire.JTerminal, wire.JSettled:
		if starts != 1 || ends != 1 || r.Process == nil || r.Process.ExitCode == nil || *r.Process.ExitCode != 5 {
			n.t.Errorf("%s: told %+v %+v, but %d starts and %d ends", id, r, r.Process, starts, ends)
		}
	case wire.JNever, wire.JRefused, wire.JStartFailed:
		if starts != 0 {
			n.t.Errorf("%s: told %s, but it started", id, r.State)
		}
	case wire.JLost:
	default:
		n.t.Errorf("%s: told %q", id, r.State)
	}
}

func (n *network) aim() call.Target {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := n.fleet.WaitRunner(ctx, client); err != nil {
		n.t.Fatal(err)
	}
	projects := n.fleet.Projects()
	t, err := n.fleet.Target(projects[0].Ref)
	if err != nil {
		n.t.Fatal(err)
	}
	return t
}

func (n *network) many(count int, t call.Target) []*told {
	all := make([]*told, count)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			grace := time.Duration(0)
			switch i % 4 {
			case 0:
				grace = 20 * time.Millisecond
			case 1:
				grace = asJob
			}
			all[i] = n.call(context.Background(), n.fleet, t, grace)
		})
		time.Sleep(5 * time.Millisecond)
	}
	group.Wait()
	return all
}

// report checks all, waiting for late ends, and gives the tally.
func (n *network) report(all []*told) map[string]int {
	for _, d := range all {
		if d.out.Promoted {
			for deadline := time.Now().Add(20 * time.Second); len(d.late) == 0 && time.Now().Before(deadline); {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}
	time.Sleep(300 * time.Millisecond) // what starts late would start now
	tally := map[string]int{}
	for _, d := range all {
		tally[n.check(d)]++
	}
	return tally
}

func soak(few, many int) int {
	if os.Getenv("WEBCODEX_SOAK") != "" {
		return many
	}
	return few
}

// Over a network that loses, repeats, delays and reorders messages every execution starts at
// most once, and what is told about it is true.
//
// Covers: EXE-38, EXE-39
func TestLossyNetwork(t *testing.T) {
	for seed := range uint64(soak(2, 20)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			n := newNetwork(t, seed, true)
			tally := n.report(n.many(40, n.aim()))
			t.Log(tally)
			if tally["terminal"] < 10 {
				t.Errorf("too little got through to show anything: %v", tally)
			}
		})
	}
}

// The Runner is killed at every step of the protocol: before and after each message. The next
// life starts nothing again, and each call is told the truth.
//
// Covers: EXE-38, EXE-39
func TestRunnerKilledAtEveryStep(t *testing.T) {
	for _, v := range []wire.Verb{wire.VerbOffer, wire.VerbClaim, wire.VerbStart, wire.VerbResult} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(v, after), func(t *testing.T) {
				t.Parallel()
				n := newNetwork(t, 0, false)
				for range soak(1, 20) {
					to := n.aim()
					left := 3 // let some pass
					n.mu.Lock()
					n.kill = func(seen wire.Verb, late bool) bool {
						if seen == v && late == after {
							left--
						}
						return left == 0
					}
					n.mu.Unlock()
					old := n.life
					again := make(chan struct{})
					go func() {
						defer close(again)
						select {
						case <-old.dead:
							n.stop()
							n.start()
						case <-n.done:
						}
					}()
					all := n.many(6, to)
					select {
					case <-again:
					case <-time.After(30 * time.Second):
						t.Fatal("the Runner was not killed")
					}
					t.Log(n.report(all))
				}
			})
		}
	}
}

// The server forgets everything at every step: a new one grants no old id, and the journal
// tells it the truth about what the old one left open.
//
// Covers: EXE-38, EXE-39
func TestServerLostAtEveryStep(t *testing.T) {
	for _, v := range []wire.Verb{wire.VerbOffer, wire.VerbClaim, wire.VerbStart, wire.VerbResult} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(v, after), func(t *testing.T) {
				t.Parallel()
				n := newNetwork(t, 0, false)
				to := n.aim()
				lost := make(chan struct{})
				var once sync.Once
				n.mu.Lock()
				n.kill = func(seen wire.Verb, late bool) bool {
					if seen == v && late == after {
						once.Do(func() { close(lost) })
					}
					return false
				}
				n.mu.Unlock()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				open := make(chan *told, 6)
				for range 6 {
					go func() { open <- n.call(ctx, n.fleet, to, 0) }()
				}
				<-lost
				n.fleet.Close()
				cancel()
				bus, err := n.log.ServerBus()
				if err != nil {
					t.Fatal(err)
				}
				fresh, err := execution.New(execution.Options{Bus: bus, Dir: filepath.Join(n.dir, "data"), Server: event.NewInstanceID()})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(fresh.Close)
				n.afterRestart(fresh, to, open)
			})
		}
	}
}

// afterRestart asks the journal about every id, as recovery does, and holds its word against
// the marker files at the end of time.
func (n *network) afterRestart(fresh *execution.Fleet, to call.Target, open chan *told) {
	t := n.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := fresh.WaitRunner(ctx, client); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // the commands that run are over
	files, err := os.ReadDir(filepath.Join(n.dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		id := event.ExecutionID(f.Name())
		q, err := fresh.Query(ctx, client, id)
		if err != nil || (q.State != wire.JTerminal && q.State != wire.JSettled) || q.Result == nil || *q.Result.Process.ExitCode != 5 {
			t.Errorf("%s ran, and the journal says %+v %v", id, q, err)
		}
	}
	started := len(files)
	for range 6 {
		n.check(<-open) // an answer that the old server still gave must be true too
	}
	time.Sleep(500 * time.Millisecond)
	if files, _ = os.ReadDir(filepath.Join(n.dir, "root")); len(files) > started {
		t.Errorf("%d more commands started after the server was lost", len(files)-started)
	}
}
