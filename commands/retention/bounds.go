package retention

import "time"

const (
	// DefaultLimit is how many Closed Sessions are retained, and how many tombstones of removed
	// ones (SES-33, SES-36).
	DefaultLimit = 1000
	// MaxLimit bounds what may be configured: tombstones lie in memory.
	MaxLimit = 1_000_000
	// maxRemoved Sessions and maxDropped tombstones of one commit keep it within its bytes.
	maxRemoved = 200
	maxDropped = 1000
	// maxSettled ends of calls and Jobs of one commit do too.
	maxSettled = 100
	// removeTimeout bounds how long a closing call waits for history to shrink.
	removeTimeout = 30 * time.Second
)
