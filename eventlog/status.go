package eventlog

import (
	"time"

	"webcodex/eventlog/event"
)

// Status is the log's health, for people and for get_runtime_status.
type Status struct {
	Durability Durability       `json:"durability"`
	Promise    Promise          `json:"promise"`
	Server     event.InstanceID `json:"server"`
	Epoch      string           `json:"epoch"`
	// FirstSeq is where the log begins, above 1 once its beginning was pruned.
	FirstSeq uint64 `json:"first_seq"`
	// PrunedTo is what the newest log.pruned announced; above FirstSeq a prune is unfinished.
	PrunedTo uint64 `json:"pruned_to,omitempty"`
	// Seq is the newest commit applied; SyncedSeq the newest known to be on the disk.
	Seq       uint64 `json:"seq"`
	SyncedSeq uint64 `json:"synced_seq"`
	// Bytes of MaxBytes are used; FreeBytes of the file system are free, -1 if untold.
	Bytes     int64  `json:"bytes"`
	MaxBytes  int64  `json:"max_bytes"`
	FreeBytes int64  `json:"free_bytes"`
	Space     string `json:"space"` // SpaceOK or SpaceReserve
	// Writing is false after the first sync error and the like; Reason says why.
	Writing bool   `json:"writing"`
	Reason  string `json:"reason,omitempty"`
	// Aggregates counts the records that the folds know; Damaged lists those whose chain broke.
	Aggregates int      `json:"aggregates"`
	Damaged    []Damage `json:"damaged"`
	// TailLost tells that this start found the end of the log gone (durability process).
	TailLost bool `json:"tail_lost"`
	// Evidence tells of the block files.
	Evidence EvidenceStatus `json:"evidence"`
	// OpenedAt, and what the start took: the server with its own recovery, then the folding.
	OpenedAt   time.Time     `json:"opened_at"`
	ServerTook time.Duration `json:"server_took_ns"`
	FeedTook   time.Duration `json:"feed_took_ns"`
	// Folded commits were read at this start; Refolded says why the read models were made
	// again, if they were (a reason of Reset).
	Folded   uint64 `json:"folded"`
	Refolded string `json:"refolded,omitempty"`
}

// Status gives the log's health. It does no I/O beyond a statfs.
func (l *Log) Status() Status {
	s := Status{Durability: l.opts.Durability, Server: l.opts.Server, SyncedSeq: l.SyncedSeq(), Writing: !l.opts.ReadOnly,
		TailLost: l.opened.tailLost, OpenedAt: l.opened.at.UTC().Truncate(time.Millisecond), ServerTook: l.opened.server, FeedTook: l.opened.feed,
		MaxBytes: l.space.max}
	s.Promise = promise(l.opts.Durability, l.opts.Reason, l.fileSystem)
	s.Seq, _ = l.applied.read()
	s.Evidence = l.evidence.status()
	s.Bytes, s.FreeBytes, s.Space = l.space.reading()
	if l.Err() != nil {
		s.Writing, s.Reason = false, l.failure.Reason
	}
	s.Epoch, s.Aggregates, s.Damaged = l.Epoch(), l.chain.count(), l.chain.list()
	s.PrunedTo = l.prunedTo()
	s.FirstSeq, s.Folded, s.Refolded = l.first.Load(), l.opened.folded, l.opened.reset
	return s
}
