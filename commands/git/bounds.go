// Package git holds the tools about a Project's repository, one file each. The Runner that
// owns the Project reads it; nothing of a diff or a history is ever stored.
package git

import (
	"time"

	"webcodex/runner/wire"
)

// Bounds of the git tools (tools.md; the Runner holds its own).
const (
	MaxPathBytes    = 4095
	MaxDiffPaths    = 64
	MaxRestorePaths = 32
	MaxDiscardPaths = wire.MaxDiscardPaths
	MaxContinuation = 512

	DefaultStatusLimit = 200
	MaxStatusLimit     = 1000
	DefaultLogLimit    = 20
	MaxLogLimit        = 100
	MaxLogSkip         = 10_000

	DefaultHunks     = 30
	DefaultHunkLines = 160
	MaxHunks         = 100
	MaxHunkLines     = 400

	DefaultChangeHunks     = 20
	DefaultChangeHunkLines = 80
	MaxChangeHunkLines     = 240

	DefaultFindings = 50
	MaxFindings     = 200

	// restoreTimeout of the effect on the Runner; 32 files take far less.
	restoreTimeout = 60 * time.Second
)

// clamp gives a knob its default and its ceiling (ruling 8).
func clamp(n, absent, most int) int {
	if n <= 0 {
		return absent
	}
	return min(n, most)
}
