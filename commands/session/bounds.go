package session

import (
	"time"

	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Bounds of Session commands.
const (
	// MaxInstruction is the characters of one instruction (STA-11, EVT-22).
	MaxInstruction = session.MaxInstructionChars
	// MaxTitle is the characters of a Session's title (LST-06).
	MaxTitle = session.MaxTitleChars
	// MaxCwd and MaxResource bound the execution defaults.
	MaxCwd      = 4096
	MaxResource = session.MaxResourceChars
	// MaxInstructionFiles are the instruction files that a Session keeps in mind.
	MaxInstructionFiles = session.MaxInstructionFiles
	maxInstructionPath  = session.MaxInstructionPath // bytes
	// MaxStartBytes bounds what work_on_project answers, on its real JSON (STA-22).
	MaxStartBytes = 30 << 10
	// maxConflictBytes bounds the conflicted paths of an answer on their real JSON; the count
	// is always exact.
	maxConflictBytes = 4 << 10
	// maxRunnerChars bounds a name that a Runner tells: a branch, a reason.
	maxRunnerChars = 256
	// maxHygieneKinds bounds the kinds of findings that a Runner counts.
	maxHygieneKinds = 32
	// observeTimeout bounds the bootstrap observation; a slow Runner delays no Session.
	observeTimeout = 20 * time.Second
	// MaxBaseRef bounds the revision that a worktree is made of, in bytes.
	MaxBaseRef = wire.MaxBaseRef
	// worktreeTimeout bounds the making of a managed worktree: all its files are written.
	worktreeTimeout = 5 * time.Minute
)
