package session

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Store folds the commits of all Sessions and hands out immutable Views. Where a Session's
// state lies is known to load alone: others ask by id and may get an error.
type Store struct {
	mu       sync.RWMutex // guards all below; Views themselves need no lock
	applied  uint64
	sessions map[event.SessionID]*View
	projects map[event.ProjectRef]map[event.SessionID]struct{}
	open     map[event.SessionID]struct{} // Sessions with open calls or Jobs
}

// NewStore is an empty Store; feed it through Apply.
func NewStore() *Store {
	return &Store{
		sessions: map[event.SessionID]*View{},
		projects: map[event.ProjectRef]map[event.SessionID]struct{}{},
		open:     map[event.SessionID]struct{}{},
	}
}

// Apply folds one commit; commits of other domains only move the position, seq already
// applied changes nothing (eventlog.Fold).
func (s *Store) Apply(seq uint64, hash string, c event.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.applied {
		return
	}
	s.applied = seq
	if c.Aggregate.Domain != event.DomainSession {
		return
	}
	id := event.SessionID(c.Aggregate.ID)
	var old View
	if v := s.sessions[id]; v != nil {
		old = *v
	}
	v := old.Apply(seq, hash, c)
	if v.Core.Version == old.Core.Version {
		return
	}
	s.sessions[id] = &v
	s.index(id, v.Core)
}

func (s *Store) index(id event.SessionID, c Core) {
	in := s.projects[c.Project]
	if in == nil {
		in = map[event.SessionID]struct{}{}
		s.projects[c.Project] = in
	}
	in[id] = struct{}{}
	if len(c.Open)+len(c.Jobs) > 0 {
		s.open[id] = struct{}{}
	} else {
		delete(s.open, id)
	}
}

// Applied is the sequence of the last commit seen.
func (s *Store) Applied() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.applied
}

// Load gives the Session's state wherever it lies. Errors: fault unknown_session_id.
func (s *Store) Load(id event.SessionID) (View, error) {
	s.mu.RLock()
	v := s.sessions[id]
	s.mu.RUnlock()
	if v == nil || !v.Core.Exists() {
		return View{}, fault.New(fault.UnknownSessionID, "no Session has this id").WithField("session_id").
			WithNext("call list_sessions with the project to see its Sessions")
	}
	return *v, nil
}

// View is Load for callers that need no reason.
func (s *Store) View(id event.SessionID) (View, bool) {
	v, err := s.Load(id)
	return v, err == nil
}

// Core is what decisions see of the Session.
func (s *Store) Core(id event.SessionID) (Core, bool) {
	v, err := s.Load(id)
	return v.Core, err == nil
}

// Ended finds how a Job of any Session ended, by its id, and the Session it belongs to. It
// looks through all of them: ask only where the Runner does not know.
func (s *Store) Ended(id event.ExecutionID) (EndedJob, Core, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, v := range s.sessions {
		for _, j := range v.Core.Ended {
			if j.Execution == id {
				return j, v.Core, true
			}
		}
	}
	return EndedJob{}, Core{}, false
}

// Filter picks Sessions for List.
type Filter struct {
	// Authority is the caller's authority fingerprint; Sessions of others don't exist for the
	// caller, neither as rows nor in totals (LST-04). Empty matches nothing.
	Authority string
	// AnyAuthority drops that rule, for the person who owns the data directory.
	AnyAuthority bool
	// Project is the exact Project; zero: all, those without a Project too.
	Project event.ProjectRef
	// Lifecycle is empty for all.
	Lifecycle Lifecycle
}

func (f Filter) match(c Core) bool {
	return c.Exists() && (f.AnyAuthority || f.Authority != "" && f.Authority == c.Authority) &&
		(f.Lifecycle == "" || f.Lifecycle == c.Lifecycle)
}

// List gives the matching Sessions, newest update first, id as tiebreak (LST-12).
func (s *Store) List(f Filter) []Core {
	var out []Core
	s.mu.RLock()
	if f.Project.Zero() {
		for _, v := range s.sessions {
			if f.match(v.Core) {
				out = append(out, v.Core)
			}
		}
	} else {
		for id := range s.projects[f.Project] {
			if c := s.sessions[id].Core; f.match(c) {
				out = append(out, c)
			}
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, func(a, b Core) int {
		if n := b.UpdatedAt.Compare(a.UpdatedAt); n != 0 {
			return n
		}
		return cmp.Compare(a.ID, b.ID)
	})
	return out
}

// Unfinished is what one Session has open: calls without a finish, Jobs without an end.
type Unfinished struct {
	Session event.SessionID
	Project event.ProjectRef
	Calls   []OpenCall
	Jobs    []OpenJob
}

// Open lists everything open over all Sessions, ordered by Session, then start, then id. At
// start a dead server's calls are found here.
func (s *Store) Open() []Unfinished {
	s.mu.RLock()
	cores := make([]Core, 0, len(s.open))
	for id := range s.open {
		cores = append(cores, s.sessions[id].Core)
	}
	s.mu.RUnlock()
	slices.SortFunc(cores, func(a, b Core) int { return cmp.Compare(a.ID, b.ID) })
	out := make([]Unfinished, len(cores))
	for i, c := range cores {
		out[i] = Unfinished{Session: c.ID, Project: c.Project, Calls: openCalls(c), Jobs: openJobs(c)}
	}
	return out
}

func openCalls(c Core) []OpenCall {
	return slices.SortedFunc(maps.Values(c.Open), func(a, b OpenCall) int {
		if n := a.At.Compare(b.At); n != 0 {
			return n
		}
		return cmp.Compare(a.Started.Call, b.Started.Call)
	})
}

func openJobs(c Core) []OpenJob {
	return slices.SortedFunc(maps.Values(c.Jobs), func(a, b OpenJob) int {
		if n := a.At.Compare(b.At); n != 0 {
			return n
		}
		return cmp.Compare(a.Execution.ID, b.Execution.ID)
	})
}

// Totals are the Session counters of a status report: no ids, no keys (SES-58).
type Totals struct {
	Sessions int `json:"sessions"`
	Active   int `json:"active"`
	Closed   int `json:"closed"`
}

// Totals counts the retained Sessions.
func (s *Store) Totals() Totals {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var t Totals
	for _, v := range s.sessions {
		t.Sessions++
		if v.Core.Lifecycle == Closed {
			t.Closed++
		} else {
			t.Active++
		}
	}
	return t
}
