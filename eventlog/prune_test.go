package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// pruneBudget is a budget that makes JetStream cut its blocks at 4 MiB, the least it does.
const pruneBudget = 31 << 20

// spread appends to every aggregate once, from several writers, some text each.
func spread(tb testing.TB, l *Log, aggs []event.Aggregate, text int) {
	tb.Helper()
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < len(aggs); i += 8 {
				h, err := l.Head(aggs[i])
				if err == nil {
					_, err = l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: aggs[i], Expect: h, At: time.Now(),
						Events: []event.Event{event.InstructionAccepted{Text: strings.Repeat("x", text), Mode: event.ModeNormal}}})
				}
				if err != nil {
					tb.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

// carryAll brings every aggregate's state forward.
func carryAll(t *testing.T, l *Log, aggs []event.Aggregate, parts int) {
	t.Helper()
	for _, a := range aggs {
		for _, e := range carried(t, []byte(`"state of `+a.ID+`"`), parts) {
			h, err := l.Head(a)
			if err == nil {
				_, err = l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: a, Expect: h, At: time.Now(), Events: []event.Event{e}})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// grown is a log of several blocks, all of whose aggregates are in the first ones alone.
func grown(t *testing.T, dir string, base *index, aggs []event.Aggregate, change ...func(*Options)) *Log {
	t.Helper()
	l := open(t, dir, append([]func(*Options){over(base), func(o *Options) { o.Durability, o.MaxBytes = Always, pruneBudget }}, change...)...)
	spread(t, l, aggs, 9<<20/len(aggs))
	return l
}

func lastSealed(t *testing.T, l *Log) (cut uint64, before []Block) {
	t.Helper()
	blocks, err := l.Blocks()
	if err != nil || len(blocks) < 2 {
		t.Fatalf("%+v %v", blocks, err)
	}
	return blocks[len(blocks)-1].First, blocks
}

// A prune takes a prefix and nothing else: 1,000 aggregates go on, those that believe a record
// new are refused by the log and by the store, and so it stays after a start with the read
// models and after one without.
//
// Covers: RES-19
func TestPrunedAggregatesGoOn(t *testing.T) {
	t.Parallel()
	dir, base, aggs := t.TempDir(), newIndex(), aggregates(1000)
	l := grown(t, dir, base, aggs)
	carryAll(t, l, aggs, 1)
	cut, before := lastSealed(t, l)
	space := l.Status().Bytes
	if err := l.Prune(context.Background(), cut, "operator"); err != nil {
		t.Fatal(err)
	}
	blocks, err := l.Blocks()
	if err != nil || len(blocks) != 1 || blocks[0].First != cut || blocks[0].Index != before[len(before)-1].Index {
		t.Errorf("%+v %v", blocks, err)
	}
	if s := l.Status(); s.FirstSeq != cut || s.PrunedTo != cut || s.Bytes >= space || s.Aggregates != 1001 {
		t.Errorf("%+v, %d bytes before", s, space)
	}
	// A reader that began before is told what happened; after a start it would be a mistake.
	behind := func(l *Log, reason string) {
		t.Helper()
		if f := fault.As(l.feed(context.Background(), 1, cut, func(message) error { return nil })); f == nil || f.Reason != reason {
			t.Errorf("a feed from before the beginning: %v", f)
		}
	}
	behind(l, "pruned")
	epoch := l.Epoch()
	refused := func(l *Log) {
		t.Helper()
		for _, a := range aggs[:50] {
			stale := Draft{ID: event.NewCommandID(), Aggregate: a, At: time.Now(), Events: threeEvents(0)}
			if _, err := l.Append(context.Background(), stale); !errors.Is(err, ErrConflict) {
				t.Fatalf("expected 0: %v", err)
			}
		}
	}
	for _, a := range aggs { // of the store itself, as from another server
		m := &nats.Msg{Subject: subjectOf(a), Data: []byte("{}"), Header: nats.Header{expectHeader: {"0"}}}
		_, err := l.js.PublishMsg(context.Background(), m)
		if api := (*jetstream.APIError)(nil); !errors.As(err, &api) || api.ErrorCode != codeWrongLastSeq && api.ErrorCode != codeWrongLastSeqConstant {
			t.Fatalf("%s took a first commit: %v", a, err)
		}
	}
	refused(l)
	spread(t, l, aggs, 10)
	for life, b := range []*index{base, nil, newIndex()} {
		want := map[event.Aggregate]Head{}
		for _, a := range aggs {
			want[a], _ = l.Head(a)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		fresh := &index{}
		if l = open(t, dir, func(o *Options) {
			o.Durability, o.MaxBytes = Always, pruneBudget
			if b != nil {
				fresh = b.restarted()
				o.Base = fresh
			}
		}); l.Epoch() != epoch {
			t.Errorf("life %d: epoch %q, want %q", life, l.Epoch(), epoch)
		}
		if s := l.Status(); len(s.Damaged) > 0 || s.Aggregates != 1001 || s.FirstSeq != cut || b != nil && (s.Folded == 0) != (b == base) {
			t.Errorf("life %d: %+v", life, s)
		}
		for _, a := range aggs {
			if h, err := l.Head(a); err != nil || h != want[a] {
				t.Fatalf("life %d: %+v %v, want %+v", life, h, err, want[a])
			}
		}
		refused(l)
		behind(l, ResetBeforeStart)
		spread(t, l, aggs[:20], 10)
		if b == nil { // the base missed those
			continue
		}
		base = fresh
	}
}

// What may not leave is kept, and the refusal says why.
func TestPruneRefusesWhatWouldLoseSomething(t *testing.T) {
	t.Parallel()
	dir, base, aggs := t.TempDir(), newIndex(), aggregates(100)
	l := grown(t, dir, base, aggs)
	cut, _ := lastSealed(t, l)
	refuse := func(first uint64, kind fault.Kind, reason string) {
		t.Helper()
		err := l.Prune(context.Background(), first, "age")
		if f := fault.As(err); err == nil || f.Kind != kind || f.Reason != reason {
			t.Errorf("prune at %d: %v", first, err)
		}
	}
	refuse(cut+1, fault.InvalidArguments, "")
	refuse(cut-1, fault.InvalidArguments, "")
	refuse(10_000, fault.InvalidArguments, "")
	refuse(cut, fault.Conflict, "still_needed")
	// One aggregate of the first block stays behind.
	early := slices.IndexFunc(aggs, func(a event.Aggregate) bool { h, _ := l.Head(a); return h.Seq == 2 })
	carryAll(t, l, slices.Delete(slices.Clone(aggs), early, early+1), 2)
	refuse(cut, fault.Conflict, "still_needed")
	if _, err := l.Append(context.Background(), func() Draft {
		d := draft(l, t, event.RetentionAggregate())
		d.Events = []event.Event{event.SessionRemoved{Session: event.SessionID(aggs[early].ID)}}
		return d
	}()); err != nil {
		t.Fatal(err)
	}
	base.mu.Lock()
	at := base.file.cp
	base.file.cp.Seq = cut - 1
	base.mu.Unlock()
	refuse(cut, fault.Unavailable, "read_models_behind")
	base.mu.Lock()
	base.file.cp = at
	base.mu.Unlock()
	if l.Status().FirstSeq != 1 || l.Status().PrunedTo != 0 {
		t.Fatalf("a refused prune left %+v", l.Status())
	}
	if err := l.Prune(context.Background(), cut, "age"); err != nil {
		t.Fatal(err)
	}
	if err := l.Prune(context.Background(), cut, "age"); err != nil || l.Status().FirstSeq != cut {
		t.Errorf("once more: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, func(o *Options) { o.ReadOnly = true })
	if s := l.Status(); len(s.Damaged) > 0 {
		t.Errorf("the removed Session counts as damaged: %+v", s)
	}
	n := 0
	if err := l.Replay(context.Background(), Range{}, func(Entry) error { n++; return nil }); err != nil || uint64(n) != l.Status().Seq-cut+1 {
		t.Errorf("replay gave %d: %v", n, err)
	}
	if err := l.Prune(context.Background(), cut+1, "age"); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("of a log opened for reading: %v", err)
	}
}

// A log that begins later than a log.pruned says, or a base that ends before it, is not
// believed.
func TestBeginningIsHeldAgainstLogPruned(t *testing.T) {
	t.Parallel()
	dir, base, aggs := t.TempDir(), newIndex(), aggregates(100)
	l := grown(t, dir, base, aggs)
	old := base.restarted()
	old.file.cp.Seq, old.file.cp.Hash = 2, hashAt(t, l, 2)
	carryAll(t, l, aggs, 1)
	cut, _ := lastSealed(t, l)
	if err := l.Prune(context.Background(), cut, "bytes"); err != nil {
		t.Fatal(err)
	}
	seq := l.Status().Seq
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, checkpointName)); err != nil {
		t.Fatal(err)
	}
	l = open(t, dir, over(old), func(o *Options) { o.Durability, o.MaxBytes = Always, pruneBudget })
	if d := cmp.Diff([]string{ResetBeforeStart}, old.resets); d != "" || l.Status().Folded != seq-cut+1 || len(l.Status().Damaged) > 0 {
		t.Errorf("%s %+v", d, l.Status())
	}
	spread(t, l, aggs, 9<<20/len(aggs))
	beyond, _ := lastSealed(t, l)
	if err := l.stream.Purge(context.Background(), jetstream.WithPurgeSequence(beyond)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err := Open(context.Background(), Options{Dir: dir, Durability: Always, MaxBytes: pruneBudget}); err == nil {
		_ = l.Close()
		t.Fatal("a log whose beginning went without log.pruned was opened")
	} else if f := fault.As(err); f.Kind != fault.LogDamaged {
		t.Errorf("%v", err)
	}
}

func hashAt(t *testing.T, l *Log, seq uint64) string {
	t.Helper()
	m, err := l.get(context.Background(), seq)
	if err != nil {
		t.Fatal(err)
	}
	return event.Hash(m.Data)
}

// A process that dies after log.pruned or between two purges leaves a log that opens, begins
// no later than announced and has every acknowledged commit; the same prune finishes it.
func TestDeathInAPruneLosesNothing(t *testing.T) {
	for _, point := range []string{"announced", "first purge", "in a purge"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cut := dieInAPrune(t, dir, point)
			base := newIndex()
			l := open(t, dir, over(base), func(o *Options) { o.Durability, o.MaxBytes = Always, pruneBudget })
			s := l.Status()
			if s.FirstSeq > cut || s.PrunedTo != cut && point != "in a purge" || s.PrunedTo > cut || len(s.Damaged) > 0 || s.Aggregates != 101 {
				t.Fatalf("cut at %d: %+v", cut, s)
			}
			for _, a := range aggregates(100) {
				if h, err := l.Head(a); err != nil || h.Version != 2 {
					t.Fatalf("%+v %v", h, err)
				}
			}
			if err := l.Prune(context.Background(), cut, "age"); err != nil || l.Status().FirstSeq != cut {
				t.Errorf("finish it: %v %+v", err, l.Status())
			}
			announced := 0
			err := l.Replay(context.Background(), Range{Aggregate: event.LogAggregate()}, func(e Entry) error {
				if _, ok := e.Commit.Events[0].(event.LogPruned); ok {
					announced++
				}
				return nil
			})
			if err != nil || announced != 1 {
				t.Errorf("log.pruned stands %d times: %v", announced, err)
			}
			spread(t, l, aggregates(100), 10)
		})
	}
}

// Environment of a child that prunes: the point at which it dies, and its directory.
const (
	envPrune    = "EVENTLOG_TEST_PRUNE"
	envPruneDir = "EVENTLOG_TEST_PRUNE_DIR"
)

func init() {
	if point := os.Getenv(envPrune); point != "" {
		prunePart(point)
		os.Exit(1) // it should have died
	}
}

// dieInAPrune runs the child to its death and gives where it wanted to cut.
func dieInAPrune(t *testing.T, dir, point string) (cut uint64) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe)
	cmd.Env = append(os.Environ(), envPrune+"="+point, envPruneDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, scanErr := fmt.Fscanln(out, &cut)
	if point == "in a purge" {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); scanErr != nil || !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the child said %v and ended with %v", scanErr, err)
	}
	return cut
}

// prunePart prunes and dies at a named point of it.
func prunePart(point string) {
	base, aggs := newIndex(), aggregates(100)
	o := Options{Dir: os.Getenv(envPruneDir), Durability: Always, MaxBytes: pruneBudget, Server: event.NewInstanceID(), Base: base}
	var cut uint64
	die := func(seq uint64) error {
		if cut > 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	switch point {
	case "announced":
		o.Faults = &Faults{AfterApply: die}
	case "first purge":
		o.Faults = &Faults{AfterPurge: die}
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		panic(err)
	}
	spread(panics{}, l, aggs, 9<<20/len(aggs))
	for _, a := range aggs {
		h, err := l.Head(a)
		if err != nil {
			panic(err)
		}
		parts, _ := event.SplitState(1, []byte("{}"))
		if _, err := l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: a, Expect: h, At: time.Now(), Events: []event.Event{event.SessionCarried{Part: parts[0]}}}); err != nil {
			panic(err)
		}
	}
	blocks, err := l.Blocks()
	if err != nil {
		panic(err)
	}
	cut = blocks[len(blocks)-1].First
	fmt.Println(cut)
	if err := l.Prune(context.Background(), cut, "age"); err != nil {
		panic(err)
	}
	select {}
}

// panics ends a child whose step failed.
type panics struct{ testing.TB }

func (panics) Helper()           {}
func (panics) Error(args ...any) { panic(args[0]) }
