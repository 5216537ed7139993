// Package state keeps folds on disk: state.db, one SQLite file that holds every read model
// with the checkpoint it stands at. It is disposable: what it holds comes from the log, and a
// file of another fold version, of another history or with damage is made again from there.
package state

import (
	"context"
	"database/sql"

	"webcodex/eventlog/event"
)

// Model is a fold whose state lies in state.db. Apply is fed by the Keeper alone, in the
// log's order, under the Keeper's lock; it does no I/O. Readers of a model synchronise with
// it themselves.
type Model interface {
	// Apply folds one commit (eventlog.Fold).
	Apply(seq uint64, hash string, c event.Commit)
	// Schema is the statements that make the model's tables.
	Schema() []string
	// Capture hands out what changed since the last capture, as of the last commit applied. It
	// only collects (values are immutable or copied) and is never called during Apply. Nil:
	// nothing changed.
	Capture() Capture
	// Reset forgets everything: the log is folded again from its first commit.
	Reset()
}

// Capture is one model's share of a batch.
type Capture interface {
	// Write puts it into the transaction that also moves the checkpoint.
	Write(ctx context.Context, tx *sql.Tx) error
	// Written tells that the transaction is in the file: what was captured need not be held in
	// memory for the file's sake any more. It is not called when the transaction failed; then
	// the next Capture must hold the same changes again.
	Written()
}

// Loader is a Model that reads its rows. Load is called once the file is open and fits, before
// the first Apply, and again after each Reset, which closes the handle of before. The handle
// is for queries alone, may be used by many goroutines, and sees whole transactions. A row
// carries a Hash of its content; what does not match is told as an error, never shown.
type Loader interface {
	Load(ctx context.Context, db *sql.DB) error
}
