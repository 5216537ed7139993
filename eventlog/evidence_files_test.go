package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// whole opens and wants every commit that was acknowledged, once, in its chain.
func (g evidenceLog) whole(t *testing.T, want uint64) *Log {
	t.Helper()
	l, err := g.open(t)
	if err != nil {
		t.Fatalf("%v (%v)", err, fault.As(err).Details)
	}
	n := uint64(0)
	if err := l.Replay(context.Background(), Range{}, func(Entry) error { n++; return nil }); err != nil {
		t.Error(err)
	}
	if s := l.Status(); n != want || s.Seq != want || len(s.Damaged) > 0 || len(s.Evidence.Damaged) > 0 {
		t.Errorf("%d commits, want %d; status %+v", n, want, s)
	}
	return l
}

// commits is how many newEvidenceLog acknowledges, the log's own first one among them.
const commits = 44

// What JetStream keeps beside its blocks may be gone or garbage: nothing is lost.
func TestJetStreamsOwnFilesMayBeLost(t *testing.T) {
	g := newEvidenceLog(t, Always)
	for name, harm := range map[string]func(t *testing.T, dir string){
		"index.db deleted":   func(t *testing.T, dir string) { remove(t, blockFile(dir, indexName)) },
		"index.db garbage":   func(t *testing.T, dir string) { write(t, blockFile(dir, indexName), bytes.Repeat([]byte("x"), 900)) },
		"index.db truncated": func(t *testing.T, dir string) { write(t, blockFile(dir, indexName), nil) },
		"meta.inf missing":   func(t *testing.T, dir string) { remove(t, filepath.Join(dir, streamDirOf, "meta.inf")) },
		"meta.sum missing":   func(t *testing.T, dir string) { remove(t, filepath.Join(dir, streamDirOf, "meta.sum")) },
		"meta.inf garbage":   func(t *testing.T, dir string) { write(t, filepath.Join(dir, streamDirOf, "meta.inf"), []byte("{")) },
		"both missing": func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, streamDirOf, "meta.inf"))
			remove(t, filepath.Join(dir, streamDirOf, "meta.sum"))
		},
	} {
		for _, dirty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dirty %v", name, dirty), func(t *testing.T) {
				t.Parallel()
				g := g.copy(t)
				harm(t, g.dir)
				if dirty {
					editCheckpoint(t, g.dir, func(c *checkpoint) { c.Clean, c.Seal = false, nil })
				}
				l := g.whole(t, commits)
				d := draft(l, t, g.heads[1])
				d.Reserve = true
				if _, err := l.Append(context.Background(), d); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

const streamDirOf = "log/jetstream/WC/streams/LOG"

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// lastRecord is where the last commit begins in the newest block.
func lastRecord(t *testing.T, block int, b []byte) (at int, seq uint64, hash string) {
	t.Helper()
	s, before := newBlockScan(block, b), blockRecord{}
	for r, ok := s.next(); ok; r, ok = s.next() {
		at, seq, before = r.offset, before.seq, r
		hash = event.Hash(before.body)
	}
	_ = hash
	s = newBlockScan(block, b[:at])
	for r, ok := s.next(); ok; r, ok = s.next() {
		seq, hash = r.seq, event.Hash(r.body)
	}
	return at, seq, hash
}

// The last block ends at every byte of the last commit, or in zeros from there on, as a kill
// in mid-write leaves it: what was acknowledged before stands, and of the last commit nothing.
// After a clean stop nothing was being written, so the same is damage.
func TestLastCommitCutAtEveryByte(t *testing.T) {
	g := newEvidenceLog(t, Always)
	tail := read(t, blockFile(g.dir, nameOf(4)))
	at, seq, hash := lastRecord(t, 4, tail)
	stride := rounds((len(tail)-at)/12|1, 1)
	for cut := at; cut < len(tail); cut++ {
		// The last bytes are of the checksum, behind a record that is whole.
		if (cut-at)%stride != 0 && cut < len(tail)-recordSum {
			continue
		}
		for _, zeros := range []bool{false, true} {
			t.Run(fmt.Sprintf("byte %d, zeros %v", cut-at, zeros), func(t *testing.T) {
				t.Parallel()
				end := tail[:cut:cut]
				if zeros {
					end = append(end, make([]byte, len(tail)-cut)...)
				}
				if bytes.Equal(end, tail) {
					t.Skip("what was cut off were zeros")
				}
				dead := g.copy(t)
				write(t, blockFile(dead.dir, nameOf(4)), end)
				dead.killed(t)
				editCheckpoint(t, dead.dir, func(c *checkpoint) { c.Seq, c.Hash = seq, hash })
				dead.base = nil
				l := dead.wholeWithoutBase(t, seq)
				if b := read(t, filepath.Join(dead.dir, tailCopyName, nameOf(4))); !bytes.Equal(b, end) {
					t.Error("the copy of the newest block is not what was there")
				}
				mustAppendReserved(t, l, event.SessionAggregate(event.NewSessionID()))

				clean := g.copy(t)
				write(t, blockFile(clean.dir, nameOf(4)), end)
				clean.refused(t, 4, "")

				durable := g.copy(t)
				write(t, blockFile(durable.dir, nameOf(4)), end)
				durable.killed(t)
				durable.refused(t, 4, "")
			})
		}
	}
}

func (g evidenceLog) wholeWithoutBase(t *testing.T, want uint64) *Log {
	t.Helper()
	l, err := Open(context.Background(), Options{Dir: g.dir, Durability: g.mode})
	if err != nil {
		t.Fatalf("%v (%v)", err, fault.As(err).Details)
	}
	t.Cleanup(func() { _ = l.Close() })
	if s := l.Status(); s.Seq != want || len(s.Damaged) > 0 {
		t.Errorf("status %+v, want %d commits", s, want)
	}
	return l
}

func mustAppendReserved(t *testing.T, l *Log, a event.Aggregate) {
	t.Helper()
	d := draft(l, t, a)
	d.Reserve = true
	if _, err := l.Append(context.Background(), d); err != nil {
		t.Fatal(err)
	}
}

// A file that is gone, put in from elsewhere or from an older copy is named, whichever way
// the last life ended, and JetStream is not let at what is left.
func TestForeignAndMissingFiles(t *testing.T) {
	g, other := newEvidenceLog(t, Always), newEvidenceLog(t, Always)
	swap := func(block int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			write(t, blockFile(dir, nameOf(block)), read(t, blockFile(other.dir, nameOf(block))))
		}
	}
	for name, c := range map[string]struct {
		harm   func(t *testing.T, dir string)
		block  int
		reason string
	}{
		"a block is missing in the middle": {func(t *testing.T, dir string) { remove(t, blockFile(dir, nameOf(2))) }, 2, damageMissing},
		"the first block is missing":       {func(t *testing.T, dir string) { remove(t, blockFile(dir, nameOf(1))) }, 0, damageHole},
		"the newest block is missing":      {func(t *testing.T, dir string) { remove(t, blockFile(dir, nameOf(4))) }, 0, damageOlder},
		"two are missing at the end": {func(t *testing.T, dir string) {
			remove(t, blockFile(dir, nameOf(4)))
			remove(t, blockFile(dir, nameOf(3)))
		}, 0, damageOlder},
		"a foreign block":        {swap(2), 2, ""},
		"a foreign newest block": {swap(4), 4, ""},
		"a block ends too early": {func(t *testing.T, dir string) { cutFile(t, blockFile(dir, nameOf(3)), 100) }, 3, damageFlipped},
		"a block twice": {func(t *testing.T, dir string) {
			write(t, blockFile(dir, nameOf(3)), read(t, blockFile(dir, nameOf(2))))
		}, 3, ""},
		"a block too many": {func(t *testing.T, dir string) {
			write(t, blockFile(dir, nameOf(5)), read(t, blockFile(other.dir, nameOf(4))))
		}, 0, ""},
		"the newest block is none": {func(t *testing.T, dir string) { write(t, blockFile(dir, nameOf(4)), nil) }, 4, ""},
		"the log is gone": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "log")); err != nil {
				t.Fatal(err)
			}
		}, 0, damageGone},
	} {
		for _, dirty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dirty %v", name, dirty), func(t *testing.T) {
				t.Parallel()
				g := g.copy(t)
				if dirty {
					g.killed(t)
				}
				c.harm(t, g.dir)
				g.refused(t, c.block, c.reason)
			})
		}
	}
}

func cutFile(t *testing.T, path string, by int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-by); err != nil {
		t.Fatal(err)
	}
}

// An older copy of the whole log directory under the newer checkpoint is not opened, though
// all of it is sound.
func TestOlderCopyOfTheLog(t *testing.T) {
	for _, dirty := range []bool{false, true} {
		t.Run(fmt.Sprintf("dirty %v", dirty), func(t *testing.T) {
			g := newEvidenceLog(t, Always)
			older := t.TempDir()
			if err := os.CopyFS(older, os.DirFS(filepath.Join(g.dir, "log"))); err != nil {
				t.Fatal(err)
			}
			l := g.whole(t, commits)
			for range 3 {
				mustAppendReserved(t, l, event.SessionAggregate(event.NewSessionID()))
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if dirty {
				g.killed(t)
			}
			if err := os.RemoveAll(filepath.Join(g.dir, "log")); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(filepath.Join(g.dir, "log"), os.DirFS(older)); err != nil {
				t.Fatal(err)
			}
			g.refused(t, 4, damageOlder)
		})
	}
}

// A ledger that is gone, garbage, torn or an older one stops nothing: the records are read
// instead, the state says so, and it is made again once every chain was followed. Until then
// a flipped byte is found all the same.
func TestLedgerIsMadeAgain(t *testing.T) {
	g := newEvidenceLog(t, Always)
	for name, c := range map[string]struct {
		harm  func(t *testing.T, dir string)
		state string
	}{
		"missing": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, ledgerName)) }, damageNoLedger},
		"garbage": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, ledgerName), []byte("x")) }, damageLedger},
		"flipped": {func(t *testing.T, dir string) { flip(t, filepath.Join(dir, ledgerName), len(ledgerHead)+4, 1) }, damageLedger},
		"torn":    {func(t *testing.T, dir string) { cutFile(t, filepath.Join(dir, ledgerName), 10) }, damageLedger},
		"older": {func(t *testing.T, dir string) {
			lines := strings.SplitAfter(string(read(t, filepath.Join(dir, ledgerName))), "\n")
			write(t, filepath.Join(dir, ledgerName), []byte(strings.Join(lines[:2], "")))
		}, damageLedger},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := read(t, filepath.Join(g.dir, ledgerName))
			g, bad := g.copy(t), g.copy(t)
			c.harm(t, g.dir)
			c.harm(t, bad.dir)
			flip(t, blockFile(bad.dir, nameOf(2)), 5000, 0x10)
			bad.refused(t, 2, damageFlipped)

			l, err := Open(context.Background(), Options{Dir: g.dir, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			if s := l.Status().Evidence; s.Ledger != c.state {
				t.Errorf("ledger %q, want %q", s.Ledger, c.state)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = g.whole(t, commits)
			for l.Status().Evidence.Ledger != LedgerOK {
				time.Sleep(10 * time.Millisecond)
			}
			if got := read(t, filepath.Join(g.dir, ledgerName)); !bytes.Equal(got, want) {
				t.Errorf("the ledger is\n%s, was\n%s", got, want)
			}
		})
	}
}

// In durability process a power cut takes pages in any order: what lies behind the first
// commit that cannot be read is moved aside, and the log goes on from there by itself. So it is
// where a block ends between two of its commits, too early for the next one.
func TestPowerCutLeavesAHoleInProcessDurability(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"in a commit": func(t *testing.T, path string) { flip(t, path, len(read(t, path))-100, 1) },
		"between two": func(t *testing.T, path string) {
			at, _, _ := lastRecord(t, 2, read(t, path))
			cutFile(t, path, int64(len(read(t, path))-at))
		},
	} {
		t.Run(name, func(t *testing.T) { powerCutLeavesAHole(t, harm) })
	}
}

func powerCutLeavesAHole(t *testing.T, harm func(t *testing.T, path string)) {
	t.Helper()
	g := newEvidenceLog(t, Process)
	write(t, filepath.Join(g.dir, ledgerName), []byte(ledgerHead))
	third := read(t, blockFile(g.dir, nameOf(3)))
	facts := factsOf(2, read(t, blockFile(g.dir, nameOf(2))), 0)
	cut := func(c *checkpoint) {
		c.Seq, c.Hash, c.Clean, c.Seal, c.Ledger, c.Boot = 1, factsOf(1, read(t, blockFile(g.dir, nameOf(1))), 1).hash, false, nil, 0, "before"
	}
	editCheckpoint(t, g.dir, cut)
	harm(t, blockFile(g.dir, nameOf(2)))
	remove(t, blockFile(g.dir, indexName))
	l, err := Open(context.Background(), Options{Dir: g.dir, Durability: Process})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if s := l.Status(); !s.TailLost || s.Seq != facts.last {
		t.Errorf("status %+v, want %d commits and the news of the lost tail", s, facts.last-1)
	}
	if got := read(t, filepath.Join(g.dir, tailCopyName, nameOf(3))); !bytes.Equal(got, third) {
		t.Error("the block behind the hole was not moved aside as it was")
	}
}

// Damage in the newest block of a running log ends writing, before JetStream cuts the file.
func TestFlippedByteInTheNewestBlockOfARunningLog(t *testing.T) {
	g := newEvidenceLog(t, Always)
	l := g.whole(t, commits)
	flip(t, blockFile(g.dir, nameOf(4)), 40, 1)
	before := blockSums(t, g.dir)
	l.evidence.lookAtTail()
	<-l.Failed()
	if _, err := l.Append(context.Background(), draft(l, t, g.heads[1])); fault.KindOf(err) != fault.LogDamaged {
		t.Errorf("append: %v", err)
	}
	if s := l.Status(); s.Reason != damageFlipped || len(s.Evidence.Damaged) != 1 {
		t.Errorf("status %+v", s)
	}
	if err := l.Close(); err == nil {
		t.Error("the close calls itself clean")
	}
	same(t, before, blockSums(t, g.dir), 0)
	g.refused(t, 4, damageFlipped)
}

// A data directory of a program that kept no ledger opens, and gets one.
func TestLogWithoutALedgerGetsOne(t *testing.T) {
	t.Parallel()
	for _, dirty := range []bool{false, true} {
		g := newEvidenceLog(t, Always)
		remove(t, filepath.Join(g.dir, ledgerName))
		editCheckpoint(t, g.dir, func(c *checkpoint) { c.Clean, c.Seal, c.Ledger = !dirty, nil, 0 })
		l := g.whole(t, commits)
		for l.Status().Evidence.Blocks < 3 {
			time.Sleep(10 * time.Millisecond)
		}
		if s := l.Status().Evidence; s.Ledger != LedgerOK {
			t.Errorf("%+v", s)
		}
	}
}

// Only this program's format is opened; anything else is told and left as it is.
//
// Covers: RES-01
func TestOnlyTheKnownFormatIsOpened(t *testing.T) {
	g := newEvidenceLog(t, Process)
	for text, kind := range map[string]fault.Kind{
		`{"format":2,"log_max_bytes":125000}`: fault.Unavailable,
		`{"format":3}`:                        fault.Unavailable,
		`{"format":0}`:                        fault.LogDamaged,
		`{"format":-1}`:                       fault.LogDamaged,
		`{`:                                   fault.LogDamaged,
		``:                                    fault.LogDamaged,
	} {
		g := g.copy(t)
		write(t, filepath.Join(g.dir, formatName), []byte(text))
		before := blockSums(t, g.dir)
		if _, err := g.open(t); fault.KindOf(err) != kind {
			t.Errorf("format %s: %v, want %s", text, err, kind)
		}
		same(t, before, blockSums(t, g.dir), 0)
		if got := read(t, filepath.Join(g.dir, formatName)); string(got) != text {
			t.Errorf("the format file became %s", got)
		}
	}
	l := g.whole(t, commits)
	a := event.SessionAggregate(event.NewSessionID())
	mustAppendReserved(t, l, a)
	head, _ := l.Head(a)
	newer := map[string]any{"v": event.Format + 1, "id": event.NewCommandID(), "agg": a.String(), "ver": 2, "prev": head.Hash}
	body, _ := json.Marshal(newer)
	plantBytes(t, l, a, body)
	_ = l.Close()
	l, err := Open(context.Background(), Options{Dir: g.dir, Durability: g.mode})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if d := l.Status().Damaged; len(d) != 1 || d[0].Reason != damageUnreadable || d[0].Aggregate != a.String() {
		t.Errorf("damaged %+v, want the newer commit's record", d)
	}
	if err := l.Replay(context.Background(), Range{Aggregate: g.heads[1]}, func(Entry) error { return nil }); err != nil {
		t.Errorf("another record: %v", err)
	}
}

// What a prune took leaves the ledger, and what is left starts clean and dirty. A prune does not
// take a damaged block.
func TestPrunedBlocksLeaveTheLedger(t *testing.T) {
	g := newEvidenceLog(t, Process)
	for a := range g.base.mem.heads {
		g.base.mem.removed[a] = true
	}
	g.base.flush()
	bad := g.copy(t)
	flip(t, blockFile(bad.dir, nameOf(2)), 5000, 1)
	l, err := bad.open(t)
	if err != nil {
		t.Fatal(err)
	}
	list, err := l.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	cut := list[2].First
	if err := l.Prune(context.Background(), cut, "age"); fault.As(err).Reason != "damaged" {
		t.Errorf("a damaged block was pruned: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	bad.refused(t, 2, damageFlipped)

	if l, err = g.open(t); err != nil {
		t.Fatal(err)
	}
	if err := l.Prune(context.Background(), cut, "age"); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ledger, _, reason, err := (&dir{path: g.dir}).readLedger()
	if err != nil || reason != "" || len(ledger) != 1 || ledger[3].first != cut {
		t.Errorf("the ledger has %v (%q, %v), want block 3 alone", ledger, reason, err)
	}
	for _, dirty := range []bool{false, true} {
		g := g.copy(t)
		if dirty {
			g.killed(t)
		}
		l, err := g.open(t)
		if err != nil {
			t.Fatalf("dirty %v: %v", dirty, err)
		}
		if r, err := l.Verify(context.Background()); err != nil || !r.OK() || r.Blocks != 1 || l.Status().Evidence.Ledger != LedgerOK {
			t.Errorf("dirty %v: %+v, %v", dirty, r, err)
		}
	}
}
