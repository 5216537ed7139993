package peer

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/window"
)

// spot is one principal at one Project.
type spot struct {
	principal string
	project   event.ProjectRef
}

// doing is what a window did last at a spot.
type doing struct {
	at      time.Time       // its newest meaningful activity; zero: none
	session event.SessionID // it named explicitly
	named   time.Time       // when it did
}

func (d doing) newest() time.Time {
	if d.named.After(d.at) {
		return d.named
	}
	return d.at
}

// recent remembers what windows did in this life of the server. It is bounded, and what it
// forgets costs a hint at most.
type recent struct {
	mu    sync.Mutex
	spots map[spot]map[event.WindowID]doing
	calls map[corner][]window.Call // newest last
}

func isRecent(at, now time.Time) bool { return !at.IsZero() && now.Sub(at) <= Recency }

// change notes something that a window does.
func (r *recent) change(s spot, w event.WindowID, now time.Time, what func(*doing)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spots == nil {
		r.spots = map[spot]map[event.WindowID]doing{}
	}
	at := r.spots[s]
	if at == nil && len(r.spots) >= maxSpots {
		r.sweep(now)
	}
	if at == nil {
		if len(r.spots) >= maxSpots {
			return
		}
		at = map[event.WindowID]doing{}
		r.spots[s] = at
	}
	d, known := at[w]
	if !known && len(at) >= maxWindows {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(at)), func(a, b event.WindowID) int { return at[a].newest().Compare(at[b].newest()) })
		delete(at, oldest)
	}
	what(&d)
	at[w] = d
}

// sweep forgets the spots where nothing is recent.
func (r *recent) sweep(now time.Time) {
	maps.DeleteFunc(r.spots, func(_ spot, at map[event.WindowID]doing) bool {
		for _, d := range at {
			if isRecent(d.newest(), now) {
				return false
			}
		}
		return true
	})
}

// others are the windows beside w with recent activity at the spot, the newest first.
func (r *recent) others(s spot, w event.WindowID, now time.Time) []event.WindowID {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.spots[s]
	var out []event.WindowID
	for o, d := range at {
		if o != w && isRecent(d.at, now) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b event.WindowID) int { return cmp.Or(at[b].at.Compare(at[a].at), cmp.Compare(a, b)) })
	return out
}

// named is the Session that the window named last at the spot, if that is recent.
func (r *recent) named(s spot, w event.WindowID, now time.Time) (event.SessionID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.spots[s][w]
	return d.session, d.session != "" && isRecent(d.named, now)
}
