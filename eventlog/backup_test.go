package eventlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// exported is a log's bodies and where they begin and end.
type exported struct {
	first, last uint64
	bodies      [][]byte
}

func export(t testing.TB, l *Log) exported {
	t.Helper()
	var x exported
	err := l.Export(context.Background(), func(first, last uint64) error { x.first, x.last = first, last; return nil },
		func(body []byte) error { x.bodies = append(x.bodies, bytes.Clone(body)); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// span checks the copy by itself.
func (x exported) span() (Span, error) {
	c := NewCheck(x.first)
	for _, b := range x.bodies {
		if _, err := c.Add(b); err != nil {
			return Span{}, err
		}
	}
	return c.End()
}

func (x exported) restore(t testing.TB, dir string, want Span) error {
	t.Helper()
	rest, size := x.bodies, 0
	for _, b := range rest {
		size += len(b)
	}
	return Import(t.Context(), ImportOptions{Dir: dir, Server: event.NewInstanceID(), Want: want, Bytes: int64(size)}, func() ([]byte, error) {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		b := rest[0]
		rest = rest[1:]
		return b, nil
	})
}

// checkRestored holds a restored log to its copy: the same bytes at the same sequences, then
// one commit that begins another history, and records that go on.
func checkRestored(t *testing.T, dir string, x exported, span Span, aggs []event.Aggregate, heads map[event.Aggregate]Head) {
	t.Helper()
	r := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = Always, 0 })
	if r.Epoch() == span.Epoch || r.Epoch() == "" {
		t.Error("the history has no name of its own")
	}
	again := export(t, r)
	if again.first != x.first || again.last != x.last+1 || !slices.EqualFunc(x.bodies, again.bodies[:len(x.bodies)], bytes.Equal) {
		t.Errorf("%d to %d, was %d to %d", again.first, again.last, x.first, x.last)
	}
	c, err := event.Decode(again.bodies[len(x.bodies)])
	if err != nil {
		t.Fatal(err)
	}
	want := []event.Event{event.LogRestored{Epoch: r.Epoch(), From: span.Epoch, LastSeq: span.Last}}
	if diff := cmp.Diff(want, c.Events); diff != "" {
		t.Error(diff)
	}
	for _, a := range aggs {
		if h, err := r.Head(a); err != nil || h != heads[a] {
			t.Fatalf("%s: %+v %v, want %+v", a, h, err, heads[a])
		}
	}
	spread(t, r, aggs, 10)
	if s := r.Status(); len(s.Damaged) > 0 {
		t.Errorf("%+v", s)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r = open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = Always, 0 }); len(r.Status().Damaged) > 0 {
		t.Errorf("the start after: %+v", r.Status())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func headsOf(t *testing.T, l *Log, aggs []event.Aggregate) map[event.Aggregate]Head {
	t.Helper()
	out := map[event.Aggregate]Head{}
	for _, a := range aggs {
		h, err := l.Head(a)
		if err != nil {
			t.Fatal(err)
		}
		out[a] = h
	}
	return out
}

// TestExportImport: a log made out of the copy of another one has its sequences, versions and
// hashes, and is another history.
func TestExportImport(t *testing.T) {
	t.Parallel()
	aggs := aggregates(50)
	l := open(t, t.TempDir(), func(o *Options) { o.Durability = Always })
	for range 2 {
		spread(t, l, aggs, 200)
	}
	x := export(t, l)
	span, err := x.span()
	if err != nil || span.First != 1 || span.Last != uint64(len(x.bodies)) || span.Epoch != l.Epoch() {
		t.Fatalf("%+v %v", span, err)
	}
	dir := t.TempDir()
	if err := x.restore(t, dir, span); err != nil {
		t.Fatal(err)
	}
	checkRestored(t, dir, x, span, aggs, headsOf(t, l, aggs))
	if err := x.restore(t, dir, span); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second time: %v", err)
	}
	// A copy of the copy is of the new history.
	r := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = Always, 0 })
	if s, err := export(t, r).span(); err != nil || s.Epoch != r.Epoch() || s.First != 1 {
		t.Errorf("%+v %v", s, err)
	}
}

// TestExportImportOfAPrunedLog: what begins in the middle of its sequence does so in the copy,
// carried state included.
//
// Covers: RES-19
func TestExportImportOfAPrunedLog(t *testing.T) {
	t.Parallel()
	dir, base, aggs := t.TempDir(), newIndex(), aggregates(100)
	l := grown(t, dir, base, aggs)
	carryAll(t, l, aggs, 3)
	cut, _ := lastSealed(t, l)
	if err := l.Prune(t.Context(), cut, "operator"); err != nil {
		t.Fatal(err)
	}
	spread(t, l, aggs[:50], 10)
	x := export(t, l)
	span, err := x.span()
	if err != nil || span.First != cut || span.Epoch != l.Epoch() {
		t.Fatalf("%+v %v, cut at %d", span, err, cut)
	}
	to := t.TempDir()
	if err := x.restore(t, to, span); err != nil {
		t.Fatal(err)
	}
	checkRestored(t, to, x, span, aggs, headsOf(t, l, aggs))
	// Without one part of one state the copy is refused.
	for i, b := range x.bodies {
		if c, _ := event.Decode(b); c.Aggregate == aggs[7] {
			y := x
			y.bodies = slices.Delete(slices.Clone(x.bodies), i, i+1)
			if err := y.restore(t, t.TempDir(), span); fault.KindOf(err) != fault.LogDamaged {
				t.Errorf("a part is missing: %v", err)
			}
			break
		}
	}
}

// TestExportWhileOthersWrite: the copy ends where it said at its beginning, whole and checked,
// whatever is appended meanwhile.
func TestExportWhileOthersWrite(t *testing.T) {
	t.Parallel()
	for _, mode := range []Durability{Always, Process} {
		// The writers may be fast: room is not what is tested.
		l := open(t, t.TempDir(), func(o *Options) { o.Durability, o.MaxBytes = mode, 8<<30 })
		spread(t, l, aggregates(200), 10)
		stop, wg := make(chan struct{}), sync.WaitGroup{}
		for range 2 {
			a := event.SessionAggregate(event.NewSessionID())
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						d := draft(l, t, a)
						if _, err := l.Append(context.Background(), d); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		for range 2 {
			x := export(t, l)
			if s, err := x.span(); err != nil || s.Last != x.last || uint64(len(x.bodies)) != x.last-x.first+1 || s.Last > l.SyncedSeq() {
				t.Errorf("%s: %+v %v", mode, s, err)
			}
		}
		close(stop)
		wg.Wait()
	}
}

// TestCopyThatIsNoCopy: a body that is cut, changed, missing, doubled, out of order or of
// another log is found before the directory is good for anything.
func TestCopyThatIsNoCopy(t *testing.T) {
	t.Parallel()
	aggs := aggregates(5)
	l := open(t, t.TempDir(), func(o *Options) { o.Durability = Always })
	for range 2 {
		spread(t, l, aggs, 20)
	}
	x := export(t, l)
	span, err := x.span()
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, t.TempDir(), func(o *Options) { o.Durability = Always })
	spread(t, other, aggregates(10), 20)
	y := export(t, other)
	for name, change := range map[string]func([][]byte) [][]byte{
		"the last one missing": func(b [][]byte) [][]byte { return b[:len(b)-1] },
		"one missing":          func(b [][]byte) [][]byte { return slices.Delete(b, 3, 4) },
		"one doubled":          func(b [][]byte) [][]byte { return slices.Insert(b, 3, b[3]) },
		"one more":             func(b [][]byte) [][]byte { return append(b, y.bodies[2]) },
		"two exchanged":        func(b [][]byte) [][]byte { b[1], b[6] = b[6], b[1]; return b },
		"another log's":        func([][]byte) [][]byte { return y.bodies },
		"nothing":              func([][]byte) [][]byte { return nil },
		"cut":                  func(b [][]byte) [][]byte { b[4] = b[4][:len(b[4])-3]; return b },
		"empty":                func(b [][]byte) [][]byte { b[4] = nil; return b },
	} {
		z := x
		z.bodies = change(slices.Clone(x.bodies))
		if err := z.restore(t, t.TempDir(), span); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range x.bodies[3] { // any bit of a commit
		z := x
		z.bodies = slices.Clone(x.bodies)
		z.bodies[3] = bytes.Clone(x.bodies[3])
		z.bodies[3][i] ^= 4
		if s, err := z.span(); err == nil && s == span {
			t.Errorf("byte %d flipped: found by nobody", i)
		}
	}
	broken := errors.New("broken")
	err = Import(t.Context(), ImportOptions{Dir: t.TempDir(), Server: event.NewInstanceID(), Want: span}, func() ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("a source that breaks: %v", err)
	}
	if err := x.restore(t, t.TempDir(), Span{First: 1, Last: 1 << 40, Hash: span.Hash, Digest: span.Digest, Epoch: span.Epoch}); fault.KindOf(err) != fault.StorageFull {
		t.Errorf("more than fits: %v", err)
	}
}
