package eventlog

import (
	"time"

	"webcodex/eventlog/event"
)

// Status is the log's health, for people and for get_runtime_status.
type Status struct {
	Durability Durability       `json:"durability"`
	Server     event.InstanceID `json:"server"`
	Epoch      string           `json:"epoch"`
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
	// Aggregates counts the records with a commit; Damaged lists those whose chain broke.
	Aggregates int      `json:"aggregates"`
	Damaged    []Damage `json:"damaged"`
	// TailLost tells that this start found the end of the log gone (durability process).
	TailLost bool `json:"tail_lost"`
	// OpenedAt, and what the start took: the server with its own recovery, then the folding.
	OpenedAt   time.Time     `json:"opened_at"`
	ServerTook time.Duration `json:"server_took_ns"`
	FeedTook   time.Duration `json:"feed_took_ns"`
}

// Status gives the log's health. It does no I/O beyond a statfs.
func (l *Log) Status() Status {
	s := Status{Durability: l.opts.Durability, Server: l.opts.Server, SyncedSeq: l.SyncedSeq(), Writing: !l.opts.ReadOnly,
		TailLost: l.opened.tailLost, OpenedAt: l.opened.at.UTC().Truncate(time.Millisecond), ServerTook: l.opened.server, FeedTook: l.opened.feed,
		MaxBytes: l.space.max}
	s.Seq, _ = l.applied.read()
	s.Bytes, s.FreeBytes, s.Space = l.space.reading()
	if l.Err() != nil {
		s.Writing, s.Reason = false, l.failure.Reason
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	s.Epoch, s.Aggregates, s.Damaged = l.epoch, len(l.chain.heads), l.chain.list()
	return s
}
