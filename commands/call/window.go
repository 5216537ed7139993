package call

import (
	"webcodex/projections/session"
	"webcodex/projections/window"
)

// Windows are what hosts' windows relate to and wrote to each other; nil: none is kept.
func (c *Call) Windows() *window.Store { return c.kernel.cfg.Windows }

// Loop is what was seen of the calls of the caller's window (WIN-22).
func (c *Call) Loop() window.Loop {
	if c.kernel.cfg.Loop == nil {
		return window.NewLoop(nil, "", "", nil)
	}
	return c.kernel.cfg.Loop(c)
}

// Gone tells that the caller is known to have left: nobody will see what is shown now.
func (c *Call) Gone() bool { return c.req.Gone != nil && c.req.Gone() }

// Worked says that the call began a Session or went on with it, after its authority and its
// commit: for those who tell windows of it afterwards.
func (c *Call) Worked(core session.Core) { c.worked = &core }

// Work is the Session that the call began or went on with; nil: none.
func (c *Call) Work() *session.Core { return c.worked }
