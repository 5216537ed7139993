package session

import "time"

// Bounds of Session commands.
const (
	// MaxInstruction is the characters of one instruction (STA-11, EVT-22).
	MaxInstruction = 4000
	// MaxTitle is the characters of a Session's title (LST-06).
	MaxTitle = 240
	// MaxCwd and MaxResource bound the execution defaults.
	MaxCwd      = 4096
	MaxResource = 80
	// observeTimeout bounds the bootstrap observation; a slow Runner delays no Session.
	observeTimeout = 20 * time.Second
)
