package eventlog

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// copyFold keeps every commit as it was applied.
type copyFold struct {
	mu      sync.Mutex
	entries []Entry
}

func (f *copyFold) Apply(seq uint64, hash string, c event.Commit) {
	f.mu.Lock()
	f.entries = append(f.entries, Entry{Seq: seq, Hash: hash, Commit: c})
	f.mu.Unlock()
}

// replayed is the whole log, read afresh.
func replayed(l *Log) ([]Entry, error) {
	var out []Entry
	err := l.Replay(context.Background(), Range{}, func(e Entry) error { e.Size = 0; out = append(out, e); return nil })
	return out, err
}

var wording = rapid.OneOf(rapid.StringMatching(`[a-z ]{0,20}`), rapid.String(),
	rapid.SampledFrom([]string{"a\xffb", "\xed\xa0\x80", "<&>\u2028", "\\ufffd", "quote\"back\\slash"}))

func randomEvents(t *rapid.T) []event.Event {
	var out []event.Event
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		var paths []string
		if n := rapid.IntRange(0, 3).Draw(t, "paths"); n > 0 {
			paths = rapid.SliceOfN(wording, n, n).Draw(t, "path")
		}
		out = append(out, rapid.SampledFrom([]event.Event{
			event.InstructionAccepted{Text: wording.Draw(t, "text"), Mode: event.ModeNormal},
			event.SessionCreated{Title: wording.Draw(t, "title"), Nonce: event.NewNonce()},
			event.ToolCallStarted{Tool: "read_files", Input: event.Input{Paths: paths}},
			event.ToolCallFinished{Tool: "read_files", Observed: paths, DurationMS: rapid.Int64().Draw(t, "ms")},
			event.SessionClosed{},
		}).Draw(t, "event"))
	}
	return out
}

// step is a hook that fails by lot.
func step(dice *atomic.Uint64, one uint64) func(uint64) error {
	return func(uint64) error {
		if one > 0 && dice.Add(0x9e3779b97f4a7c15)>>32%one == 0 {
			return errInjected
		}
		return nil
	}
}

// Three writers append by lot while publications, replies and acknowledgements are lost by
// lot. Whatever Append said holds: what stood is in the log once, in its place, what did not
// stand is nowhere; and the folds saw live what a replay and the next start give.
func TestLogAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	root, life := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		life++
		var dice atomic.Uint64
		dice.Store(rapid.Uint64().Draw(rt, "dice"))
		lose := rapid.SampledFrom([]uint64{0, 9, 4}).Draw(rt, "lose one in")
		live := &copyFold{}
		o := Options{Dir: filepath.Join(root, strconv.Itoa(life)), Durability: Process, MaxBytes: 64 << 20, Server: event.NewInstanceID(), Folds: []Fold{live},
			Faults: &Faults{AfterPublish: step(&dice, lose), AfterAck: step(&dice, lose)}}
		l, err := Open(context.Background(), o)
		if err != nil {
			rt.Fatal(err)
		}
		stood := modelRun(rt, l)
		again, err := replayed(l)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(live.entries, again); d != "" {
			rt.Fatalf("live and replay differ: %s", d)
		}
		checkModel(rt, again, stood)
		if err := l.Close(); err != nil {
			rt.Fatal(err)
		}
		next := &copyFold{}
		o.Folds, o.Faults, o.ReadOnly = []Fold{next}, nil, true
		if l, err = Open(context.Background(), o); err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if d := cmp.Diff(live.entries, next.entries); d != "" {
			rt.Fatalf("live and the next start differ: %s", d)
		}
	})
}

// modelRun appends from three writers on two aggregates; it gives the ids that stood.
func modelRun(rt *rapid.T, l *Log) map[event.CommandID]bool {
	aggs := []event.Aggregate{event.SessionAggregate("a"), event.SessionAggregate("b")}
	plan := make([][]Draft, 3)
	for w := range plan {
		for range rapid.IntRange(1, 8).Draw(rt, "commits") {
			plan[w] = append(plan[w], Draft{ID: event.NewCommandID(), Aggregate: rapid.SampledFrom(aggs).Draw(rt, "aggregate"),
				At: time.Now(), Events: randomEvents(rt)})
		}
	}
	var mu sync.Mutex
	stood := map[event.CommandID]bool{}
	var wg sync.WaitGroup
	for _, drafts := range plan {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for _, d := range drafts {
				var err error
				if d.Expect, err = l.Head(d.Aggregate); err == nil {
					_, err = l.Append(context.Background(), d)
				}
				mu.Lock()
				stood[d.ID] = err == nil
				if err != nil && !errors.Is(err, ErrConflict) {
					rt.Errorf("append: %v", err)
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return stood
}

func checkModel(rt *rapid.T, log []Entry, stood map[event.CommandID]bool) {
	seen := map[event.CommandID]int{}
	for i, e := range log {
		if e.Seq != uint64(i+1) {
			rt.Fatalf("sequence %d in place %d", e.Seq, i+1)
		}
		seen[e.Commit.ID]++
	}
	for id, ok := range stood {
		if ok && seen[id] != 1 || !ok && seen[id] != 0 {
			rt.Fatalf("a draft that stood=%v is %d times in the log", ok, seen[id])
		}
	}
}

// Replay gives one record or all, in order, from a running log and from a closed one.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	a, b := event.SessionAggregate(event.NewSessionID()), event.SessionAggregate(event.NewSessionID())
	var want []event.CommandID
	for range 5 {
		d, _ := mustAppend(t, l, a)
		want = append(want, d.ID)
		mustAppend(t, l, b)
	}
	if d := cmp.Diff(want, ids(t, l, a)); d != "" {
		t.Error(d)
	}
	if s, err := l.js.Stream(context.Background(), streamName); err != nil || s.CachedInfo().State.Consumers != 0 {
		t.Errorf("a replay left its consumer behind: %v", err)
	}
	all, err := replayed(l)
	if err != nil || len(all) != 11 {
		t.Fatalf("%d commits, %v", len(all), err)
	}
	if err := l.Replay(context.Background(), Range{Aggregate: event.Aggregate{Domain: "session", ID: "a.b"}}, nil); fault.KindOf(err) != fault.InvalidArguments {
		t.Errorf("a name with a dot: %v", err)
	}
	stop := errors.New("stop")
	if err := l.Replay(context.Background(), Range{}, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the caller's error came back as %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := l.Replay(ctx, Range{}, func(Entry) error { cancel(); return nil }); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Replay(context.Background(), Range{}, func(Entry) error { return nil }); fault.KindOf(err) != fault.ShuttingDown {
		t.Errorf("after Close: %v", err)
	}
	l = open(t, dir, func(o *Options) { o.ReadOnly = true })
	if d := cmp.Diff(want, ids(t, l, a)); d != "" {
		t.Error(d)
	}
	if _, err := l.Append(context.Background(), draft(l, t, a)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("append to a log opened for reading: %v", err)
	}
	if s := l.Status(); s.Writing || s.Seq != 11 {
		t.Errorf("status %+v", s)
	}
}

// Reading makes no log where there is none.
func TestReadOnlyMakesNothing(t *testing.T) {
	for _, dir := range []string{t.TempDir(), t.TempDir() + "/missing"} {
		if _, err := Open(t.Context(), Options{Dir: dir, ReadOnly: true}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%v", err)
		}
	}
}
