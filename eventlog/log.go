package eventlog

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"webcodex/eventlog/event"
)

// Durability says what an acknowledgement promises.
type Durability string

// Durability modes. Always and group survive a power cut: in always each commit is synced by
// itself, in group those that wait share one sync. Process survives kill -9 only (SES-47).
const (
	Always  Durability = "always"
	Group   Durability = "group"
	Process Durability = "process"
)

// Valid reports whether d is one of the modes.
func (d Durability) Valid() bool { return d == Always || d == Group || d == Process }

// ErrConflict tells that another commit of the aggregate came first. Nothing of the draft
// stands; decide again on the new state.
var ErrConflict = errors.New("another commit of the aggregate came first")

// Head is where an aggregate's chain ends. The zero Head means that it has no commit.
type Head struct {
	Version uint64
	Seq     uint64 // stream sequence of the last commit: the expected sequence of the next
	Hash    string
}

// Draft is a decision to be made durable. Version, Prev and Server are filled by Append.
type Draft struct {
	ID         event.CommandID
	Aggregate  event.Aggregate
	Expect     Head // the head the decision was made on
	At         time.Time
	Actor      event.Actor
	Invocation event.InvocationID
	Events     []event.Event
	// Reserve lets the commit use the last 10 % of the space: finish, close, recovery. New
	// work never sets it.
	Reserve bool
}

// Receipt is the proof that a commit is in the log, durable as the mode promises, and
// applied to every fold.
type Receipt struct {
	Seq    uint64
	Hash   string
	Commit event.Commit
}

// Fold is fed every commit in sequence order, as Applied says, at start by the feed and later
// by the committer. Apply does no I/O and ignores seq it has seen. It runs once at a time.
// Readers of the fold synchronise with it themselves.
type Fold interface {
	Apply(seq uint64, hash string, c event.Commit)
}

// Options of Open.
type Options struct {
	Dir        string // data directory; created 0700. The log lies in Dir/log, the lock in Dir/lock.
	Durability Durability
	// MaxBytes is the log's budget; 0: what it was, and 70 % of the free space at the first start.
	// Below what the log holds it refuses new work until enough was pruned; nothing is lost.
	MaxBytes int64
	Server   event.InstanceID
	Now      func() time.Time
	Logger   *slog.Logger
	Folds    []Fold
	// ReadOnly opens an existing log for Replay and the folds alone: nothing is appended.
	ReadOnly bool
	// Base is where the read models were left; nil: everything is folded. With one, Folds see
	// what the base is fed and nothing from before its checkpoint. A fold that keeps something
	// belongs into the base.
	Base Base
	// Witness tells the last commit that something beside the log has seen as durable, and
	// changes nothing; zero: it knows of none. An error: it knew of one and cannot tell any more,
	// so the log's end is held against the checkpoint file alone, with a warning. It is asked
	// under the directory's lock after a stop that was not clean, before JetStream touches a
	// file. Nil: nobody knows.
	Witness func() (BaseCheckpoint, error)
	// Progress is told now and then how far a long start has come, as sequences.
	Progress func(done, last uint64)
	// ScrubEvery is the rest between two passes over all sealed blocks in the background; 0: a
	// day.
	ScrubEvery time.Duration
	// ScrubRate is how many bytes a second such a pass reads at most; 0: 5 MiB; below 0: there
	// is none.
	ScrubRate int64
	// Reason says why this durability mode, for Status: default where nobody chose.
	Reason string
	// Runners says where Runners of other processes may connect, once ServeRunners was called.
	Runners RunnerListen
	// Faults is the seam through which tests inject faults; nil in the program.
	Faults *Faults
}

// Appender is what a command handler gets: the right to write.
type Appender interface {
	// Head is the aggregate's chain end as applied. A damaged aggregate is fault log_damaged.
	Head(event.Aggregate) (Head, error)
	// Append makes the draft durable, applies it to every fold and returns. It may be called
	// from many goroutines; at most one draft of an aggregate should be in flight (others
	// get ErrConflict). Errors: ErrConflict; fault storage_full, persistence_uncertain,
	// shutting_down, log_damaged. After persistence_uncertain the log takes no more commits in
	// this life; after log_damaged with blocks only those with Reserve, of records that do not
	// end in a damaged one (decision 22). With log_damaged nothing of the draft was written.
	// A cancelled ctx does not withdraw a draft that was already published.
	Append(ctx context.Context, d Draft) (Receipt, error)
	// Admit refuses new work early: storage_full, persistence_uncertain, shutting_down,
	// log_damaged.
	Admit() error
}
