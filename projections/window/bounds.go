package window

import "time"

// Bounds of what is retained for one principal.
const (
	// MaxMessages and MaxAge bound peer messages; MaxAge bounds routes too (WIN-18).
	MaxMessages = 200
	MaxAge      = 24 * time.Hour
	// MaxRoutes and MaxRelations are retained; the oldest leave first (WIN-18, WIN-21).
	MaxRoutes    = 256
	MaxRelations = 256
	// MaxMessageChars of a peer message (tools.md).
	MaxMessageChars = 4000
)
