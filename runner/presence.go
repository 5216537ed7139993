package runner

import (
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// presence watches whether the server that this Runner serves is still there, and the same.
type presence struct {
	mu     sync.Mutex
	gone   []func(stopping bool)
	server event.InstanceID // that accepted the last hello; empty: none, or it was given up
	heard  time.Duration    // when, on the boot clock
}

// OnGone registers what ends the things that live for one server alone: it is called when that
// server was not heard for as long as its lease on this Runner lasts, when another life of it is
// there, and with stopping when the Runner stops: then it returns when they have ended. It may be
// called more than once. Register before the Runner serves.
func (r *Runner) OnGone(end func(stopping bool)) { r.presence.gone = append(r.presence.gone, end) }

// heard follows the answer to a hello.
func (r *Runner) heard(reply wire.HelloReply, err error) {
	p, now := &r.presence, r.bootTime()
	p.mu.Lock()
	lost := p.server != ""
	switch {
	case err == nil && reply.OK:
		lost = lost && p.server != reply.Server
		p.server, p.heard = reply.Server, now
	case lost && now-p.heard > wire.Lease:
		p.server = ""
	default:
		lost = false
	}
	p.mu.Unlock()
	if lost {
		for _, end := range p.gone {
			go end(false)
		}
	}
}

// leave ends what lives for a server: the Runner stops.
func (r *Runner) leave() {
	for _, end := range r.presence.gone {
		end(true)
	}
}
