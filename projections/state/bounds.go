package state

import "time"

// Bounds of the file and of its writer.
const (
	// FormatVersion is of the tables this package keeps itself; folds have their own version.
	FormatVersion = 1
	// Window is how long after the first mark a batch is written at the latest; later marks
	// never extend it (SES-45).
	Window = 20 * time.Millisecond
	// RetryAfter a transaction that failed it is tried again.
	RetryAfter = time.Second
	// syncPoll is how often the durable horizon is asked while a batch waits for it.
	syncPoll = 10 * time.Millisecond
	// maxBehind bounds the commits held in memory while a log is folded at start; a server that
	// serves is never held up.
	maxBehind = 20_000
	// foldCacheKiB and serveCacheKiB of pages the writer keeps: a batch of the fold at start
	// touches many, and each that does not fit is written and read once more.
	foldCacheKiB  = 64 << 10
	serveCacheKiB = 8 << 10
	// progressEvery is how often a long fold at start tells how far it is.
	progressEvery = 2 * time.Second
	// readers is how many queries run at once; each holds three files open.
	readers = 3
	// closeTimeout bounds the last batch of a life.
	closeTimeout = 10 * time.Second
)
