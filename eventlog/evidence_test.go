package eventlog

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/internal/fault"
)

// evidenceLog is a closed log over four small blocks, with what its read models held. Every
// seventh commit is the only one of its Session, so each block is the last of some; one is a
// carried part.
type evidenceLog struct {
	dir   string
	mode  Durability
	base  *index
	heads map[int]event.Aggregate // a Session whose last commit lies in the block
}

func newEvidenceLog(t *testing.T, mode Durability) evidenceLog {
	t.Helper()
	g := evidenceLog{dir: t.TempDir(), mode: mode, base: newIndex(), heads: map[int]event.Aggregate{}}
	l := openSmall(t, g.dir, mode, func(o *Options) { o.Base = g.base })
	busy := event.SessionAggregate(event.NewSessionID())
	for i := range 42 {
		a := busy
		if i%7 == 3 {
			a = event.SessionAggregate(event.NewSessionID())
		}
		appendText(t, l, a, 2<<10)
		if index, err := blockIndexes(l.dir.blocks()); err == nil && a != busy {
			g.heads[len(index)] = a
		}
	}
	parts, err := event.SplitState(1, []byte(strings.Repeat("state ", 300)))
	if err != nil {
		t.Fatal(err)
	}
	d := draft(l, t, busy)
	d.Reserve = true
	d.Events = []event.Event{event.CarriedEvent(event.DomainSession, parts[0])}
	if _, err := l.Append(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	// JetStream reads what is younger than its dedupe window, so that is hashed at a start.
	time.Sleep(2 * dedupeWindow)
	return g
}

// copy is the same log in a directory of its own.
func (g evidenceLog) copy(t *testing.T) evidenceLog {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(g.dir)); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for name := range blockSums(t, to) {
		if err := os.Chtimes(filepath.Join(to, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	g.dir, g.base = to, g.base.restarted()
	return g
}

// killed makes the last stop an unclean one, of this life of the system, and takes JetStream's
// index away: it reads every block then, and cuts what it cannot read.
func (g evidenceLog) killed(t *testing.T) {
	t.Helper()
	editCheckpoint(t, g.dir, func(c *checkpoint) { c.Clean, c.Seal = false, nil })
	if err := os.Remove(blockFile(g.dir, indexName)); err != nil {
		t.Fatal(err)
	}
}

func (g evidenceLog) open(t *testing.T) (*Log, error) {
	t.Helper()
	l, err := Open(context.Background(), Options{Dir: g.dir, Durability: g.mode, Base: g.base})
	if err == nil {
		t.Cleanup(func() { _ = l.Close() })
	}
	return l, err
}

// blockSums names the block files and what is in them.
func blockSums(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	out := map[string][32]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != blockSuffix || strings.HasPrefix(path, tailCopyName) {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		out[path] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// same compares block files, but for one that may have grown.
func same(t *testing.T, before, after map[string][32]byte, grown int) {
	t.Helper()
	for name, sum := range before {
		if after[name] != sum && filepath.Base(name) != nameOf(grown) {
			t.Errorf("%s changed", name)
		}
	}
	if len(after) < len(before) {
		t.Errorf("%d block files of %d are left", len(after), len(before))
	}
}

func flip(t *testing.T, file string, at int, by byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	// A disk that rots does not change the time.
	defer func() { _, _ = f.Close(), os.Chtimes(file, info.ModTime(), info.ModTime()) }()
	var b [1]byte
	if _, err := f.ReadAt(b[:], int64(at)); err != nil {
		t.Fatal(err)
	}
	b[0] ^= by
	if _, err := f.WriteAt(b[:], int64(at)); err != nil {
		t.Fatal(err)
	}
}

func nameOf(block int) string { return strconv.Itoa(block) + blockSuffix }

// refused opens and wants log_damaged with the block named, and nothing changed.
func (g evidenceLog) refused(t *testing.T, block int, reason string) {
	t.Helper()
	before := blockSums(t, g.dir)
	_, err := g.open(t)
	f := fault.As(err)
	if fault.KindOf(err) != fault.LogDamaged || reason != "" && f.Reason != reason {
		t.Errorf("%v (reason %q), want log_damaged with %q", err, f.Reason, reason)
	} else if list, _ := f.Details["blocks"].([]BlockDamage); block > 0 && (len(list) == 0 || list[0].Block != block) {
		t.Errorf("%v names %v, want block %d", err, list, block)
	}
	if _, ok := ClassOf(f.Reason); err != nil && !ok {
		t.Errorf("reason %q has no class", f.Reason)
	}
	same(t, before, blockSums(t, g.dir), 0)
}

// served runs a log that was opened over one bad sealed block: nothing of the block is given,
// each way to look finds it, the files stay, and so does the next start's refusal.
func (g evidenceLog) served(t *testing.T, l *Log, block int) {
	t.Helper()
	before := blockSums(t, g.dir)
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
	if a, ok := g.heads[block]; ok {
		d := draft(l, t, a)
		d.Reserve = true
		if _, err := l.Append(context.Background(), d); fault.KindOf(err) != fault.LogDamaged {
			t.Errorf("append behind the bad block: %v", err)
		}
	}
	r, err := l.Verify(context.Background())
	if err != nil || len(r.Damaged) != 1 || r.Damaged[0].Block != block || r.OK() {
		t.Errorf("verify: %+v, %v", r, err)
	}
	l.evidence.pass(context.Background())
	if s := l.Status().Evidence; len(s.Damaged) != 1 || s.Damaged[0].Block != block || len(s.Scrub.Damaged) != 1 {
		t.Errorf("status %+v", s)
	}
	fresh := draft(l, t, event.SessionAggregate(event.NewSessionID()))
	fresh.Reserve = true
	if _, err := l.Append(context.Background(), fresh); err != nil {
		t.Errorf("a record that has nothing to do with it: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	same(t, before, blockSums(t, g.dir), 4)
	g.refused(t, block, "")
}

// judge flips a byte and follows what becomes of it.
func (g evidenceLog) judge(t *testing.T, block, at int, by byte) {
	t.Helper()
	flip(t, blockFile(g.dir, nameOf(block)), at, by)
	before := blockSums(t, g.dir)
	l, err := g.open(t)
	same(t, before, blockSums(t, g.dir), 0)
	if err != nil {
		g.refused(t, block, "")
		return
	}
	if block == 4 {
		t.Fatal("the newest block is damaged and the log was opened")
	}
	g.served(t, l, block)
}

// One byte flipped in each block, at a clean start and at a dirty one: reported at the start,
// or when it is read or scrubbed, never served, and the files are as they were afterwards.
func TestFlippedByteInEachBlock(t *testing.T) {
	g := newEvidenceLog(t, Process)
	if n := len(blockSums(t, g.dir)); n != 4 || len(g.heads) < 3 {
		t.Fatalf("%d blocks, heads in %v", n, g.heads)
	}
	// Of the first record: the parts of its frame, its subject, header, body and checksum; and
	// the last byte of the file, which is of the last checksum.
	places := []int{0, 1, 2, 3, 4, 11, 12, 20, 21, 22, 30, 1200, -1}
	for _, dirty := range []bool{false, true} {
		for block := 1; block <= 4; block++ {
			for _, at := range places {
				t.Run(fmt.Sprintf("dirty %v, block %d, byte %d", dirty, block, at), func(t *testing.T) {
					t.Parallel()
					g := g.copy(t)
					if at < 0 {
						info, err := os.Stat(blockFile(g.dir, nameOf(block)))
						if err != nil {
							t.Fatal(err)
						}
						at += int(info.Size())
					}
					if dirty {
						g.killed(t)
						flip(t, blockFile(g.dir, nameOf(block)), at, 0x04)
						if b := read(t, blockFile(g.dir, nameOf(block))); block == 4 && at == len(b)-1 && b[at] == 0 {
							g.refused(t, block, damageTail) // as if the write had been cut short
							return
						}
						g.refused(t, block, damageFlipped)
						return
					}
					g.judge(t, block, at, 0x04)
				})
			}
		}
	}
}

// A hundred bytes flipped at random, in sealed blocks, in the newest and in a carried part.
func TestHundredFlips(t *testing.T) {
	g, flips := newEvidenceLog(t, Always), rounds(100, 1000)
	var found atomic.Int64
	t.Run("flips", func(t *testing.T) {
		for i := range flips {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				g := g.copy(t)
				block := 1 + rand.IntN(4)
				info, err := os.Stat(blockFile(g.dir, nameOf(block)))
				if err != nil {
					t.Fatal(err)
				}
				if rand.IntN(2) == 0 {
					g.killed(t)
				}
				at, by := rand.IntN(int(info.Size())), byte(1+rand.IntN(255))
				g.judge(t, block, at, by)
				if t.Failed() {
					t.Logf("block %d, byte %d, by %#x", block, at, by)
					return
				}
				found.Add(1)
			})
		}
	})
	if n := found.Load(); n > 0 { // else the run was of another flip alone
		bench.Figure(t, fmt.Sprintf("2 %d flips in live records: served, not reported, or a file changed", flips), float64(int64(flips)-n), 0, flips)
	}
}
