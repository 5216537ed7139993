package eventlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// blocks tracks JetStream's block files for the syncs it does not do itself. It belongs to
// one goroutine at a time: the committer, or the syncer while it runs.
type blocks struct {
	dir string
	// last is the newest index known synced: every block below it is durable and changes no
	// more, and so is the directory entry of last itself.
	last int
	// tail is block last, held open in durability group: a failed write-back is reported once
	// to each open file, so one opened later could miss what JetStream's own sync was told.
	tail *os.File
	next string // path of the block after last
	// fdatasync makes a block's data durable; a seam for injected errors.
	fdatasync func(*os.File) error
}

// newBlocks looks at the block directory.
func newBlocks(dir string) (*blocks, error) {
	idx, err := blockIndexes(dir)
	if err != nil {
		return nil, err
	}
	b := &blocks{dir: dir, fdatasync: fdatasync}
	newest := 0
	for _, i := range idx {
		newest = max(newest, i)
	}
	b.advance(newest)
	return b, nil
}

func (b *blocks) advance(to int) { b.last, b.next = to, b.file(to+1) }

func blockIndexes(dir string) ([]int, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []int
	for _, n := range names {
		if s, ok := strings.CutSuffix(n.Name(), ".blk"); ok {
			if i, err := strconv.Atoi(s); err == nil {
				out = append(out, i)
			}
		}
	}
	return out, nil
}

func (b *blocks) file(i int) string { return filepath.Join(b.dir, strconv.Itoa(i)+".blk") }

// newest looks for blocks that JetStream began after last; indexes have no gap. It costs one
// system call when there is none.
func (b *blocks) newest() (int, error) {
	newest, next := b.last, b.next
	for {
		switch err := unix.Access(next, unix.F_OK); {
		case errors.Is(err, unix.ENOENT):
			return newest, nil
		case err != nil:
			return newest, fmt.Errorf("look for a block: %w", err)
		}
		newest++
		next = b.file(newest + 1)
	}
}

// syncDir makes the directory entry of a new block durable. It runs before anything in the
// new block is called durable (durability always), or told (process).
func (b *blocks) syncDir() error {
	newest, err := b.newest()
	if err != nil || newest == b.last {
		return err
	}
	if err := syncPath(b.dir); err != nil {
		return err
	}
	b.advance(newest)
	return nil
}

// sync makes everything durable that JetStream wrote before the call: every block from the
// last one known synced on, since a roll-over leaves the end of the old block unsynced, then
// the directory if a block is new.
func (b *blocks) sync() error {
	newest, err := b.newest()
	if err != nil {
		return err
	}
	for i := max(b.last, 1); i <= newest; i++ {
		if b.tail == nil || i > b.last {
			f, err := os.Open(b.file(i))
			if err != nil {
				return fmt.Errorf("open a block: %w", err)
			}
			b.close()
			b.tail = f
		}
		if err := b.fdatasync(b.tail); err != nil {
			return fmt.Errorf("sync a block: %w", err)
		}
	}
	if newest == b.last {
		return nil
	}
	if err := syncPath(b.dir); err != nil {
		return err
	}
	b.advance(newest)
	return nil
}

func (b *blocks) close() {
	if b.tail != nil {
		_ = b.tail.Close()
		b.tail = nil
	}
}

// reread lets go of what the page cache holds of the blocks from an index on. After a failed
// write-back the kernel counts pages as written that never were and goes on showing them, so a
// life after it would call durable what is not on the disk (faults.md 2.2).
func reread(dir string, from int) error {
	idx, err := blockIndexes(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	b := blocks{dir: dir}
	for _, i := range idx {
		if i < from {
			continue
		}
		if err := syncPath(b.file(i)); err != nil { // what a killed process left is written first
			return err
		}
		dropCached(b.file(i))
	}
	return nil
}

// syncFrom makes every block from an index on durable, then the directory; it gives the
// highest index, where the next call begins.
func syncFrom(dir string, from int) (int, error) {
	idx, err := blockIndexes(dir)
	if err != nil {
		return from, err
	}
	b, last := blocks{dir: dir}, from
	for _, i := range idx {
		if i < from {
			continue
		}
		// A prune may have removed it since.
		if err := syncPath(b.file(i)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return from, err
		}
		last = max(last, i)
	}
	return last, syncPath(dir)
}
