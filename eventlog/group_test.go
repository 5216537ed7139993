package eventlog

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// slowDisk is a disk whose syncs end when the test says so.
type slowDisk struct {
	begun chan struct{}
	end   chan error
	count atomic.Int32
}

func newSlowDisk() *slowDisk {
	return &slowDisk{begun: make(chan struct{}, 100), end: make(chan error)}
}

func (d *slowDisk) sync(f *os.File) error {
	d.count.Add(1)
	d.begun <- struct{}{}
	if err := <-d.end; err != nil {
		return err
	}
	return fdatasync(f)
}

// appendSoon appends to an aggregate of its own in the background.
func appendSoon(t *testing.T, l *Log) chan error {
	t.Helper()
	d := draft(l, t, event.SessionAggregate(event.NewSessionID()))
	done := make(chan error, 1)
	go func() { _, err := l.Append(context.Background(), d); done <- err }()
	return done
}

func pendingErr(c chan error) bool {
	select {
	case err := <-c:
		c <- err
		return false
	default:
		return true
	}
}

// Grouping waits on no timer: an append is published at once, even while the disk syncs for
// ever, and its own sync begins when the one before ends; later appends neither delay it nor
// are let out with it before a sync has covered them.
//
// Covers: SES-45, SES-46
func TestGroupIsNeverExtended(t *testing.T) {
	disk := newSlowDisk()
	published := make(chan uint64, 1000)
	var armed atomic.Bool // not while the log opens and closes
	l := open(t, t.TempDir(), func(o *Options) { o.Durability = Group },
		withFaults(&Faults{Fdatasync: func(f *os.File) error {
			if !armed.Load() {
				return fdatasync(f)
			}
			return disk.sync(f)
		}, AfterPublish: func(seq uint64) error { published <- seq; return nil }}))
	armed.Store(true)
	for len(published) > 0 {
		<-published
	}
	first := appendSoon(t, l)
	<-published
	<-disk.begun // a group of one, closed
	var second []chan error
	for range 20 {
		second = append(second, appendSoon(t, l))
		<-published // although the disk is busy
	}
	if !pendingErr(first) || disk.count.Load() != 1 {
		t.Fatal("a reply was released, or a sync begun, before the first sync had ended")
	}
	acknowledgedAll(t, l, 21)
	disk.end <- nil
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	<-disk.begun // the second begins at once, over all that waited
	late := appendSoon(t, l)
	<-published
	for _, c := range second {
		if !pendingErr(c) {
			t.Fatal("a reply was released before its sync had ended")
		}
	}
	if head := l.Status(); head.Seq != l.SyncedSeq() {
		t.Errorf("status %d is ahead of the disk, %d", head.Seq, l.SyncedSeq())
	}
	disk.end <- nil
	for _, c := range second {
		if err := <-c; err != nil {
			t.Fatal(err)
		}
	}
	<-disk.begun
	if !pendingErr(late) {
		t.Error("the latest was let out by a sync that had begun before it")
	}
	disk.end <- nil
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	armed.Store(false)
}

// acknowledgedAll waits until the committer knows so many published commits to be stored.
func acknowledgedAll(t *testing.T, l *Log, n int) {
	t.Helper()
	await(t, func() bool {
		l.writer.mu.Lock()
		defer l.writer.mu.Unlock()
		settled := 0
		for _, e := range l.writer.line {
			if e.settled {
				settled++
			}
		}
		return settled >= n
	})
}

// The first failed fdatasync ends writing: those that waited for it, those published
// meanwhile and all later ones learn that nobody knows; none gets a success, and no sync is
// tried again. What is there after a restart is whole.
func TestFailedFdatasyncEndsWriting(t *testing.T) {
	dir := t.TempDir()
	var failing atomic.Bool
	var syncs atomic.Int32
	l := open(t, dir, func(o *Options) { o.Durability = Group }, withFaults(&Faults{Fdatasync: func(f *os.File) error {
		if !failing.Load() {
			return fdatasync(f)
		}
		syncs.Add(1)
		return errInjected
	}}))
	a := event.SessionAggregate(event.NewSessionID())
	_, r := mustAppend(t, l, a)
	failing.Store(true)
	var wg sync.WaitGroup
	for range 32 {
		b := event.SessionAggregate(event.NewSessionID())
		d := draft(l, t, b)
		wg.Go(func() {
			for range 3 {
				if _, err := l.Append(context.Background(), d); fault.KindOf(err) != fault.PersistenceUncertain {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	failing.Store(false)
	if _, err := l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: a, Expect: Head{1, r.Seq, r.Hash},
		At: time.Now(), Events: threeEvents(1)}); fault.KindOf(err) != fault.PersistenceUncertain {
		t.Errorf("after the disk works again: %v", err)
	}
	if s := l.Status(); s.Writing || s.Reason != "sync_failed" || s.Seq != r.Seq || s.SyncedSeq != r.Seq || syncs.Load() != 1 {
		t.Errorf("%d syncs, status %+v", syncs.Load(), s)
	}
	if err := l.Close(); fault.KindOf(err) != fault.PersistenceUncertain {
		t.Errorf("close: %v", err)
	}
	l = open(t, dir, func(o *Options) { o.Durability = Group })
	if got := ids(t, l, a); len(got) != 1 {
		t.Errorf("the acknowledged commit is gone: %v", got)
	}
	mustAppend(t, l, a)
}

// Commits of many bytes are cut into groups, in order.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var tops []uint64
	l := open(t, t.TempDir(), func(o *Options) { o.Durability, o.MaxBytes = Group, 256<<20 },
		withFaults(&Faults{AfterSync: func(seq uint64) error {
			mu.Lock()
			tops = append(tops, seq)
			mu.Unlock()
			return nil
		}}))
	const size = 200 << 10
	var wg sync.WaitGroup
	for range 64 {
		d := draft(l, t, event.SessionAggregate(event.NewSessionID()))
		d.Events = []event.Event{event.InstructionAccepted{Text: string(make([]byte, size/6))}}
		wg.Go(func() {
			if _, err := l.Append(context.Background(), d); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	last := uint64(0)
	for _, top := range tops {
		if n := top - last; n*size > maxGroup+size {
			t.Errorf("%d commits in one group", n)
		}
		last = top
	}
}
