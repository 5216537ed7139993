package gitops

import "time"

// bindTime bounds one look at the files that a validating run is made on: the run waits for it,
// with its grant in hand (wire.GrantWait).
const bindTime = 3 * time.Second

// Bounds of one answer. Sizes are characters of its JSON: a page together with its frame stays
// below the 40,000 characters of a result (tools.md).
const (
	// diffChars is a page of read_git_diff, filesChars its file list.
	diffChars  = 28_000
	filesChars = 8_000
	// hunksChars is a page of read_git_diff_hunks.
	hunksChars = 32_000
	// statusChars is a page of get_git_status, trackedChars one of the index.
	statusChars  = 30_000
	trackedChars = 30_000
	// changeFilesChars, changeHunksChars and previewChars share one read_workspace_changes.
	changeFilesChars = 9_000
	changeHunksChars = 18_000
	previewChars     = 9_000

	// maxDiffFiles is how many files a diff names, maxChangedFiles how many a change list.
	maxDiffFiles    = 200
	maxChangedFiles = 200
	// maxStatusLimit and maxTrackedLimit are the most entries a page may ask for.
	maxStatusLimit  = 1000
	maxTrackedLimit = 1000
	// maxConflicts is how many conflicted paths the workspace observation names.
	maxConflicts = 20
	// maxPageRaw is how much raw diff text one page may look at.
	maxPageRaw = 128 << 10

	maxHunks     = 100
	maxHunkLines = 400

	maxLogLimit     = 100
	maxLogSkip      = 10_000
	maxSubjectChars = 200
	maxAuthorChars  = 80
	maxParents      = 16
	maxSectionChars = 160

	// Untracked previews: files, bytes read and lines shown of each.
	maxPreviews      = 5
	maxPreviewBytes  = 8 << 10
	maxPreviewLines  = 40
	maxCursorBytes   = 512
	maxPaths         = 64
	maxRestorePaths  = 32
	maxInstructBytes = 256 << 10 // of an instruction file
	maxGlobs         = 20

	// Of a review: files, subsystems, signals and their paths, symbols, the diff that is read for
	// them, and the characters that files and signals take.
	maxReviewFiles       = 80
	maxReviewPath        = 512
	maxReviewSubsystems  = 12
	maxReviewSignals     = 12
	maxReviewSignalPaths = 8
	maxReviewFileSymbols = 6
	maxReviewSymbols     = 80
	maxReviewSymbolChars = 120
	maxReviewDiff        = 64 << 10
	reviewFilesChars     = 20_000
	reviewSignalChars    = 6_000
	// reviewLargeLines is what a large change of one file begins at.
	reviewLargeLines = 500

	// Of a look at hygiene: findings, untracked files that are read and the bytes of each and of
	// all, the diff that is read, and where a file is large.
	defaultFindings   = 50
	maxFindings       = 200
	findingsChars     = 30_000
	maxHygieneFiles   = 500
	maxHygieneFile    = 256 << 10
	maxHygieneBytes   = 8 << 20
	maxHygieneDiff    = 8 << 20
	maxHygieneTracked = 50_000
	hygieneLarge      = 5 << 20
)
