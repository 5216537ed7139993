package material

import (
	"time"

	"webcodex/commands/call"
)

// Bounds of what one answer carries as context.
const (
	// MaxEntries are the entries of one answer (CTX-01).
	MaxEntries = call.MaxMaterials
	// MaxInstructionBytes is the text of all instruction files together, on its real JSON.
	MaxInstructionBytes = 24 << 10
	// MaxJobs are the newest active Jobs shown (CTX-06).
	MaxJobs = 8
	// MaxSessions are the Sessions that workflow.resume shows.
	MaxSessions = 5
	// MaxLooked of a group's newest open Sessions are looked through for the caller's own.
	MaxLooked = 400
	// readTimeout bounds what a Runner is asked for: the answer is ready by then.
	readTimeout = 5 * time.Second
)
