package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog/event"
)

var discard = slog.New(slog.DiscardHandler)

// memory is a fold that keeps what it saw.
type memory struct {
	mu   sync.Mutex
	seqs []uint64
	byID map[event.CommandID]uint64
}

func (m *memory) Apply(seq uint64, _ string, c event.Commit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = map[event.CommandID]uint64{}
	}
	m.seqs = append(m.seqs, seq)
	m.byID[c.ID] = seq
}

func (m *memory) seen(id event.CommandID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.byID[id]
	return ok
}

func open(t *testing.T, dir string, change ...func(*Options)) *Log {
	t.Helper()
	o := Options{Dir: dir, Durability: Process, MaxBytes: 64 << 20, Server: event.NewInstanceID()}
	for _, f := range change {
		f(&o)
	}
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open: %v (%v)", err, errors.Unwrap(err))
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func draft(l *Log, t *testing.T, a event.Aggregate) Draft {
	t.Helper()
	h, err := l.Head(a)
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	return Draft{ID: event.NewCommandID(), Aggregate: a, Expect: h, At: time.Now(),
		Actor:  event.Actor{Credential: "owner"},
		Events: []event.Event{event.InstructionAccepted{Text: "do it", Continuation: "created", Mode: event.ModeNormal}}}
}

func TestAppendIsAppliedBeforeItReturns(t *testing.T) {
	fold := &memory{}
	dir := t.TempDir()
	l := open(t, dir, func(o *Options) { o.Folds = []Fold{fold} })
	a := event.SessionAggregate(event.NewSessionID())
	for range 3 {
		d := draft(l, t, a)
		r, err := l.Append(context.Background(), d)
		if err != nil {
			t.Fatal(err)
		}
		if !fold.seen(d.ID) {
			t.Fatalf("commit %d was released before the fold saw it", r.Seq)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again := &memory{}
	l = open(t, dir, func(o *Options) { o.Folds = []Fold{again} })
	if len(again.seqs) != 4 || again.seqs[3] != 4 {
		t.Fatalf("the feed gave %v, want 1 to 4", again.seqs)
	}
	h, _ := l.Head(a)
	if h.Version != 3 || h.Seq != 4 {
		t.Fatalf("head %+v", h)
	}
}

func mustAppend(t *testing.T, l *Log, a event.Aggregate) (Draft, Receipt) {
	t.Helper()
	d := draft(l, t, a)
	r, err := l.Append(context.Background(), d)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return d, r
}
