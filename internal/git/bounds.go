package git

import "time"

// Bounds of one git child (faults.md 4, git).
const (
	// Timeout ends a child that has not finished; it is below the 30 s of one Runner read.
	Timeout = 25 * time.Second
	// maxOutput ends a child that prints more; 50,000 long paths fit many times.
	maxOutput = 64 << 20
	// maxStderr is what is kept to tell failures apart; it is never shown.
	maxStderr = 8 << 10
	// drainGrace is how long output may stay open after the child's end.
	drainGrace = time.Second
	// maxFilters is the number of filter drivers that are neutralised; more are refused.
	maxFilters = 256
	// maxPointerFile bounds .git, commondir and gitdir files.
	maxPointerFile = 8 << 10
	// maxTreeDirty files that are not as staged, and maxTreeBytes of them, are hashed for the
	// identity of a tree; maxTreeIndex bounds the listing of the rest.
	maxTreeDirty = 10_000
	maxTreeBytes = 64 << 20
	maxTreeIndex = 32 << 20
	// maxAbout bounds what a checkpoint says of itself.
	maxAbout = 64 << 10
	// maxPathArgs is the bytes of paths that one command line carries.
	maxPathArgs = 64 << 10
	// renameLimit bounds rename detection, which is quadratic.
	renameLimit = "400"
)

// minVersion is the oldest git whose configuration can be overridden from the environment
// (GIT_CONFIG_COUNT), without which filters could not be switched off.
var minVersion = [2]int{2, 31}
