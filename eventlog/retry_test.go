package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// retryRuns logs are written, retrySteps commands in each: 100,000 in a soak.
const (
	retryRuns, retryRunsSoak   = 6, 100
	retrySteps, retryStepsSoak = 60, 1000
)

// Three writers decide over shared records while publications, replies and acknowledgements
// are lost by lot, and now and then a stranger writes to the same records. A writer retries
// until its command stands, over conflicts and over restarts: it reads the record's commits
// after the one it expected, and decides again only if its own is not among them. Every
// command, and every commit of the stranger, is applied exactly once, in the log and in the
// read models.
//
// Covers: EVT-30
func TestRetriedCommandsStandOnce(t *testing.T) {
	first, steps := rand.Uint64(), rounds(retrySteps, retryStepsSoak)
	for run := range rounds(retryRuns, retryRunsSoak) {
		seed := first + uint64(run)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(seed, 0))
			w := &retryWorld{dir: t.TempDir(), base: newIndex(), lose: []uint64{0, 9, 4}[dice.IntN(3)], strange: []int{0, 50, 10}[run%3]}
			w.dice.Store(dice.Uint64())
			w.open(t)
			var wg sync.WaitGroup
			for n := range 3 {
				wg.Go(func() { w.writer(t, rand.New(rand.NewPCG(seed, uint64(n+1))), steps/3) })
			}
			wg.Wait()
			w.check(t, steps/3*3)
			t.Logf("%d lives, %d commits of strangers, %d unknown outcomes", w.lives, len(w.odd), w.unknown.Load())
		})
	}
}

// retryWorld is a log that ends and comes back, and what was promised about it.
type retryWorld struct {
	dir     string
	lose    uint64
	strange int // one step in so many is a stranger's; 0: none
	dice    atomic.Uint64

	mu    sync.RWMutex // held for writing while the log comes back
	l     *Log
	base  *index
	lives int

	unknown atomic.Int64 // attempts that ended without an answer

	wantMu sync.Mutex
	want   []event.CommandID
	odd    []event.CommandID // of strangers
}

func (w *retryWorld) open(t *testing.T) {
	l, err := Open(context.Background(), Options{Dir: w.dir, Durability: Process, MaxBytes: 64 << 20, Server: event.NewInstanceID(), Base: w.base,
		Faults: &Faults{AfterPublish: step(&w.dice, w.lose), AfterAck: step(&w.dice, w.lose)}})
	if err != nil {
		t.Fatalf("life %d: %v", w.lives, err)
	}
	w.l = l
	w.lives++
}

// back brings the log back after it ended in one life.
func (w *retryWorld) back(t *testing.T, ended *Log) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.l != ended {
		return // somebody else was faster
	}
	_ = ended.Close()
	w.base = w.base.restarted()
	w.open(t)
}

func (w *retryWorld) now() *Log {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.l
}

func (w *retryWorld) writer(t *testing.T, dice *rand.Rand, steps int) {
	aggs := aggregates(2)
	for range steps {
		a := aggs[dice.IntN(len(aggs))]
		if w.strange > 0 && dice.IntN(w.strange) == 0 {
			w.stranger(a)
		}
		d := Draft{ID: event.NewCommandID(), Aggregate: a, At: time.Now(), Events: []event.Event{event.SessionClosed{}}}
		if !w.stands(t, d) {
			t.Errorf("the command %s never stood", d.ID)
			return
		}
		w.wantMu.Lock()
		w.want = append(w.want, d.ID)
		w.wantMu.Unlock()
	}
}

// stands retries a command until it is in the log.
func (w *retryWorld) stands(t *testing.T, d Draft) bool {
	unknown := false   // an attempt ended without an answer
	for range 10_000 { // each means that something else was written, or that the log came back
		l := w.now()
		if unknown {
			// Where it ended is known: read what came after the commit that was expected.
			w.mu.RLock() // a log that is closed under its reader is silent for long
			l = w.l
			found, err := after(l, d)
			w.mu.RUnlock()
			if err != nil {
				w.back(t, l)
				continue
			}
			if found {
				return true
			}
			unknown = false
		}
		applied, _ := l.applied.read()
		head, err := l.Head(d.Aggregate)
		if err == nil {
			d.Expect = head
			_, err = l.Append(context.Background(), d)
		}
		switch {
		case err == nil:
			return true
		case errors.Is(err, ErrConflict):
			moved(l, applied)
		case fault.KindOf(err) == fault.PersistenceUncertain, fault.KindOf(err) == fault.ShuttingDown:
			unknown = true
			w.unknown.Add(1)
			w.back(t, l)
		default:
			t.Errorf("append: %v", err)
			return false
		}
	}
	return false
}

// after looks for a command among the record's commits behind the expected one.
func after(l *Log, d Draft) (found bool, err error) {
	err = l.Replay(context.Background(), Range{Aggregate: d.Aggregate}, func(e Entry) error {
		if e.Seq > d.Expect.Seq && e.Commit.ID == d.ID {
			found = true
		}
		return nil
	})
	return found, err
}

// moved waits for the commit that a conflict was about: one behind a sequence is applied, or
// writing ends.
func moved(l *Log, seq uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-l.Failed():
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = l.WaitApplied(ctx, seq+1)
}

// probe makes the log see that somebody else wrote to a record that nobody writes to now: its
// next commit is not where it belongs.
func (w *retryWorld) probe(l *Log) {
	a := event.ProjectAggregate(event.ProjectRef{Client: "probe", Project: "probe"})
	if h, err := l.Head(a); err == nil {
		_, _ = l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: a, Expect: h, At: time.Now(), Events: []event.Event{event.ProjectRegistered{Name: "probe"}}})
	}
}

// stranger commits to a record as another server would: at its end, or not at all.
func (w *retryWorld) stranger(a event.Aggregate) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	head, err := w.l.Head(a)
	if err != nil {
		return
	}
	c := event.Commit{Format: event.Format, ID: event.NewCommandID(), Aggregate: a, Version: head.Version + 1, Prev: head.Hash,
		At: time.Now(), Server: "stranger", Events: []event.Event{event.SessionClosed{}}}
	body, err := c.Encode()
	if err != nil {
		return
	}
	if publishExpecting(w.l, subjectOf(a), head.Seq, body) == nil {
		w.wantMu.Lock()
		w.odd = append(w.odd, c.ID)
		w.wantMu.Unlock()
	}
}

// check wants every command once, in its record's order, live and after one more stat.
func (w *retryWorld) check(t *testing.T, steps int) {
	l := w.now()
	w.probe(l)
	if l.Err() != nil {
		w.back(t, l)
		l = w.now()
	}
	times := map[event.CommandID]int{}
	if err := l.Replay(context.Background(), Range{}, func(e Entry) error { times[e.Commit.ID]++; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, id := range append(append([]event.CommandID{}, w.want...), w.odd...) {
		if times[id] != 1 {
			t.Errorf("%s stands %d times", id, times[id])
		}
	}
	for id, n := range times {
		if n != 1 {
			t.Errorf("%s stands %d times", id, n)
		}
	}
	if len(w.want) != steps {
		t.Errorf("%d of %d commands stood", len(w.want), steps)
	}
	if s := l.Status(); len(s.Damaged) > 0 {
		t.Errorf("%+v", s.Damaged)
	}
	live := w.base.mem.copy()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w.base = newIndex()
	w.open(t)
	defer func() { _ = w.l.Close() }()
	if fmt.Sprint(live.heads) != fmt.Sprint(w.base.mem.heads) {
		t.Errorf("the read models differ from a fold of the whole log")
	}
}
