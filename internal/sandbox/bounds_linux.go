package sandbox

import "time"

const (
	// maxThreads bounds the threads that start helpers: one for each set of directories in which
	// some may write.
	maxThreads = 8
	// maxListed bounds the names beside a protected directory, and beside each above it, that are
	// let be read one by one.
	maxListed = 20_000
	// fresh is how long rules serve although something has come beside a protected directory: there
	// are places in which something always does. What a helper needs is looked at each time.
	fresh = time.Second
	// settled is how old the last change of a directory must be for a later one to show in its
	// times, whatever the clock of the file system.
	settled = 100 * time.Millisecond
)
