package runner

import (
	"time"

	"webcodex/runner/wire"
)

const (
	// maxRunning bounds the effects in progress at once that somebody waits for, or has waited for.
	maxRunning = 64
	// maxQueued bounds the Jobs that wait for a slot.
	maxQueued = 1000
	// keptEnded is how many ended executions keep their output for observers; they are at most
	// 128 KiB each.
	keptEnded = 256
	// keptJobs and keptJobBytes are the same for Jobs: at least the newest MaxJobs keep their logs,
	// which are the last jobBytes of each stream.
	keptJobs     = 1000
	keptJobBytes = MaxJobs * 2 * jobBytes
	jobBytes     = 256 << 10
	// minLogBytes and maxLogBytes bound a page of a stream, maxLogLines the lines of its end.
	minLogBytes = 4
	maxLogBytes = 20_000
	maxLogLines = 500
	// keptJobDirs and keptJobAge bound the directories of detached Jobs that have ended; each holds
	// at most 2*(supervise.LogBytes+256 KiB) of output.
	keptJobDirs = 64
	keptJobAge  = 7 * 24 * time.Hour
	// supervisedPause is between two looks at a supervisor that cannot be reached.
	supervisedPause = 50 * time.Millisecond
	// lockWait is how long the lock of the Runner's directory is waited for.
	lockWait = 200 * time.Millisecond
	// drainTime is how long a stopping Runner takes to end what runs and tell the server.
	drainTime = 5 * time.Second
	// resultRetry and resultRetryMax are the pauses between two tellings of one result.
	resultRetry    = 100 * time.Millisecond
	resultRetryMax = 5 * time.Second
	// maxObserved bounds the jobs of one observation, observedChars the text of all (tools.md).
	maxObserved     = 8
	observedChars   = 40_000
	maxObserveWait  = 60 * time.Second
	maxTailLines    = 200
	observeDebounce = 100 * time.Millisecond
	// lastLineChars is how much of the output is looked through for its last line.
	lastLineChars = 4000
	// maxKnown bounds the Projects that are known by their ids, served or not.
	maxKnown = 10_000
	// maxProjectsFile bounds the projects file, maxAllowed the allowed roots; the file is looked at
	// every watchEvery, and read when it has been the same for that long.
	maxProjectsFile = 256 << 10
	maxAllowed      = 64
	watchEvery      = 500 * time.Millisecond
	// maxClimb bounds the parents of a directory that are looked at: PATH_MAX allows no deeper one.
	maxClimb = 1024
	// maxReadTime bounds a read whatever the server asks.
	maxReadTime = 2 * time.Minute

	// maxUnsettled bounds the executions whose end the server has not acknowledged, which the
	// journal keeps whatever their number: beyond it nothing new is taken. With those that are
	// accepted at the same moment they still fit into one inventory.
	maxUnsettled = wire.MaxInventory - maxRunning - MaxJobs
	// keptEnds is how many acknowledged ends the journal keeps at least, keptBytes what they may
	// take; twice as many, or a file of compactBytes, make it forget the older ones.
	keptEnds     = 4096
	keptBytes    = 4 << 20
	compactBytes = 16 << 20
	// keptKeys and keptKeyAge bound the acknowledged ends that are kept because they have an
	// idempotency key, each for about keyedBytes: what is older or more may be started again.
	keptKeys   = 100_000
	keptKeyAge = 30 * 24 * time.Hour
	keyedBytes = 2 << 10
	// retryShorten is by how much the file grows before a shortening that failed is tried again.
	retryShorten = 1 << 20
	// maxLine bounds what a stop may leave of one line: results are stripped.
	maxLine = 64 << 10
	// maxAside bounds the damaged journals that are kept. Beyond it the Runner does not start:
	// none is ever overwritten.
	maxAside = 9
)
