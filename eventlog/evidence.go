package eventlog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"webcodex/internal/fault"
)

// evidence is what is known of the block files: the ledger, and which blocks were found good
// or bad in this life. It is safe for concurrent use.
type evidence struct {
	l *Log

	// alive is the newest block at the start: from it on, what lies in the blocks was written
	// or read through in this life. sealedTo bounds the sequences in sealed blocks.
	alive    int
	sealedTo atomic.Uint64
	// proved tells that every commit's chain held when the log was folded or read through, so
	// that blocks the ledger lacks may enter it.
	proved atomic.Bool

	mu      sync.Mutex
	blocks  map[int]sealed
	reason  string // what is wrong with the ledger file; empty: nothing
	rewrite bool   // the file has to be replaced before it is appended to
	lacking bool   // sealed blocks wait for the proof
	checked map[int]time.Time
	bad     map[int]BlockDamage // by block; 0: a hole in one that cannot be named
	scrub   ScrubResult
	refusal atomic.Pointer[fault.Error] // of new work, once anything is bad

	filling sync.Mutex // one writer of the file
}

func newEvidence(l *Log) *evidence {
	return &evidence{l: l, blocks: map[int]sealed{}, checked: map[int]time.Time{}, bad: map[int]BlockDamage{}}
}

func (e *evidence) file(i int) string {
	return filepath.Join(e.l.dir.blocks(), strconv.Itoa(i)+blockSuffix)
}

func (e *evidence) exists(i int) bool {
	_, err := os.Lstat(e.file(i))
	return err == nil
}

// load reads the ledger file. One that knows less than the checkpoint is not the newest.
func (e *evidence) load(newest int) error {
	blocks, torn, reason, err := e.l.dir.readLedger()
	if err != nil {
		return err
	}
	e.blocks, e.rewrite = blocks, torn || reason != ""
	switch {
	case reason == damageNoLedger && newest == 0: // of an older program, or nothing was sealed yet
	case reason != "":
		e.reason = reason
	case e.newest() < newest:
		e.reason, e.rewrite = damageLedger, true
	}
	for _, s := range blocks {
		e.sealedTo.Store(max(e.sealedTo.Load(), s.last))
	}
	return nil
}

// begin is told that the log is open, and whether every commit from the first on was folded
// with its chain whole.
func (e *evidence) begin(proved bool) {
	if index, err := blockIndexes(e.l.dir.blocks()); err == nil && len(index) > 0 {
		e.alive = slices.Max(index)
	}
	e.proved.Store(proved)
}

// known tells that the ledger file could be read.
func (e *evidence) known() bool { return e.reason == "" }

func (e *evidence) sealed(i int) (sealed, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.blocks[i]
	return s, ok
}

func (e *evidence) list() []sealed {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Values(e.blocks), func(a, b sealed) int { return cmp.Compare(a.block, b.block) })
}

// damage describes a block of the ledger.
func (e *evidence) damage(i int, reason string) BlockDamage {
	s, _ := e.sealed(i)
	return BlockDamage{Block: i, Reason: reason, FirstSeq: s.first, LastSeq: s.last}
}

// hash compares a sealed block with the ledger; nil: it is what was written, or was pruned
// meanwhile. What is found is remembered.
func (e *evidence) hash(s sealed, through readThrough) (*BlockDamage, error) {
	sum, err := sumReader(e.file(s.block), through)
	var d BlockDamage
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if s.last < e.l.first.Load() {
			return nil, nil
		}
		d = e.damage(s.block, damageMissing)
	case err != nil:
		return nil, fault.Wrap(err, fault.Unavailable, "block %d of the log cannot be read", s.block)
	case sum.Size != s.size || sum.Sum != s.sum:
		d = e.changed(s)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, still := e.blocks[s.block]; !still {
		return nil, nil
	}
	if d.Block == 0 {
		e.checked[s.block] = time.Now()
		return nil, nil
	}
	e.noteLocked(d)
	return &d, nil
}

// note remembers damage of a block, for the life of the log: from then on new work is refused,
// and the stop is not a clean one. The first word about a block is what was there; a later one
// may tell what JetStream has made of it since.
func (e *evidence) note(d BlockDamage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.noteLocked(d)
}

func (e *evidence) noteAll(list []BlockDamage) {
	for _, d := range list {
		e.note(d)
	}
}

func (e *evidence) noteLocked(d BlockDamage) {
	if _, told := e.bad[d.Block]; told {
		return
	}
	e.bad[d.Block] = d
	e.l.log.Error("log: damaged block", slog.Int("block", d.Block), slog.String("reason", d.Reason),
		slog.Uint64("first_seq", d.FirstSeq), slog.Uint64("last_seq", d.LastSeq))
	e.refusal.Store(refusesWork(slices.Collect(maps.Values(e.bad))))
}

// hole is told that the stream has no commit where one was: JetStream could not read it, and
// may have cut the file.
func (e *evidence) hole(seq uint64) {
	d := BlockDamage{Reason: damageHole, FirstSeq: seq}
	e.mu.Lock()
	for i, s := range e.blocks {
		if s.first <= seq && seq <= s.last {
			d.Block = i
		}
	}
	e.noteLocked(d)
	e.mu.Unlock()
	if d.Block == 0 {
		e.lookAtTail()
	}
}

// admit refuses new work once damage was found.
func (e *evidence) admit() error {
	if f := e.refusal.Load(); f != nil {
		return f
	}
	return nil
}

// changed says where a block differs from what was written, as far as its records tell.
func (e *evidence) changed(s sealed) BlockDamage {
	d := e.damage(s.block, damageFlipped)
	f, err := readFacts(e.file(s.block), s.block, 0)
	switch {
	case err != nil:
	case f.bad() && f.last+1 >= s.first && f.last < s.last:
		d.FirstSeq, d.LastSeq = max(f.last+1, s.first), 0
	case !f.bad() && (f.first != s.first || f.last != s.last || int64(f.size) != s.size):
		d.Reason = damageForeign
	}
	return d
}

// before makes sure that JetStream may read the blocks with these sequences: it truncates a
// file in which it finds a record it cannot read, and the evidence would be gone. Errors:
// fault log_damaged.
func (e *evidence) before(ctx context.Context, from, to uint64) error {
	if from > e.sealedTo.Load() {
		return nil
	}
	var todo []int
	var bad []BlockDamage
	e.mu.Lock()
	for i, s := range e.blocks {
		if s.last < from || s.first > to {
			continue
		}
		if d, is := e.bad[i]; is {
			bad = append(bad, d)
		} else if at, ok := e.checked[i]; !ok || time.Since(at) > checkedFor {
			todo = append(todo, i)
		}
	}
	e.mu.Unlock()
	slices.Sort(todo)
	var mu sync.Mutex
	err := eachBlock(ctx, todo, func(i int) error {
		s, ok := e.sealed(i)
		if !ok {
			return nil
		}
		d, err := e.hash(s, nil)
		if d != nil {
			mu.Lock()
			bad = append(bad, *d)
			mu.Unlock()
		}
		return err
	})
	if err == nil && len(bad) > 0 {
		err = damaged(bad)
	}
	return err
}

// harmed tells that damage was found in this life. A stop is not clean then: the next start
// looks closely and refuses.
func (e *evidence) harmed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.bad) > 0
}

// fill brings the blocks into the ledger that JetStream has rolled away from: those of this
// life, and older ones once every chain was proved. The next block must hold a durable
// record, so that no stop can make this one the newest again.
func (e *evidence) fill() error {
	e.filling.Lock()
	defer e.filling.Unlock()
	index, err := blockIndexes(e.l.dir.blocks())
	if err != nil || len(index) == 0 {
		return err
	}
	slices.Sort(index)
	e.drop(e.l.first.Load())
	dirSynced, lacking := false, false
	defer func() { e.mu.Lock(); e.lacking = lacking; e.mu.Unlock() }()
	for n, i := range index[:len(index)-1] {
		if _, known := e.sealed(i); known {
			continue
		}
		if i < e.alive && !e.proved.Load() {
			lacking = true
			continue
		}
		next := index[n+1]
		if _, err := firstSeq(e.l.dir.blocks(), next); err != nil {
			return nil // it has no record yet
		}
		if !dirSynced {
			if err := syncPath(e.l.dir.blocks()); err != nil {
				return err
			}
			dirSynced = true
		}
		if err := errors.Join(syncPath(e.file(i)), syncPath(e.file(next))); err != nil {
			return err
		}
		if err := e.enter(i); err != nil {
			return err
		}
	}
	return e.settle()
}

// drop forgets the blocks whose commits were pruned.
func (e *evidence) drop(first uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.blocks)
	maps.DeleteFunc(e.blocks, func(_ int, s sealed) bool { return s.last < first })
	e.rewrite = e.rewrite || n != len(e.blocks)
}

// enter writes one block into the ledger.
func (e *evidence) enter(i int) error {
	b, err := os.ReadFile(e.file(i))
	if err != nil {
		return err
	}
	f := factsOf(i, b, 0)
	if f.bad() || f.first == 0 {
		e.note(BlockDamage{Block: i, Reason: damageFlipped, FirstSeq: f.last + 1})
		return nil
	}
	sum := sha256.Sum256(b)
	s := sealed{block: i, size: int64(len(b)), first: f.first, last: f.last, sum: hex.EncodeToString(sum[:])}
	e.mu.Lock()
	e.blocks[i], e.checked[i] = s, time.Now()
	rewrite := e.rewrite
	e.rewrite = true // until the line is known to stand
	e.mu.Unlock()
	e.sealedTo.Store(max(e.sealedTo.Load(), s.last))
	if rewrite {
		return nil // settle writes them all
	}
	if err := e.l.dir.appendLedger(s); err != nil {
		return err
	}
	e.mu.Lock()
	e.rewrite = false
	e.mu.Unlock()
	return nil
}

// settle replaces the ledger file where appending to it will not do.
func (e *evidence) settle() error {
	e.mu.Lock()
	blocks, rewrite := maps.Clone(e.blocks), e.rewrite
	e.mu.Unlock()
	if !rewrite || e.reason != "" && !e.proved.Load() {
		return nil // a ledger that is wrong waits until the log has proved itself
	}
	if e.reason == damageLedger {
		// What is left of it may still tell a person something.
		if err := os.Rename(e.l.dir.file(ledgerName), e.l.dir.file(ledgerAside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := e.l.dir.writeLedger(blocks); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rewrite = false
	if e.proved.Load() {
		e.reason = ""
	}
	return nil
}

// newest is the newest block in the ledger, for the checkpoint.
func (e *evidence) newest() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for i := range e.blocks {
		n = max(n, i)
	}
	return n
}

// seal completes the ledger at a clean stop and describes what goes on changing. Nil: the
// next start has to look closely.
func (e *evidence) seal() *seal {
	if err := e.fill(); err != nil || e.harmed() {
		return nil
	}
	index, err := blockIndexes(e.l.dir.blocks())
	if err != nil || len(index) == 0 {
		return nil
	}
	s := seal{Block: slices.Max(index)}
	if s.Tail, err = sumFile(e.file(s.Block)); err != nil {
		return nil
	}
	if s.Index, err = sumFile(filepath.Join(e.l.dir.blocks(), indexName)); err != nil {
		return nil
	}
	return &s
}
