package peer

import (
	"time"

	"webcodex/projections/window"
)

// Bounds of peers.
const (
	// Recency is how long ago a window's meaningful activity, or its explicit affinity to a
	// Session, counts as recent (WIN-07, WIN-09, WIN-26).
	Recency = 10 * time.Minute
	// refresh is how old a stored relation may be before it is told again.
	refresh = Recency / 2

	// MaxText of a message, in characters (tools.md), and MaxKey of a delivery key.
	MaxText = window.MaxMessageChars
	MaxKey  = 128

	// MaxPeers of one hint; the others come with the next one.
	MaxPeers = 8
	// MaxMessages and MaxBytes, on their real JSON, of the messages in one answer; there is always
	// one. What does not fit is counted.
	MaxMessages = 5
	MaxBytes    = 16 << 10

	// maxSpots are the Projects of principals whose activity is remembered, maxWindows the windows
	// of each, maxLinked the Sessions of a window that others are told of.
	maxSpots   = 1024
	maxWindows = 64
	maxLinked  = 16
	// maxLoop are the calls of a window whose timing is remembered.
	maxLoop = 20
)
