package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"webcodex/internal/fault"
)

// Repair does under the directory's lock what loses nothing: it removes what a stop left half
// written, puts an index of JetStream's aside that is not the one of the last stop, opens the
// log, which makes lost meta files again, follows every commit's chain and makes the block
// ledger again. Beside runs last, still under the lock, for the files of others: they may be
// the only witness of a lost end, so nothing of them goes before the log was held against it.
// Done names what was done, in words. Errors: what Open says; then nothing of the log or
// beside it was changed, and its class (ClassOf) names the only way out.
func Repair(ctx context.Context, o Options, beside func() ([]string, error)) (done []string, err error) {
	d, err := openDir(o.Dir, false)
	if err != nil {
		return nil, err
	}
	done, cp, err := d.tidy()
	if err == nil {
		var more []string
		more, err = d.restoreFormat(o.MaxBytes)
		done = append(done, more...)
	}
	_, _, reason, lerr := d.readLedger()
	meta := d.hasMeta()
	d.close()
	if err = errors.Join(err, lerr); err != nil {
		return done, err
	}
	o.Base, o.ReadOnly = nil, false
	if o.Durability == "" {
		o.Durability = cp.Durability
	}
	l, err := Open(ctx, o)
	if err != nil {
		return done, err
	}
	proved := l.evidence.proved.Load()
	before := l.Status().Evidence
	damaged := l.Status().Damaged
	if l.unwitnessed {
		done = append(done, fmt.Sprintf("what is kept beside the log could not tell how far it went: "+
			"whether commits are missing from its end is unknown beyond sequence %d", cp.Seq))
	}
	if beside != nil {
		var more []string
		more, err = beside()
		done = append(done, more...)
	}
	if err := errors.Join(err, l.Close()); err != nil {
		return done, err
	}
	if !meta && d.hasMeta() {
		done = append(done, "the log's meta files were made again")
	}
	after := l.evidence.status()
	if proved && (reason == damageLedger || before.Ledger != LedgerOK || after.Blocks > before.Blocks) {
		done = append(done, fmt.Sprintf("the block ledger was made again from the log: %d blocks", after.Blocks))
	}
	if len(damaged) > 0 {
		return done, damaged[0].fault()
	}
	return done, nil
}

// tidy removes what is half written and puts a foreign index aside.
func (d *dir) tidy() (done []string, cp checkpoint, err error) {
	for _, name := range []string{checkpointName, formatName, ledgerName, scrubName, tailCopyName} {
		tmp := d.file(name + ".tmp")
		if _, err := os.Lstat(tmp); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(tmp); err != nil {
			return done, cp, fault.Wrap(err, fault.Unavailable, "a half written file cannot be removed")
		}
		done = append(done, name+".tmp, which a stop left half written, was removed")
	}
	cp, has, err := d.readCheckpoint()
	if err != nil || !has || cp.Seal == nil {
		return done, cp, err
	}
	path := filepath.Join(d.blocks(), indexName)
	sum, err := sumFile(path)
	if err != nil || sum == cp.Seal.Index {
		return done, cp, nil
	}
	if err := os.Rename(path, path+".aside"); err != nil {
		return done, cp, fault.Wrap(err, fault.Unavailable, "the log's index cannot be put aside")
	}
	return append(done, "an index of the log that is not the last stop's was put aside; it is made again"), cp, nil
}

// restoreFormat writes a format file that is gone again, with the budget of the stream that is
// there; where the stream's meta file is gone too, with the named one or a share of free space.
func (d *dir) restoreFormat(budget int64) ([]string, error) {
	f, err := d.readFormat()
	if err != nil || f.Format != 0 {
		return nil, err
	}
	if index, err := blockIndexes(d.blocks()); err != nil || len(index) == 0 {
		return nil, nil // there is no log, or it is gone
	}
	var meta struct {
		Name     string `json:"name"`
		MaxBytes int64  `json:"max_bytes"`
	}
	how := "the budget of the log's stream"
	b, err := os.ReadFile(filepath.Join(d.streamDir(), "meta.inf"))
	if err != nil || json.Unmarshal(b, &meta) != nil || meta.Name != streamName || meta.MaxBytes <= 0 {
		free, _ := freeSpace(d.path)
		meta.MaxBytes = max(minBudget, int64(float64(free)*budgetShare))
		if how = "a budget of the free space, since the log's meta file is gone too"; budget > 0 {
			meta.MaxBytes, how = budget, "the budget that was named"
		}
	}
	if err := d.writeFile(formatName, format{Format: FormatVersion, MaxBytes: meta.MaxBytes}); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the data directory cannot be written")
	}
	return []string{"the format file was written again with " + how}, nil
}

func (d *dir) hasMeta() bool {
	for _, name := range []string{"meta.inf", "meta.sum"} {
		if _, err := os.Lstat(filepath.Join(d.streamDir(), name)); err != nil {
			return false
		}
	}
	return true
}
