package peer

import (
	"slices"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/window"
)

// corner is one window of one principal.
type corner struct {
	principal string
	window    event.WindowID
}

// note remembers an answered call of a window in this life of the server.
func (r *recent) note(c window.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls == nil {
		r.calls = map[corner][]window.Call{}
	}
	k := corner{c.Principal, c.Window}
	if len(r.calls[k]) == 0 && len(r.calls) >= maxSpots {
		r.dropOldest()
	}
	list := append(slices.Clone(r.calls[k]), c) // others read the one that was
	slices.SortStableFunc(list, func(a, b window.Call) int { return a.Started.Compare(b.Started) })
	r.calls[k] = list[max(0, len(list)-maxLoop):]
}

// dropOldest forgets the window that has been silent for longest.
func (r *recent) dropOldest() {
	var oldest corner
	for k, list := range r.calls {
		if o := r.calls[oldest]; len(o) == 0 || list[len(list)-1].Started.Before(o[len(o)-1].Started) {
			oldest = k
		}
	}
	delete(r.calls, oldest)
}

// Loop is what this life of the server saw of the caller's own window (call.Config).
func (p *Peers) Loop(c *call.Call) window.Loop {
	who := c.Principal.Actor.Principal
	p.recent.mu.Lock()
	calls := p.recent.calls[corner{who, c.Window()}]
	p.recent.mu.Unlock()
	return window.NewLoop(calls, who, c.Window(), c.Principal.Sees)
}

// seen notes the call for its window's loop.
func (p *Peers) seen(c *call.Call) {
	if meaningful(c) {
		p.recent.note(window.Call{Principal: c.Principal.Actor.Principal, Window: c.Window(), Project: place(c), Tool: c.Spec().Name,
			Started: c.Started, Answered: c.Now(), Meaningful: true})
	}
}
