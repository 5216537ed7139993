// Package checkpoint holds the tools over workspace checkpoints: the files of a Project as they were.
package checkpoint

import (
	"time"

	"webcodex/runner/wire"
)

// Bounds of the tools, as the Runner holds them too.
const (
	MaxTitle  = wire.MaxCheckpointTitle
	MaxNote   = wire.MaxCheckpointNote
	MaxLabels = wire.MaxCheckpointLabels
	MaxLabel  = wire.MaxCheckpointLabel
	// DefaultLimit and MaxLimit of a listing.
	DefaultLimit = 20
	MaxLimit     = wire.MaxListedCheckpoints
	// DefaultFiles and MaxFiles of one page of a checkpoint's files.
	DefaultFiles = 100
	MaxFiles     = wire.MaxCheckpointFiles
	// effectTimeout bounds what git and the file system take for one.
	effectTimeout = 5 * time.Minute
)

// IDBytes is the length of a checkpoint's id, and StateBytes that of a state.
const (
	IDBytes    = len("wc_ckpt_") + 32
	StateBytes = 64
)

// Kinds are why a checkpoint was made.
var Kinds = wire.CheckpointKinds
