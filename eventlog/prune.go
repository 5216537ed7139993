package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Block is one of the files that the log lies in.
type Block struct {
	Index int
	// First is the sequence of its first commit; 0: it holds none yet.
	First uint64
	// Bytes of the file.
	Bytes int64
	// Sealed blocks never change; the newest one is written to.
	Sealed bool
}

// pruning is what prunes need over their calls.
type pruning struct {
	mu    sync.Mutex
	first map[int]uint64 // of sealed blocks, by index: they never change
}

// Blocks lists the log's files in their order. Errors: fault log_damaged for a block whose
// beginning cannot be read, unavailable.
func (l *Log) Blocks() ([]Block, error) {
	l.prune.mu.Lock()
	defer l.prune.mu.Unlock()
	return l.listBlocks()
}

func (l *Log) listBlocks() ([]Block, error) {
	dir := l.dir.blocks()
	indexes, err := blockIndexes(dir)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the log's files cannot be listed")
	}
	if l.prune.first == nil {
		l.prune.first = map[int]uint64{}
	}
	slices.Sort(indexes)
	out := make([]Block, 0, len(indexes))
	for i, index := range indexes {
		b := Block{Index: index, Sealed: i+1 < len(indexes)}
		info, err := os.Stat(filepath.Join(dir, strconv.Itoa(index)+blockSuffix))
		if err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "a file of the log cannot be looked at")
		}
		b.Bytes = info.Size()
		known := false
		if b.First, known = l.prune.first[index]; !known {
			b.First, err = firstSeq(dir, index)
			switch {
			case errors.Is(err, errNoRecord) && !b.Sealed:
			case err != nil:
				if b.Sealed && fault.KindOf(err) == fault.LogDamaged {
					l.evidence.note(BlockDamage{Block: index, Reason: damageFlipped})
				}
				return nil, fmt.Errorf("look at a block: %w", err)
			case b.Sealed:
				l.prune.first[index] = b.First
			}
		}
		out = append(out, b)
	}
	return out, nil
}

// Prune takes everything before a sequence out of the log for good. The sequence must be the
// first of a block, and no living aggregate may need a commit before it. log.pruned is made
// durable first, so a crash in between leaves a log that is whole and begins earlier; the same
// call finishes it. Reason is age, bytes, tail or operator. Commits go on meanwhile, with
// pauses of some 100 ms.
//
// Errors: fault invalid_arguments for a sequence that is no place to cut; conflict with reason
// still_needed and the aggregate, or damaged, when something before it must stay; unavailable
// with reason read_models_behind, to be tried again; and Append's.
func (l *Log) Prune(ctx context.Context, first uint64, reason string) error {
	l.prune.mu.Lock()
	defer l.prune.mu.Unlock()
	if first <= l.first.Load() {
		return nil
	}
	blocks, err := l.mayPrune(ctx, first)
	if err != nil {
		return err
	}
	if err := l.announce(ctx, first, reason); err != nil {
		return err
	}
	return l.cut(ctx, blocks, first)
}

// mayPrune refuses what would lose something. It gives the log's blocks.
func (l *Log) mayPrune(ctx context.Context, first uint64) ([]Block, error) {
	if l.opts.ReadOnly || l.opts.Base == nil {
		return nil, fault.New(fault.Unavailable, "only a log with its read models can be pruned")
	}
	if err := l.Err(); err != nil {
		return nil, err
	}
	blocks, err := l.listBlocks()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(blocks, func(b Block) bool { return b.First == first }) || first > l.SyncedSeq() {
		return nil, fault.New(fault.InvalidArguments, "sequence %d is not where a durable block of the log begins", first)
	}
	for _, d := range l.chain.list() {
		if d.Seq < first {
			return nil, fault.New(fault.Conflict, "%s is damaged at sequence %d; the evidence stays", d.Aggregate, d.Seq).WithReason("damaged")
		}
	}
	err = l.evidence.admit()
	if err == nil {
		err = l.evidence.before(ctx, l.first.Load(), first-1)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Conflict, "a block of the log is damaged; the evidence stays").WithReason("damaged")
	}
	at, err := l.opts.Base.Checkpoint()
	if err == nil && at.Seq < first {
		return nil, fault.New(fault.Unavailable, "the read models are at sequence %d, the cut is at %d", at.Seq, first).WithReason("read_models_behind")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the read models cannot tell what is still needed")
	}
	living, found, err := l.opts.Base.OldestLiving(first)
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the read models cannot tell what is still needed")
	}
	if found {
		return nil, fault.New(fault.Conflict, "%s is needed from sequence %d on", living.Aggregate, living.Root).
			WithReason("still_needed").With("seq", living.Root)
	}
	return blocks, nil
}

// prunedTo is the first sequence that the newest log.pruned allows.
func (l *Log) prunedTo() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.pruned
}

// announce commits log.pruned and makes it durable, and the checkpoint with it. A prune that
// was announced before is only finished.
func (l *Log) announce(ctx context.Context, first uint64, reason string) error {
	if l.prunedTo() < first {
		agg := event.LogAggregate()
		head, err := l.Head(agg)
		if err != nil {
			return err
		}
		if _, err = l.Append(ctx, Draft{ID: event.NewCommandID(), Aggregate: agg, Expect: head, At: l.opts.Now(),
			Actor: event.Actor{Credential: "system"}, Reserve: true,
			Events: []event.Event{event.LogPruned{FirstSeq: first, Epoch: l.Epoch(), Reason: reason}}}); err != nil {
			return fmt.Errorf("announce a prune: %w", err)
		}
	}
	seq, hash := l.applied.read()
	if l.opts.Durability == Process {
		if err := l.syncBlocks(); err != nil {
			l.fail(err, "sync_failed", "the disk did not confirm a write")
			return l.Err()
		}
	}
	if err := l.writeCheckpoint(seq, hash, false); err != nil {
		return fault.Wrap(err, fault.Unavailable, "the log's checkpoint could not be written; nothing was pruned")
	}
	return nil
}

// cut purges up to first, some blocks at a time: the store takes no commits during a purge.
func (l *Log) cut(ctx context.Context, blocks []Block, first uint64) error {
	begin := slices.IndexFunc(blocks, func(b Block) bool { return b.First >= l.first.Load() })
	end := slices.IndexFunc(blocks, func(b Block) bool { return b.First == first })
	for at := max(begin, 0); at < end; {
		next := min(at+purgeBlocks, end)
		if err := l.purge(ctx, blocks[next].First); err != nil {
			return err
		}
		freed := int64(0)
		for _, b := range blocks[at:next] {
			freed += b.Bytes
			delete(l.prune.first, b.Index)
		}
		l.space.add(-freed)
		at = next
		if f := l.opts.Faults; f != nil {
			if err := hook(f.AfterPurge, blocks[next].First); err != nil {
				return err
			}
		}
	}
	l.log.Info("log: pruned", slog.Uint64("first_seq", first))
	return nil
}

// purge removes whole blocks. Readers that began before are told through first.
func (l *Log) purge(ctx context.Context, to uint64) error {
	was := l.first.Swap(to)
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	if err := l.stream.Purge(ctx, jetstream.WithPurgeSequence(to)); err != nil {
		l.first.CompareAndSwap(to, was)
		return fault.Wrap(err, fault.Unavailable, "the log could not be pruned; the same call finishes it")
	}
	if err := syncPath(l.dir.blocks()); err != nil {
		l.fail(err, "sync_failed", "the disk did not confirm a write")
		return l.Err()
	}
	return nil
}
