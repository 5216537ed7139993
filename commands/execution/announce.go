package execution

import (
	"time"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// Bounds of what one Runner may write into the log by announcing Projects (faults.md 4): as many
// as it may serve at once, then one each announceEvery, and no more than maxKnown ever.
const (
	announceBurst = wire.MaxProjects
	announceEvery = 6 * time.Second
	maxKnown      = 4 * wire.MaxProjects
)

// announcing is what a Runner has left.
type announcing struct {
	left float64
	at   time.Time
}

// mayAnnounce counts one registration; false: it is one too many, and is not made. That of a
// Project that is known already is counted too: its name may change at every hello.
func (f *Fleet) mayAnnounce(p event.ProjectRef) bool {
	if p.Client == f.o.Remotes.Local {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := 0
	for ref := range f.named {
		if ref.Client == p.Client {
			known++
		}
	}
	if _, had := f.named[p]; !had && known >= maxKnown {
		return false
	}
	now := f.o.Now()
	a, seen := f.announced[p.Client]
	if !seen {
		a = announcing{left: announceBurst, at: now}
	}
	a.left = min(announceBurst, a.left+now.Sub(a.at).Seconds()/announceEvery.Seconds())
	a.at = now
	ok := a.left >= 1
	if ok {
		a.left--
	}
	f.announced[p.Client] = a
	return ok
}
