package files

import (
	"time"

	"webcodex/internal/relpath"
)

// Bounds of the file ops besides those of wire, which callers see (AUTH-19, faults.md 4).
const (
	// maxLinks is how many symbolic links one path may lead through.
	maxLinks = 16
	// maxDepth is the components of one path, links resolved.
	maxDepth = relpath.MaxDepth
	// maxLooks is how often a name is looked at that is given to another file each time.
	maxLooks = 8
	// maxReadBytes is the largest file that is read; its hash needs all of it.
	maxReadBytes = 64 << 20
	// maxEditBytes is the largest file that is edited, before and after.
	maxEditBytes = 2 << 20
	// MaxWanted is the paths of one Apply.
	MaxWanted = 2000
	// maxNotes is the notes of dead transactions that wait for their Projects, maxNoteBytes what
	// is read of one: MaxWanted of the longest paths take less.
	maxNotes     = 256
	maxNoteBytes = 32 << 20
	// maxPatchConflicts is how many places of a patch that do not fit are listed.
	maxPatchConflicts = 50
	// maxTransaction is the bytes that one transaction holds in memory.
	maxTransaction = 24 << 20
	// maxSearchBytes is the largest file that is searched; larger ones make a count incomplete.
	maxSearchBytes = 8 << 20
	// maxNames is the entries of one directory that are looked at.
	maxNames = 100_000
	// maxScanFiles is the files that one search looks at.
	maxScanFiles = 200_000
	// searchWorkers is the files searched at once.
	searchWorkers = 4
	// previewChars is what is shown of one line of a search.
	previewChars = 300
	// maxQueryBytes bounds what one query shows, on its JSON (peer default 32 KiB).
	maxQueryBytes = 32 << 10
	// maxBatchBytes bounds what all queries of a call show.
	maxBatchBytes = 40_000
	// minQueryBytes is left for each query of a batch however much the others showed.
	minQueryBytes = 2_000
	// ripgrepTimeout bounds ripgrep; after it the built-in engine looks at every file.
	ripgrepTimeout = 20 * time.Second
	// ripgrepAbove is the number of files that makes ripgrep worth a process.
	ripgrepAbove = 200
	// indexEntryBytes is about what a file takes in git's index.
	indexEntryBytes = 80
)
