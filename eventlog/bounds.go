package eventlog

import (
	"time"

	"webcodex/eventlog/event"
)

// Bounds of the log.
const (
	// FormatVersion is the data directory's format; a newer one is refused.
	FormatVersion = 1
	// window bounds the commits that are published and not yet acknowledged.
	window = 256
	// maxGroup bounds the bytes of the commits that share one sync in durability group, so that
	// none waits long for others (faults.md 2.1).
	maxGroup = 4 << 20
	// lookBytes appended in durability process are how often a new block is looked for.
	lookBytes = 64 << 10
	// ackTimeout is how long a publication waits before the log is read for its own command
	// id. A full disk shows as silence, so this is also how soon that is seen.
	ackTimeout = 5 * time.Second
	// maxAttempts bounds the publications of one commit; OCC makes a second one harmless.
	maxAttempts = 2
	// checkInterval is how often time-outs are looked for.
	checkInterval = 100 * time.Millisecond
	// checkpointInterval is how often the durable checkpoint follows the log.
	checkpointInterval = time.Second
	// readTimeout bounds one request to the embedded server. It is long because a look for a
	// commit waits behind a disk that stalls, and giving up ends writing.
	readTimeout = 30 * time.Second
	// startTimeout bounds the embedded server's own start, recovery of a large log included.
	startTimeout = 5 * time.Minute
	// syncInterval is JetStream's background sync; it bounds what a cut takes in process
	// durability.
	syncInterval = time.Second
	// dedupeWindow is the shortest JetStream allows: commits carry their own ids, and the
	// default of two minutes makes a clean start 30 times slower.
	dedupeWindow = 100 * time.Millisecond
	// feedInactivity is how long JetStream keeps an abandoned feed.
	feedInactivity = 10 * time.Second
	// feedQueue is how many messages may wait for a fold: more than the 32 MiB that the server's
	// flow control lets be on the way, if each is a commit of the smallest size.
	feedQueue = 1 << 18
	// batchSize messages of the feed are decoded at once, by at most so many decoders.
	batchSize = 128
	decoders  = 4
	// progressStep commits lie between two calls of Options.Progress.
	progressStep = 16384
	// purgeBlocks are removed in one step of a prune; the store takes no commit meanwhile.
	purgeBlocks = 8
	// forgetInterval is how long a generation of heads lasts in memory; what nobody touches
	// for two of them is read from the base again.
	forgetInterval = time.Second
	// feedPatience is how long a feed may be silent before the log is asked whether the
	// awaited commit can be read at all.
	feedPatience = time.Second
	// feedStall is how long a feed may be silent before the log is called damaged: JetStream
	// skips a record it cannot read without a word.
	feedStall = 15 * time.Second
	// maxPayload is the bus's payload limit, for Runner messages (wire.MaxMessage).
	maxPayload = 1 << 20
	// maxMessage bounds a stored message: a commit and its headers.
	maxMessage = event.MaxCommitBytes + 4096
	// budgetShare of the free space is the log's budget when none is given.
	budgetShare = 0.7
	// minBudget is the smallest budget the log takes. One that can be pruned holds some blocks
	// of 4 MiB.
	minBudget = 1 << 20
	// reserveShare of the budget is kept for commits that close something.
	reserveShare = 10
	// roomShare of the budget may be written on top of a log that is larger than its budget, to
	// bring it below: as much as lies between where a log is pruned (80 %) and its end.
	roomShare = 5
	// minFree is the free space below which new work is refused whatever the budget: two of
	// JetStream's largest blocks.
	minFree = 16 << 20
	// spaceInterval is how long a reading of the free space is good for.
	spaceInterval = 500 * time.Millisecond
	// spaceBytes appended end the reading's life early.
	spaceBytes = 2 << 20
)

// Bounds of JetStream's block files.
const (
	// maxRecord bounds one stored record: a message, its subject and JetStream's framing.
	maxRecord = maxMessage + 64<<10 + 4096
	// maxBlock bounds a block file: JetStream's largest block or a single record.
	maxBlock = 16 << 20
	// maxLedger bounds the block ledger: 120 bytes a block, blocks of at least 32 KB.
	maxLedger = 64 << 20
)

// Bounds of the search for damage.
const (
	// hashChunk is read at once when a file is hashed.
	hashChunk = 256 << 10
	// sealInterval is how often the log looks for a block that JetStream rolled away from.
	sealInterval = time.Second
	// scrubRate is how many bytes a second the scrub reads at most, scrubEvery how long it
	// rests between two passes, scrubDelay how long after a start, and scrubDefer how long a
	// busy log holds up one block of it.
	scrubRate  = 5 << 20
	scrubEvery = 24 * time.Hour
	scrubDelay = 30 * time.Second
	scrubDefer = time.Minute
	// tailEvery is how often the newest block is read.
	tailEvery = 30 * time.Second
	// busyCommits within busyLook make the log busy.
	busyCommits = 3
	busyLook    = 50 * time.Millisecond
	// maxCopies bounds the different copies of one block file that wait for an accepted log.
	maxCopies = 9
	// checkedFor is how long a sealed block's hash is trusted before JetStream may read it
	// again: JetStream truncates a file in which it finds a bad record.
	checkedFor = time.Minute
	// importOverhead is what a record takes beside its body, at most: lengths, subject, header.
	importOverhead = 512
)
