package eventlog

import (
	"sync"
	"time"

	"webcodex/internal/fault"
)

// Space states of Status.
const (
	SpaceOK      = "ok"
	SpaceReserve = "reserve" // new work is refused, what is open may still finish
)

// space guards the room for commits: a full disk shows in JetStream as silence and stays
// until a restart, so new work is refused before.
type space struct {
	path string
	max  int64
	now  func() time.Time

	mu    sync.Mutex
	used  int64
	free  int64 // -1: cannot be told
	since int64 // bytes appended after the reading
	read  time.Time
}

func newSpace(path string, max, used int64, now func() time.Time) *space {
	s := &space{path: path, max: max, used: used, now: now}
	s.reread()
	return s
}

// reread takes a new reading of the free space; s.mu is held or not yet needed.
func (s *space) reread() {
	s.free, s.since, s.read = -1, 0, s.now()
	if free, ok := freeSpace(s.path); ok {
		s.free = free
	}
}

// add accounts for an appended record.
func (s *space) add(bytes int64) {
	s.mu.Lock()
	s.used += bytes
	s.since += bytes
	s.mu.Unlock()
}

// reading gives used and free bytes and the state.
func (s *space) reading() (used, free int64, state string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since >= spaceBytes || s.now().Sub(s.read) >= spaceInterval {
		s.reread()
	}
	free = s.free
	if free >= 0 {
		free = max(0, free-s.since)
	}
	return s.used, free, spaceState(s.used, free, s.max)
}

// spaceState decides from three sizes in bytes; free -1 means that it could not be told.
func spaceState(used, free, budget int64) string {
	limit := budget
	if free >= 0 {
		if free < minFree {
			return SpaceReserve
		}
		limit = min(limit, used+free)
	}
	if used >= limit-limit/reserveShare {
		return SpaceReserve
	}
	return SpaceOK
}

func (s *space) admit() error {
	if _, _, state := s.reading(); state != SpaceOK {
		return storageFull()
	}
	return nil
}

func storageFull() *fault.Error {
	return fault.New(fault.StorageFull, "the log has no room for new work; what is open can still finish").
		WithNext("free disk space: new work is taken again by itself; a larger log.max_bytes counts from the next start")
}
