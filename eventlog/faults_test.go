package eventlog

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

var errInjected = errors.New("injected")

// once fails the nth call of a hook.
func once(n int32) func(uint64) error {
	var calls atomic.Int32
	return func(uint64) error {
		if calls.Add(1) == n {
			return errInjected
		}
		return nil
	}
}

func withFaults(f *Faults) func(*Options) { return func(o *Options) { o.Faults = f } }

// ids lists the command ids of one aggregate in order, off the log itself.
func ids(t *testing.T, l *Log, a event.Aggregate) []event.CommandID {
	t.Helper()
	var out []event.CommandID
	if err := l.Replay(context.Background(), Range{Aggregate: a}, func(e Entry) error { out = append(out, e.Commit.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// An acknowledgement that never comes does not double the commit and does not lose it,
// wherever it was lost; the commits behind it keep the log's order.
func TestLostAcknowledgementStandsOnce(t *testing.T) {
	for name, f := range map[string]*Faults{
		"the publication": {BeforePublish: once(4)},
		"the reply":       {AfterPublish: once(4)},
		"the answer":      {AfterAck: once(4)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fold := &memory{}
			l := open(t, t.TempDir(), withFaults(f), func(o *Options) { o.Folds = []Fold{fold} })
			var wg sync.WaitGroup
			for range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					a := event.SessionAggregate(event.NewSessionID())
					var want []event.CommandID
					for range 5 {
						d := draft(l, t, a)
						if _, err := l.Append(context.Background(), d); err != nil {
							t.Errorf("append: %v", err)
							return
						}
						want = append(want, d.ID)
					}
					got := ids(t, l, a)
					for i := range want {
						if len(got) != len(want) || got[i] != want[i] {
							t.Errorf("the log has %v, appended were %v", got, want)
							return
						}
					}
				}()
			}
			wg.Wait()
			for i, seq := range fold.seqs {
				if seq != uint64(i+1) {
					t.Fatalf("the fold saw %v", fold.seqs)
				}
			}
		})
	}
}

// The first sync error ends writing: the waiter learns that nobody knows, later work is
// refused, and the next start has what the disk has.
func TestFirstSyncErrorEndsWriting(t *testing.T) {
	for _, mode := range []Durability{Always, Process} {
		t.Run(string(mode), func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, withFaults(&Faults{AfterSync: once(4)}), func(o *Options) { o.Durability = mode })
			a := event.SessionAggregate(event.NewSessionID())
			mustAppend(t, l, a)
			mustAppend(t, l, a)
			before := l.SyncedSeq()
			for range 3 {
				if _, err := l.Append(context.Background(), draft(l, t, a)); fault.KindOf(err) != fault.PersistenceUncertain {
					t.Fatalf("append: %v", err)
				}
			}
			if err := l.Admit(); fault.KindOf(err) != fault.PersistenceUncertain {
				t.Errorf("admit: %v", err)
			}
			select {
			case <-l.Failed():
			default:
				t.Error("Failed is open")
			}
			if s := l.Status(); s.Writing || s.Reason != "sync_failed" || mode == Always && l.SyncedSeq() != before {
				t.Errorf("status %+v, before %d", s, before)
			}
			if head, _ := l.Head(a); head.Version != 2 {
				t.Errorf("an uncertain commit was applied: %+v", head)
			}
			_ = l.Close()
			l = open(t, dir, func(o *Options) { o.Durability = mode })
			if got := ids(t, l, a); len(got) != 3 {
				t.Errorf("%d commits after the restart, the disk has 3", len(got))
			}
			mustAppend(t, l, a)
		})
	}
}

// No fold, head or reply is ahead of the horizon.
func TestNothingIsSeenBeforeItIsSynced(t *testing.T) {
	reached, resume := make(chan uint64, 1), make(chan struct{})
	var armed atomic.Bool
	fold := &memory{}
	l := open(t, t.TempDir(), func(o *Options) { o.Durability, o.Folds = Always, []Fold{fold} },
		withFaults(&Faults{AfterSync: func(seq uint64) error {
			if armed.Load() {
				reached <- seq
				<-resume
			}
			return nil
		}}))
	a := event.SessionAggregate(event.NewSessionID())
	d := draft(l, t, a)
	armed.Store(true)
	done := make(chan error, 1)
	go func() { _, err := l.Append(context.Background(), d); done <- err }()
	seq := <-reached
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := l.WaitApplied(ctx, seq); fault.KindOf(err) != fault.Timeout {
		t.Errorf("the commit counts as applied before its sync: %v", err)
	}
	if head, _ := l.Head(a); head.Version != 0 || fold.seen(d.ID) || l.SyncedSeq() >= seq {
		t.Errorf("head %+v, fold %v, synced %d of %d", head, fold.seen(d.ID), l.SyncedSeq(), seq)
	}
	armed.Store(false)
	close(resume)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := l.WaitApplied(context.Background(), seq); err != nil || l.SyncedSeq() != seq || !fold.seen(d.ID) {
		t.Errorf("after the sync: %v, synced %d", err, l.SyncedSeq())
	}
}

// Of two drafts on one head one stands, the other is told; nothing of it is stored.
func TestConflict(t *testing.T) {
	l := open(t, t.TempDir())
	a := event.SessionAggregate(event.NewSessionID())
	stale := draft(l, t, a)
	mustAppend(t, l, a)
	if _, err := l.Append(context.Background(), stale); !errors.Is(err, ErrConflict) {
		t.Errorf("stale draft: %v", err)
	}
	var stood, lost atomic.Int32
	var wg sync.WaitGroup
	d := draft(l, t, a)
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mine := d
			mine.ID = event.NewCommandID()
			switch _, err := l.Append(context.Background(), mine); {
			case err == nil:
				stood.Add(1)
			case errors.Is(err, ErrConflict):
				lost.Add(1)
			default:
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	if stood.Load() != 1 || lost.Load() != 15 {
		t.Errorf("%d stood, %d conflicted", stood.Load(), lost.Load())
	}
	if got := ids(t, l, a); len(got) != 2 {
		t.Errorf("the log has %d commits", len(got))
	}
}

// A cancelled call withdraws a draft that was not published; a published one stands and is
// reported as it is.
func TestCancelledDraft(t *testing.T) {
	entered, resume := make(chan struct{}), make(chan struct{})
	var armed atomic.Bool
	l := open(t, t.TempDir(), withFaults(&Faults{AfterPublish: func(uint64) error {
		if armed.CompareAndSwap(true, false) {
			close(entered)
			<-resume
		}
		return nil
	}}))
	a, b := event.SessionAggregate(event.NewSessionID()), event.SessionAggregate(event.NewSessionID())
	armed.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	flying := make(chan error, 1)
	da := draft(l, t, a)
	go func() { _, err := l.Append(ctx, da); flying <- err }()
	<-entered
	queuedErr := make(chan error, 2)
	for range 2 { // one may be in the committer's hand, so the other is in the queue
		db := draft(l, t, b)
		go func() { _, err := l.Append(ctx, db); queuedErr <- err }()
	}
	for len(l.submit) == 0 { // the queue is the only sign of its arrival
		time.Sleep(time.Millisecond)
	}
	cancel()
	for range 2 {
		if err := <-queuedErr; fault.KindOf(err) != fault.Cancelled {
			t.Errorf("queued draft: %v", err)
		}
	}
	close(resume)
	if err := <-flying; err != nil {
		t.Errorf("published draft: %v", err)
	}
	if got := ids(t, l, b); len(got) != 0 {
		t.Errorf("the withdrawn draft stands: %v", got)
	}
	if got := ids(t, l, a); len(got) != 1 {
		t.Errorf("the published draft does not stand")
	}
}

// Somebody else writing to the stream is noticed at once and ends writing: one process is
// the law, and its folds would not have seen the stranger's commit.
func TestForeignWriterEndsWriting(t *testing.T) {
	l := open(t, t.TempDir())
	a := event.SessionAggregate(event.NewSessionID())
	mustAppend(t, l, a)
	plant(t, l, event.SessionAggregate(event.NewSessionID()), 1, "")
	if _, err := l.Append(context.Background(), draft(l, t, a)); fault.KindOf(err) != fault.PersistenceUncertain {
		t.Errorf("append behind a foreign commit: %v", err)
	}
	if s := l.Status(); s.Reason != "foreign_commit" {
		t.Errorf("status %+v", s)
	}
}

// A stranger's commit of the very record that is written next ends writing too: a caller who
// decides again would else be told of a conflict for ever, since no fold sees that commit. The
// next start has it, and the record goes on behind it.
//
// Covers: EVT-30
func TestForeignCommitOfTheSameRecordEndsWriting(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	a := event.SessionAggregate(event.NewSessionID())
	mustAppend(t, l, a)
	head, err := l.Head(a)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, l, a, head.Version+1, head.Hash)
	if _, err := l.Append(context.Background(), draft(l, t, a)); fault.KindOf(err) != fault.PersistenceUncertain {
		t.Errorf("append behind a foreign commit: %v", err)
	}
	if s := l.Status(); s.Reason != "foreign_commit" {
		t.Errorf("status %+v", s)
	}
	_ = l.Close()
	l = open(t, dir)
	mustAppend(t, l, a)
	if got := ids(t, l, a); len(got) != 3 {
		t.Errorf("the record has %d commits", len(got))
	}
}

// A record whose last commit the stream has lost is damaged, and says so: no decision on what
// the folds show of it could ever be written.
func TestLostLastCommitOfARecordIsDamage(t *testing.T) {
	l := open(t, t.TempDir())
	a := event.SessionAggregate(event.NewSessionID())
	mustAppend(t, l, a)
	mustAppend(t, l, event.SessionAggregate(event.NewSessionID()))
	if err := l.stream.Purge(context.Background(), jetstream.WithPurgeSubject(subjectOf(a))); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(context.Background(), draft(l, t, a)); fault.KindOf(err) != fault.LogDamaged {
		t.Errorf("append behind a lost commit: %v", err)
	}
	if err := l.Admit(); fault.As(err).Reason != damageHole {
		t.Errorf("new work in a log with a hole: %v", err)
	}
}

// plant stores a commit past the committer.
func plant(t *testing.T, l *Log, a event.Aggregate, version uint64, prev string) {
	t.Helper()
	c := event.Commit{Format: event.Format, ID: event.NewCommandID(), Aggregate: a, Version: version, Prev: prev,
		At: time.Now(), Events: []event.Event{event.SessionClosed{}}}
	body, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	plantBytes(t, l, a, body)
}

func plantBytes(t *testing.T, l *Log, a event.Aggregate, body []byte) {
	t.Helper()
	if _, err := l.js.PublishMsg(context.Background(), &nats.Msg{Subject: subjectOf(a), Data: body}); err != nil {
		t.Fatal(err)
	}
}

// After Close nothing is taken, and closing twice is harmless.
func TestCloseDrainsAndRefuses(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	var stood atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			a := event.SessionAggregate(event.NewSessionID())
			for {
				_, err := l.Append(context.Background(), draft(l, t, a))
				if fault.KindOf(err) == fault.ShuttingDown {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				stood.Add(1)
			}
		}()
	}
	for stood.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Admit(); fault.KindOf(err) != fault.ShuttingDown {
		t.Errorf("admit: %v", err)
	}
	l = open(t, dir)
	if got := l.Status().Seq; got != uint64(stood.Load())+1 {
		t.Errorf("%d acknowledged, the log has %d", stood.Load(), got-1)
	}
}

// publishExpecting stores a body past the committer if the subject ends where it says.
func publishExpecting(l *Log, subject string, expect uint64, body []byte) error {
	_, err := l.js.PublishMsg(context.Background(), &nats.Msg{Subject: subject, Data: body, Header: nats.Header{expectHeader: {strconv.FormatUint(expect, 10)}}})
	return err
}
