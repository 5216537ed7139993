package eventlog

import "webcodex/eventlog/event"

// Base is what read models on disk know of the log, so that a start folds only the commits
// after it (architecture: state.db). It is disposable: without one, or where it does not fit
// the log, everything is folded from the first commit.
type Base interface {
	// Checkpoint is the last commit that the base holds; the zero value: nothing.
	Checkpoint() (BaseCheckpoint, error)
	// Head is where the aggregate's chain ended at the checkpoint; false: no commit up to there.
	Head(event.Aggregate) (Head, bool, error)
	// Damaged lists the aggregates whose chain broke at or before the checkpoint.
	Damaged() ([]Damage, error)
	// Reset throws everything away. The next commit applied is the log's first.
	Reset(reason string) error
}

// BaseCheckpoint names a commit and the history it belongs to.
type BaseCheckpoint struct {
	Seq   uint64
	Hash  string
	Epoch string
}
