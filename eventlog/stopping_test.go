package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// roomy opens the log with room for new work.
func (g evidenceLog) roomy(t *testing.T, faults *Faults) *Log {
	t.Helper()
	l, err := Open(context.Background(), Options{Dir: g.dir, Durability: g.mode, Base: g.base, MaxBytes: 64 << 20, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// reportedAgain wants every later start to name the block, and no file changed since before but
// the newest.
func (g evidenceLog) reportedAgain(t *testing.T, before map[string][32]byte, block int) {
	t.Helper()
	same(t, before, blockSums(t, g.dir), 4)
	for range 2 {
		g.refused(t, block, damageFlipped)
	}
}

// wantNoNewWork wants a refusal that names the class of damage, the block and a way out.
func wantNoNewWork(t *testing.T, l *Log, block int) {
	t.Helper()
	_, err := l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(event.NewSessionID()),
		Events: threeEvents(1)})
	for _, err := range []error{err, l.Admit()} {
		f := fault.As(err)
		list, _ := f.Details["blocks"].([]BlockDamage)
		// A reader in the background may have met a hole in a block that the ledger lacks.
		named := slices.ContainsFunc(list, func(d BlockDamage) bool { return d.Block == block && d.Reason == damageFlipped })
		if err == nil || f.Kind != fault.LogDamaged || f.Reason != list[0].Reason || f.Next == "" || !named {
			t.Errorf("new work: %v (%v)", err, list)
		}
	}
}

// However damage in a sealed block is found, new work is refused from then on: the next start
// would refuse the log, and what was acknowledged after it would be lost with the repair. What
// is open can still finish, nothing of the block is given, and every later start tells again.
func TestDamageInASealedBlockEndsNewWork(t *testing.T) {
	whole := newEvidenceLog(t, Process)
	const block, at = 2, 15_000
	for name, find := range map[string]func(*testing.T, evidenceLog, *Log){
		"scrub": func(_ *testing.T, _ evidenceLog, l *Log) { l.evidence.pass(context.Background()) },
		"verify": func(t *testing.T, _ evidenceLog, l *Log) {
			if r, err := l.Verify(context.Background()); err != nil || r.OK() {
				t.Errorf("verify: %+v, %v", r, err)
			}
		},
		"replay": func(t *testing.T, _ evidenceLog, l *Log) {
			bad, _ := l.evidence.sealed(block)
			err := l.Replay(context.Background(), Range{}, func(e Entry) error {
				if e.Seq >= bad.first && e.Seq <= bad.last {
					return fmt.Errorf("commit %d of the bad block was given", e.Seq)
				}
				return nil
			})
			if fault.KindOf(err) != fault.LogDamaged {
				t.Errorf("replay: %v", err)
			}
		},
		"append": func(t *testing.T, g evidenceLog, l *Log) {
			if _, err := l.Append(context.Background(), draft(l, t, g.heads[block])); fault.KindOf(err) != fault.LogDamaged {
				t.Errorf("append behind the bad block: %v", err)
			}
		},
		"prune": func(t *testing.T, g evidenceLog, l *Log) {
			blocks, err := l.Blocks()
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Prune(context.Background(), blocks[2].First, "operator"); fault.As(err).Reason != "damaged" {
				t.Errorf("prune: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := whole.copy(t)
			l := g.roomy(t, nil)
			open := event.SessionAggregate(event.NewSessionID())
			mustAppend(t, l, open)
			flip(t, blockFile(g.dir, nameOf(block)), at, 0x04)
			before := blockSums(t, g.dir)
			find(t, g, l)
			wantNoNewWork(t, l, block)
			finish := draft(l, t, open)
			finish.Reserve = true
			if _, err := l.Append(context.Background(), finish); err != nil {
				t.Errorf("what is open cannot finish: %v", err)
			}
			if st := l.Status(); !st.Writing || len(st.Evidence.Damaged) != 1 {
				t.Errorf("status %+v", st)
			}
			if err := l.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			g.reportedAgain(t, before, block)
		})
	}
}

// Writers at work when damage is found all get an answer: their commit stands, or log_damaged
// and nothing was written.
func TestEveryWriterHearsOfTheDamage(t *testing.T) {
	g := newEvidenceLog(t, Process)
	l := g.roomy(t, nil)
	flip(t, blockFile(g.dir, nameOf(2)), 1200, 0x04)
	before := blockSums(t, g.dir)
	begun, _ := l.applied.read()
	const writers = 8
	stood := make([]uint64, writers)
	var going, ended sync.WaitGroup
	going.Add(writers)
	for i := range writers {
		ended.Go(func() {
			a := event.SessionAggregate(event.NewSessionID())
			for n := 0; ; n++ {
				d := Draft{ID: event.NewCommandID(), Aggregate: a, Events: threeEvents(n)}
				d.Expect, _ = l.Head(a)
				_, err := l.Append(context.Background(), d)
				if n == 0 {
					going.Done()
				}
				if err == nil {
					stood[i]++
					continue
				}
				if fault.KindOf(err) != fault.LogDamaged {
					t.Errorf("writer %d: %v", i, err)
				}
				return
			}
		})
	}
	going.Wait()
	if r, err := l.Verify(context.Background()); err != nil || r.OK() {
		t.Errorf("verify: %+v, %v", r, err)
	}
	ended.Wait()
	want := begun
	for _, n := range stood {
		want += n
	}
	if got, _ := l.applied.read(); got != want {
		t.Errorf("%d commits, %d were acknowledged", got, want)
	}
	if err := l.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	g.reportedAgain(t, before, 2)
}

// Damage in the newest block ends writing at once. A commit on its way may or may not stand and
// is told so; who comes later hears of the damage, not of uncertainty.
func TestDamageInTheNewestBlockEndsWriting(t *testing.T) {
	g := newEvidenceLog(t, Always)
	sent, found := make(chan struct{}), make(chan struct{})
	var once sync.Once
	l := g.roomy(t, &Faults{BeforePublish: func(uint64) error {
		once.Do(func() { close(sent); <-found })
		return errors.New("never sent")
	}})
	going := make(chan error, 1)
	go func() {
		_, err := l.Append(context.Background(), Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(event.NewSessionID()), Events: threeEvents(1)})
		going <- err
	}()
	<-sent
	flip(t, blockFile(g.dir, nameOf(4)), 40, 1)
	before := blockSums(t, g.dir)
	l.evidence.lookAtTail()
	close(found)
	if err := <-going; fault.KindOf(err) != fault.PersistenceUncertain || fault.As(err).Reason != damageFlipped {
		t.Errorf("the commit on its way: %v", err)
	}
	wantNoNewWork(t, l, 4)
	reserve := Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(event.NewSessionID()), Events: threeEvents(1), Reserve: true}
	if _, err := l.Append(context.Background(), reserve); fault.KindOf(err) != fault.LogDamaged {
		t.Errorf("a finish: %v", err)
	}
	if err := l.Close(); err == nil {
		t.Error("the close calls itself clean")
	}
	same(t, before, blockSums(t, g.dir), 0)
	g.reportedAgain(t, before, 4)
}

// A damaged ledger is no damage of the log: work goes on.
func TestADamagedLedgerStopsNothing(t *testing.T) {
	g := newEvidenceLog(t, Process)
	flip(t, filepath.Join(g.dir, ledgerName), 60, 1)
	l := g.roomy(t, nil)
	mustAppend(t, l, event.SessionAggregate(event.NewSessionID()))
	if err := l.Admit(); err != nil {
		t.Error(err)
	}
}

// Who reads the log when it closes is told at once, and is given nothing more: the embedded
// server answers nobody from then on.
func TestReadersEndWhenTheLogCloses(t *testing.T) {
	for name, read := range map[string]func(*Log, func() error) error{
		"replay": func(l *Log, fn func() error) error {
			return l.Replay(context.Background(), Range{}, func(Entry) error { return fn() })
		},
		"export": func(l *Log, fn func() error) error {
			return l.Export(context.Background(), func(_, _ uint64) error { return nil }, func([]byte) error { return fn() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, t.TempDir())
			a := event.SessionAggregate(event.NewSessionID())
			for range 40 {
				mustAppend(t, l, a)
			}
			closed := make(chan error, 1)
			given := 0
			err := read(l, func() error {
				if given++; given == 1 {
					go func() { closed <- l.Close() }()
					<-l.stop
				}
				return nil
			})
			if fault.KindOf(err) != fault.ShuttingDown || given > 1 {
				t.Errorf("%v after %d commits", err, given)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}

// What verify finds counts at once, in a block that the ledger does not know yet and in the
// newest one too.
func TestVerifyActsOnWhatItFinds(t *testing.T) {
	for name, c := range map[string]struct {
		block int
		kind  fault.Kind // of a commit that may use the reserve
	}{
		"sealed, not in the ledger": {2, ""},
		"newest":                    {4, fault.LogDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			g := newEvidenceLog(t, Process)
			l := g.roomy(t, nil)
			l.evidence.mu.Lock()
			delete(l.evidence.blocks, 2)
			l.evidence.mu.Unlock()
			flip(t, blockFile(g.dir, nameOf(c.block)), 1200, 1)
			if r, err := l.Verify(context.Background()); err != nil || len(r.Damaged) != 1 {
				t.Errorf("verify: %+v, %v", r, err)
			}
			wantNoNewWork(t, l, c.block)
			d := Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(event.NewSessionID()), Events: threeEvents(1), Reserve: true}
			if _, err := l.Append(context.Background(), d); fault.KindOf(err) != c.kind {
				t.Errorf("what is open: %v", err)
			}
		})
	}
}
