package eventlog

import (
	"context"

	"webcodex/eventlog/event"
)

// Base is what read models on disk know of the log, so that a start folds only the commits
// after it (architecture: state.db). It is disposable: without one, or where it does not fit
// the log, everything is folded from the first commit. It is fed by the log itself and is not
// among Options.Folds.
//
// Apply and Damage come from one goroutine, in the log's order, and do no I/O. Checkpoint,
// Head and OldestLiving may be asked at any time, by many goroutines. Head and Checkpoint
// agree: once Checkpoint has told a sequence, Head gives what stood there or something newer.
//
// Where it is an io.Closer too, the log closes it at the end of its life: everything applied
// is durable then, unless writing had ended, and the directory is still held.
type Base interface {
	// Checkpoint is the last commit that is in the base's file; the zero value: nothing. Once
	// opened it costs no I/O: the log asks every second.
	Checkpoint() (BaseCheckpoint, error)
	// Head is where the aggregate's chain ended at the checkpoint; false: nothing of it was
	// applied up to there. A removed aggregate keeps its head for as long as the log may hold a
	// commit of it.
	Head(event.Aggregate) (BaseHead, bool, error)
	// Damaged lists the aggregates whose chain broke, as Damage told of them.
	Damaged() ([]Damage, error)
	// Reset throws everything away, in the file and in memory. The next commit applied is the
	// first that the log has. Reason is one of the codes below.
	Reset(reason string) error

	// Apply takes in one commit (see Applied).
	Apply(Applied)
	// Damage tells of an aggregate that is closed from now on: its later commits are not
	// applied. It is to be kept with the aggregate's head, and may be told twice.
	Damage(event.Aggregate, Damage)
	// OldestLiving gives the living aggregate with the lowest root before a sequence; false:
	// there is none, so everything before may leave the log. Not living are Sessions that
	// retention.session_removed names and the log's own aggregate; damaged ones are living.
	OldestLiving(before uint64) (Living, bool, error)

	// Scrub reads the whole file and has the base made again at the next start where it is
	// damaged; the log asks after each pass over its own blocks. The error is of a file that
	// could not be read through.
	Scrub(context.Context) error
}

// BaseCheckpoint names a commit and the history it belongs to.
type BaseCheckpoint struct {
	Seq   uint64
	Hash  string
	Epoch string
	// Aggregates counts the heads at Seq: Applied with First set.
	Aggregates int
}

// BaseHead is a Head and the aggregate's root: the sequence from which on its state can be
// folded, 0 while it has none (see Applied).
type BaseHead struct {
	Head
	Root uint64
}

// Applied is a commit as the log hands it out, to folds too. Sequences rise and may have
// gaps: commits of a damaged aggregate are not handed out.
//
// In a log whose beginning was pruned an aggregate may begin with any version. Of such a one
// only the parts of its carried state (event.CarriedIn) are handed out, each with its own
// sequence and version, until event.Gather puts them together; everything after is handed
// out as usual. So a fold meets an aggregate either at version 1, or at a carried part, and
// then nothing but parts up to a whole state; parts that stop short are followed by a part 1.
// Parts of an aggregate that has a state already come like any commit and change nothing. The
// exceptions are the log's own aggregate, whose commits are handed out from the first that is
// there, since log.pruned repeats what counts, and retention's, since they remove Sessions that
// may begin behind the cut; only its own fold has to wait for its carried state. A fold need not keep gathered parts over a
// restart: a base that was left among them is reset (ResetHalfCarried).
type Applied struct {
	Seq    uint64
	Hash   string
	Commit event.Commit
	// First tells that the aggregate had no head before.
	First bool
	// Root, if it is not 0, is the aggregate's new root: its commits before may leave the log.
	// It is the sequence of version 1, or of the first part of the carried state that this
	// commit completes.
	Root uint64
}

// Living is an aggregate that still needs its commits from Root on.
type Living struct {
	Aggregate event.Aggregate
	Root      uint64
}

// Reasons of Reset.
const (
	ResetUnreadable  = "unreadable"       // the base could not tell its checkpoint
	ResetBeyondEnd   = "beyond_the_end"   // the checkpoint lies behind the log's last commit
	ResetBeforeStart = "before_the_start" // the log begins after the commit that follows it
	ResetForeign     = "foreign"          // another commit stands in its place
	ResetEpoch       = "other_epoch"      // it is of another history
	ResetTailLost    = "tail_lost"        // an unclean stop took the log's newest commits
	ResetHalfCarried = "half_carried"     // it was left among the parts of a carried state
)
