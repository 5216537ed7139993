package call

import (
	"time"

	"webcodex/eventlog/event"
)

// ServerInfo is what the process says about itself (get_runtime_status). It holds no path
// and no id of a Session.
type ServerInfo struct {
	Version    string
	Instance   event.InstanceID
	StartedAt  time.Time
	Durability string
	// LogBytes and LogMaxBytes are the log's size and budget; LastSeq its last durable commit.
	LogBytes, LogMaxBytes uint64
	LastSeq               uint64
}

// ServerInfo asks the process; where it was not wired, only the instance is known.
func (c *Call) ServerInfo() ServerInfo {
	if c.kernel.cfg.Info == nil {
		return ServerInfo{Instance: c.kernel.cfg.Server}
	}
	return c.kernel.cfg.Info()
}

// Now is the server's clock.
func (c *Call) Now() time.Time { return c.kernel.cfg.Now() }

// Admits reports whether new work is taken, and else why not.
func (c *Call) Admits() error { return c.kernel.cfg.Log.Admit() }
