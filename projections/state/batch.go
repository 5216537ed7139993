package state

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// errUnsynced tells that a batch was given up because what it holds is not durable in the log.
var errUnsynced = errors.New("the log has not made these commits durable")

// run writes a batch at the end of each window, or when it is asked to.
func (k *Keeper) run() {
	defer close(k.done)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-k.stop:
			cancel()
		case <-k.done:
		}
	}()
	for {
		select {
		case <-k.stop:
			return
		case answer := <-k.flush:
			answer <- k.batch(ctx)
			continue
		case <-k.mark:
		}
		k.mu.Lock()
		first := k.first
		k.mu.Unlock()
		if first.IsZero() {
			continue // a flush has written it
		}
		if !k.wait(ctx, k.opts.after(max(0, Window-time.Since(first)))) {
			return
		}
		for k.batch(ctx) != nil {
			if !k.wait(ctx, k.opts.after(RetryAfter)) {
				return
			}
		}
	}
}

// wait sits out a pause; a flush ends it early. False: the Keeper closes.
func (k *Keeper) wait(ctx context.Context, pause <-chan time.Time) bool {
	select {
	case <-pause:
	case answer := <-k.flush:
		answer <- k.batch(ctx)
	case <-k.stop:
		return false
	}
	return true
}

// Flush writes everything applied before it was called.
func (k *Keeper) Flush(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case k.flush <- answer:
	case <-k.done:
		return errors.New("state.db is closed")
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// taken is what one batch writes.
type taken struct {
	captures []Capture
	at       eventlog.BaseCheckpoint
	last     time.Time
}

// take collects what changed, as of the last commit applied.
func (k *Keeper) take() (taken, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.first.IsZero() {
		return taken{}, false
	}
	t := taken{at: k.at, last: k.last}
	for _, m := range k.opts.Models {
		if c := m.Capture(); c != nil {
			t.captures = append(t.captures, c)
		}
	}
	k.writing, k.heads = k.heads, map[event.Aggregate]change{}
	k.first, k.behind = time.Time{}, 0
	k.room.Broadcast()
	return t, true
}

// batch writes one transaction.
func (k *Keeper) batch(ctx context.Context) error {
	k.batchMu.Lock()
	defer k.batchMu.Unlock()
	t, any := k.take()
	if !any {
		return nil
	}
	err := k.awaitSynced(ctx, t.at.Seq)
	if err == nil {
		err = k.write(ctx, t)
	}
	if err == nil {
		for _, c := range t.captures {
			c.Written()
		}
		k.batches.Add(1)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.putBack()
		if !errors.Is(err, errUnsynced) && ctx.Err() == nil {
			k.failed(err)
		}
		return err
	}
	k.writing, k.written = nil, t.at
	if k.failing != "" {
		k.log.Warn("the read models are written again")
	}
	k.failing = ""
	return nil
}

// putBack makes a batch that failed part of the next one.
func (k *Keeper) putBack() {
	for a, c := range k.writing {
		k.heads[a] = c.then(k.heads[a])
	}
	k.writing = nil
	k.behind++
	k.marked()
}

func (k *Keeper) failed(err error) {
	why := reasonOf(err)
	if why != k.failing {
		k.log.Error("the read models could not be written; the log has everything, and they are tried again", "reason", why)
	}
	k.failing = why
	if why == "damaged" || why == "no_database" || why == "damaged_row" {
		k.Spoiled(err)
	}
	k.room.Broadcast()
}

// awaitSynced waits until the log has made seq durable.
func (k *Keeper) awaitSynced(ctx context.Context, seq uint64) error {
	k.mu.Lock()
	synced, ended := k.synced, k.ended
	k.mu.Unlock()
	for synced != nil && synced() < seq {
		if ended {
			return errUnsynced
		}
		select {
		case <-time.After(syncPoll):
		case <-ctx.Done():
			return errUnsynced
		}
	}
	return nil
}

func (k *Keeper) write(ctx context.Context, t taken) error {
	k.mu.Lock()
	serves := k.synced != nil
	k.mu.Unlock()
	if serves {
		if err := k.file.slim(ctx); err != nil {
			return err
		}
	}
	tx, err := k.file.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, c := range t.captures {
		if err := c.Write(ctx, tx); err != nil {
			return err
		}
	}
	if err := writeHeads(ctx, tx, k.writing); err != nil {
		return err
	}
	if err := writeCheckpoint(ctx, tx, k.file.fold, t.at, t.last); err != nil {
		return err
	}
	return tx.Commit()
}

// writeHeads writes the heads that moved, in the order of the table. A head whose row holds
// the same of the log as before leaves the indexes alone.
func writeHeads(ctx context.Context, tx *sql.Tx, heads map[event.Aggregate]change) error {
	w := headWriter{ctx: context.WithoutCancel(ctx), tx: tx}
	defer w.close()
	names := make(map[string]change, len(heads))
	for agg, c := range heads {
		names[agg.String()] = c
	}
	for _, a := range slices.Sorted(maps.Keys(names)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.write(a, names[a]); err != nil {
			return err
		}
	}
	return nil
}

// headWriter holds the statements, each prepared when it is needed first.
type headWriter struct {
	ctx            context.Context // never ends: a statement that can be interrupted costs a goroutine
	tx             *sql.Tx
	get, put, move *sql.Stmt
}

func (w *headWriter) close() {
	for _, s := range []*sql.Stmt{w.get, w.put, w.move} {
		if s != nil {
			_ = s.Close()
		}
	}
}

func (w *headWriter) stmt(s **sql.Stmt, query string) (_ *sql.Stmt, err error) {
	if *s == nil {
		*s, err = w.tx.PrepareContext(w.ctx, query)
	}
	return *s, err
}

func (w *headWriter) write(a string, c change) error {
	var was row
	there := false
	if !c.first {
		get, err := w.stmt(&w.get, `SELECT `+headColumns+` FROM state_head WHERE aggregate = ?`)
		if err != nil {
			return err
		}
		if _, was, there, err = scanHead(get.QueryRowContext(w.ctx, a)); err != nil {
			return err
		}
	}
	if !there && c.head.Version == 0 && c.damage == nil {
		return nil // nothing there was removed
	}
	r := was.with(c)
	if there && r.living(a) == was.living(a) && r.head.Root == was.head.Root && r.removed == was.removed && r.damage == was.damage {
		move, err := w.stmt(&w.move, `UPDATE state_head SET version = ?, seq = ?, commit_hash = ?, hash = ? WHERE aggregate = ?`)
		if err != nil {
			return err
		}
		_, err = move.ExecContext(w.ctx, int64(r.head.Version), int64(r.head.Seq), r.head.Hash, r.hash(a), a)
		return err
	}
	put, err := w.stmt(&w.put, `INSERT OR REPLACE INTO state_head (`+headColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	_, err = put.ExecContext(w.ctx, a, int64(r.head.Version), int64(r.head.Seq), r.head.Hash, int64(r.head.Root), r.removed,
		int64(r.damage.Seq), r.damage.Reason, int64(r.living(a)), r.hash(a))
	return err
}

func checkpointHash(fold string, c eventlog.BaseCheckpoint, at time.Time) int64 {
	return new(Fields).Text(fold).Uint(c.Seq).Text(c.Hash).Text(c.Epoch).Uint(uint64(c.Aggregates)).Uint(uint64(at.UnixMilli())).Hash()
}

func writeCheckpoint(ctx context.Context, tx *sql.Tx, fold string, c eventlog.BaseCheckpoint, at time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO state_checkpoint (one, fold, seq, commit_hash, epoch, aggregates, at, hash)
		VALUES (1, ?, ?, ?, ?, ?, ?, ?)`, fold, int64(c.Seq), c.Hash, c.Epoch, c.Aggregates, at.UnixMilli(), checkpointHash(fold, c, at))
	return err
}
