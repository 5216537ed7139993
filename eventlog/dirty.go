package eventlog

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"webcodex/internal/fault"
)

const (
	indexName = "index.db" // JetStream's own summary of its blocks
)

// seal is what a clean stop leaves about the files that go on changing.
type seal struct {
	Block int     `json:"block"` // number of the newest block file
	Tail  fileSum `json:"tail"`
	Index fileSum `json:"index"`
}

// examine looks at the log's files before JetStream opens them, because JetStream cuts away
// what it cannot read and says nothing (faults.md 2.11). After a clean stop the files' names
// and sizes are compared with the ledger, and the newest block with its hash. After any other
// stop every sealed block is hashed, and the newest is read record by record and copied
// aside. Errors: fault log_damaged with every bad block; then nothing was changed.
func (l *Log) examine(ctx context.Context, cp checkpoint, has bool) error {
	x := l.examination(cp, has)
	clean, err := x.look(ctx)
	if err != nil || len(x.index) == 0 {
		return err
	}
	if err := x.l.dir.completeMeta(); err != nil || clean {
		return err
	}
	return x.setAside()
}

func (l *Log) examination(cp checkpoint, has bool) *examination {
	x := &examination{l: l, e: l.evidence, dir: l.dir.blocks(), cp: cp, has: has, durable: cp.Seq}
	if l.opts.Witness != nil && cp.proves(BaseCheckpoint{Epoch: cp.Epoch}) {
		at, err := l.opts.Witness()
		if cp.proves(at) {
			x.durable = max(x.durable, at.Seq)
		}
		if l.unwitnessed = err != nil; l.unwitnessed {
			l.log.Warn("log: whether commits are missing from its end is known up to the last checkpoint alone",
				slog.Uint64("checkpoint", cp.Seq), slog.String("reason", err.Error()))
		}
	}
	return x
}

// look judges the files and changes nothing. Errors: fault log_damaged with every bad block.
func (x *examination) look(ctx context.Context) (clean bool, err error) {
	if err := x.find(); err != nil || len(x.index) == 0 {
		return false, err
	}
	x.compareNames()
	if clean, err = x.clean(); err != nil {
		return clean, err
	}
	if err := x.readSealed(ctx, !clean); err != nil {
		return clean, err
	}
	if !clean {
		if err := x.readTail(); err != nil {
			return clean, err
		}
	}
	if len(x.bad) > 0 {
		return clean, damaged(x.bad)
	}
	return clean, nil
}

// completeMeta puts one of the stream's two meta files aside if the other is gone: JetStream
// finds no stream then, and makes both again only where neither is.
func (d *dir) completeMeta() error {
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(d.streamDir(), name))
		return err == nil
	}
	for one, other := range map[string]string{"meta.inf": "meta.sum", "meta.sum": "meta.inf"} {
		if there(one) && !there(other) {
			path := filepath.Join(d.streamDir(), one)
			if err := os.Rename(path, path+".aside"); err != nil {
				return fault.Wrap(err, fault.Unavailable, "the log's meta file cannot be put aside")
			}
		}
	}
	return nil
}

// reach is which commits a block that is not in the ledger holds; 0: none.
type reach struct{ first, last uint64 }

// examination is one look before a start.
type examination struct {
	l   *Log
	e   *evidence
	dir string
	cp  checkpoint
	has bool
	// durable is the newest sequence known to have been durable: the checkpoint's, or what the
	// witness has seen.
	durable uint64
	index   []int // block files, oldest first
	tail    int   // the newest
	cut     int   // the last block that is of use, because a power cut took what follows; 0: none
	reach   map[int]reach

	mu  sync.Mutex
	bad []BlockDamage
}

func (x *examination) file(i int) string { return filepath.Join(x.dir, strconv.Itoa(i)+blockSuffix) }

func (x *examination) report(d BlockDamage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.ContainsFunc(x.bad, func(o BlockDamage) bool { return o.Block == d.Block }) {
		x.bad = append(x.bad, d)
	}
}

// mayLose tells that the last stop may have taken commits behind seq: it was not clean, the
// page cache is gone, and no commit behind seq was promised to stay.
func (x *examination) mayLose(seq uint64) bool {
	if !x.has || x.cp.Clean || x.sameBoot() {
		return false
	}
	return x.cp.Durability == Process || x.cp.Durability != Always && seq >= x.durable
}

// sameBoot tells that the page cache of the last life still stands.
func (x *examination) sameBoot() bool {
	return x.has && x.cp.Boot != "" && x.cp.Boot == x.l.boot
}

// find lists the block files and reads the ledger.
func (x *examination) find() error {
	var err error
	x.index, err = blockIndexes(x.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(err, fault.Unavailable, "the log's directory cannot be read")
	}
	slices.Sort(x.index)
	if err := x.e.load(x.cp.Ledger); err != nil {
		return err
	}
	if len(x.index) > 0 {
		x.tail = x.index[len(x.index)-1]
		return nil
	}
	if x.durable > 0 && !x.mayLose(0) {
		return fault.New(fault.LogDamaged, "the log is gone: sequence %d was made durable and no block is left", x.durable).
			WithReason(damageGone).WithNext("restore the data directory from a backup")
	}
	return nil
}

// compareNames looks for files that are gone and for sizes that changed.
func (x *examination) compareNames() {
	for n := x.index[0]; n < x.tail; n++ {
		// A cut in the middle of a prune may leave a block behind one that is gone.
		if s, known := x.e.sealed(n); !slices.Contains(x.index, n) && !(known && s.last < x.cp.Pruned) {
			x.report(x.e.damage(n, damageMissing))
		}
	}
	newest := x.e.newest()
	for _, s := range x.e.list() {
		switch {
		case s.block > x.tail, s.block == newest && newest == x.tail:
			// It was sealed when something durable lay behind it.
			x.report(x.e.damage(s.block, damageOlder))
		case s.block >= x.index[0]:
			if info, err := os.Stat(x.file(s.block)); err == nil && info.Size() != s.size {
				x.report(x.e.damage(s.block, damageFlipped))
			}
		default: // pruned, or it will be missed when the log is open and tells what was
		}
	}
}

// clean tells that the last stop was clean and left proof of it. A proof that does not hold
// is damage; none at all, as from an older program, means a close look.
func (x *examination) clean() (bool, error) {
	s := x.cp.Seal
	if !x.has || !x.cp.Clean || s == nil {
		return false, nil
	}
	switch {
	case s.Block > x.tail:
		x.report(BlockDamage{Block: s.Block, Reason: damageOlder})
		return true, nil
	case s.Block < x.tail:
		x.report(BlockDamage{Block: x.tail, Reason: damageForeign})
		return true, nil
	}
	sum, err := sumFile(x.file(x.tail))
	if err != nil {
		return false, fault.Wrap(err, fault.Unavailable, "the log's newest block cannot be read")
	}
	if sum != s.Tail {
		x.report(x.tailChanged(sum))
	}
	// An index.db that JetStream refuses makes it read and cut every block.
	sum, err = sumFile(filepath.Join(x.dir, indexName))
	return err == nil && sum == s.Index && x.e.known(), nil
}

// tailChanged names what happened to the newest block after a clean stop.
func (x *examination) tailChanged(now fileSum) BlockDamage {
	d := BlockDamage{Block: x.tail, Reason: damageFlipped}
	f, err := readFacts(x.file(x.tail), x.tail, x.cp.Seq)
	switch {
	case err != nil:
	case f.bad() && now.Size < x.cp.Seal.Tail.Size:
		d.Reason, d.FirstSeq, d.LastSeq = damageTail, f.last+1, x.cp.Seq
	case f.bad():
		d.FirstSeq = f.last + 1
	case f.last < x.cp.Seq:
		d.Reason, d.FirstSeq, d.LastSeq = damageOlder, f.last+1, x.cp.Seq
	case f.hash != x.cp.Hash, f.last > x.cp.Seq:
		d.Reason = damageForeign
	}
	return d
}

// readSealed hashes the sealed blocks, on every core: those of the ledger if all is set, and
// always those that are not in it, whose records are read instead. JetStream itself reads
// what was written within its dedupe window.
func (x *examination) readSealed(ctx context.Context, all bool) error {
	var todo []int
	young := time.Now().Add(-2 * dedupeWindow)
	for _, i := range x.index[:len(x.index)-1] {
		info, err := os.Stat(x.file(i))
		if _, known := x.e.sealed(i); all || !known || err == nil && info.ModTime().After(young) {
			todo = append(todo, i)
		}
	}
	return eachBlock(ctx, todo, x.readBlock)
}

func (x *examination) readBlock(i int) error {
	if s, known := x.e.sealed(i); known {
		bad, err := x.e.hash(s, nil)
		if err == nil && bad != nil {
			x.report(*bad)
		}
		return err
	}
	f, err := readFacts(x.file(i), i, x.cp.Seq)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "block %d of the log cannot be read", i)
	}
	x.reaches(i, f)
	switch {
	case f.hash != "" && f.hash != x.cp.Hash:
		x.report(BlockDamage{Block: i, Reason: damageForeign, FirstSeq: f.first, LastSeq: f.last})
	case !f.bad():
	case x.mayLose(f.last):
		x.mu.Lock()
		if x.cut == 0 || i < x.cut {
			x.cut = i
		}
		x.mu.Unlock()
	default:
		x.report(BlockDamage{Block: i, Reason: damageFlipped, FirstSeq: f.last + 1})
	}
	return nil
}

// readTail judges the newest block after a stop that was not clean: a record cut short behind
// what was durable is how a stop in mid-write looks, anything else is damage.
func (x *examination) readTail() error {
	f, err := readFacts(x.file(x.tail), x.tail, x.cp.Seq)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log's newest block cannot be read")
	}
	x.reaches(x.tail, f)
	x.findGap()
	if x.cut == 0 {
		x.judgeTail(f)
	}
	return nil
}

func (x *examination) reaches(i int, f blockFacts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.reach == nil {
		x.reach = map[int]reach{}
	}
	x.reach[i] = reach{f.first, f.last}
}

// findGap looks for a block that ends, between two records, before the next one begins. A power cut
// leaves that where it took the end of a block and not the beginning of the next one, neither of
// which was durable; otherwise it is a hole.
func (x *examination) findGap() {
	last, at := uint64(0), 0
	for _, i := range x.index {
		if x.cut > 0 && i > x.cut {
			return
		}
		now := x.reach[i]
		if s, known := x.e.sealed(i); known {
			now.last = s.last
		}
		if last > 0 && now.first > last+1 && last >= x.cp.Pruned { // of what was pruned some may be gone
			if x.mayLose(last) {
				x.cut = at
			} else {
				x.report(BlockDamage{Block: at, Reason: damageHole, FirstSeq: last + 1, LastSeq: now.first - 1})
			}
			return
		}
		if now.last > 0 {
			last, at = now.last, i
		}
	}
}

func (x *examination) judgeTail(f blockFacts) {
	before, known := x.e.sealed(x.tail - 1)
	last := max(f.last, before.last)
	short := last > 0 && last < x.durable || known && f.first == 0
	switch {
	case x.has && f.hash != "" && f.hash != x.cp.Hash, known && f.first > 0 && f.first <= before.last:
		x.report(BlockDamage{Block: x.tail, Reason: damageForeign, FirstSeq: f.first, LastSeq: f.last})
	case f.bad() && x.broken(f):
		x.report(BlockDamage{Block: x.tail, Reason: damageFlipped, FirstSeq: last + 1})
	case !short || x.mayLose(last):
	case f.bad() || f.size == 0:
		x.report(BlockDamage{Block: x.tail, Reason: damageTail, FirstSeq: last + 1, LastSeq: x.durable})
	case last >= x.cp.Seq: // cut between two records, after the checkpoint file was written
		x.report(BlockDamage{Block: x.tail, Reason: damageTail, FirstSeq: last + 1, LastSeq: x.durable})
	default:
		x.report(BlockDamage{Block: x.tail, Reason: damageOlder, FirstSeq: last + 1, LastSeq: x.durable})
	}
}

// broken tells that the bad end of the newest block is not what a stop in mid-write leaves.
func (x *examination) broken(f blockFacts) bool {
	switch {
	case x.has && x.cp.Clean: // nothing was being written
		return !f.torn
	case x.sameBoot():
		return f.later || f.whole || !f.torn
	case x.has && x.cp.Durability == Always: // each record was synced before the next
		return f.later
	}
	return false // a power cut takes pages in any order
}

// eachBlock runs fn for the blocks, on every core, until one fails.
func eachBlock(ctx context.Context, blocks []int, fn func(int) error) error {
	next := make(chan int)
	var wg sync.WaitGroup
	var once sync.Once
	var failed error
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range min(runtime.GOMAXPROCS(0), len(blocks)) {
		wg.Go(func() {
			for i := range next {
				if err := fn(i); err != nil {
					once.Do(func() { failed = err; cancel() })
				}
			}
		})
	}
	defer wg.Wait()
	for _, i := range blocks {
		select {
		case next <- i:
		case <-ctx.Done():
			close(next)
			wg.Wait()
			if failed != nil {
				return failed
			}
			return cancelled(ctx)
		}
	}
	close(next)
	wg.Wait()
	return failed
}
