package call

import (
	"time"

	"webcodex/eventlog"
)

// ServerInfo is what the process says about itself (get_runtime_status).
type ServerInfo struct {
	Version   string
	Build     string // as a Runner of the same program would announce it
	StartedAt time.Time
	Log       eventlog.Status
}

// ServerInfo asks the process; where that was not wired, only the instance is known.
func (c *Call) ServerInfo() ServerInfo {
	if c.kernel.cfg.Info == nil {
		return ServerInfo{Log: eventlog.Status{Server: c.kernel.cfg.Server}}
	}
	return c.kernel.cfg.Info()
}

// Now is the server's clock.
func (c *Call) Now() time.Time { return c.kernel.cfg.Now() }

// Admits is nil where new work is taken, else why not.
func (c *Call) Admits() error { return c.kernel.cfg.Log.Admit() }

// Tombstones counts what is left of removed Sessions.
func (c *Call) Tombstones() int {
	if c.kernel.cfg.Tombstones == nil {
		return 0
	}
	return c.kernel.cfg.Tombstones.Standing(0).Count
}
