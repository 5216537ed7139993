// Package project folds which Projects the log knows: those that a Runner has ever
// registered, connected now or not.
package project

import (
	"slices"
	"strings"
	"sync"

	"webcodex/eventlog/event"
)

// Store is the fold, a state.Model. It is safe for concurrent use.
type Store struct {
	mu      sync.RWMutex
	applied uint64
	known   map[event.ProjectRef]event.ProjectRegistered
	dirty   map[event.ProjectRef]event.ProjectRegistered // what state.db has not
}

// NewStore makes an empty fold.
func NewStore() *Store {
	return &Store{known: map[event.ProjectRef]event.ProjectRegistered{}, dirty: map[event.ProjectRef]event.ProjectRegistered{}}
}

// Apply implements eventlog.Fold.
func (s *Store) Apply(seq uint64, _ string, c event.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.applied {
		return
	}
	s.applied = seq
	for _, e := range c.Events {
		if p, ok := e.(event.ProjectRegistered); ok {
			s.set(p)
		}
		if u, ok := e.(event.ProjectUnregistered); ok {
			if p, known := s.known[u.Project]; known {
				p.Root = ""
				s.set(p)
			}
		}
	}
	if p, ok := carriedIn(c); ok {
		s.set(p)
	}
}

func (s *Store) set(p event.ProjectRegistered) { s.known[p.Project], s.dirty[p.Project] = p, p }

// Known lists the Projects as they were last registered, ordered by id. One that was unregistered
// since has no Root.
func (s *Store) Known() []event.ProjectRegistered {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]event.ProjectRegistered, 0, len(s.known))
	for _, p := range s.known {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b event.ProjectRegistered) int {
		return strings.Compare(a.Project.String(), b.Project.String())
	})
	return out
}
