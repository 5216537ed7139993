package checkpoint

import (
	"time"

	"webcodex/internal/git"
	"webcodex/runner/files"
)

// maxKept checkpoints of one Project exist at once.
const maxKept = 100

// limits of what one holds besides its HEAD: paths that differ, bytes of one file and of all.
var limits = git.SurveyLimits{Paths: files.MaxWanted, File: 8 << 20, Size: 32 << 20}

const (
	// maxRestore is the bytes that a restore reads of the repository.
	maxRestore = 64 << 20
	// maxDetail bounds the list of what a checkpoint does not hold by content.
	maxDetail = 16 << 20
	// looks is how often files are looked at that somebody changes meanwhile.
	looks = 3
	// gitTime ends one git that packs or unpacks all that differs.
	gitTime = 2 * time.Minute
)
