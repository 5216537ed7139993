package worktree

import "time"

// Bounds of managed worktrees.
const (
	// maxPerSource worktrees of one source exist at once, made by this Runner and still there.
	maxPerSource = 64
	// maxNote bounds what is read of one note; two paths and a few names are in it.
	maxNote = 64 << 10
	// populateTime ends git where it writes the files of a whole tree.
	populateTime = 5 * time.Minute
	// cleanTime bounds what is done after a failure, whoever has gone by then.
	cleanTime = 30 * time.Second
	// maxSlug is what the name of a worktree's directory has of its source's name.
	maxSlug = 40
)

// namespace is the directory beside a source that all managed worktrees there lie in. It begins
// with a dot, so that listings of the directory around it stay as they were.
const namespace = ".webcodex-worktrees"
