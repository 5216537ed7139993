// Package external folds what adapters outside report about a Session. A report proves nothing,
// is no event of the Session, and moves nothing of it (EXT-03).
package external

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"webcodex/eventlog/event"
)

// Statuses that a report may tell (EXT-11).
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Unknown   = "unknown"
)

// Statuses lists them.
func Statuses() []string { return []string{Succeeded, Failed, Unknown} }

// Key is what a report is known by within its Session: it correlates replays and authenticates
// nobody (EXT-05).
type Key struct {
	Adapter string
	Event   string
}

// Report is one report as it was received.
type Report struct {
	Project  event.ProjectRef `json:"project"`
	Session  event.SessionID  `json:"session_id"`
	Adapter  string           `json:"adapter_id"`
	Event    string           `json:"event_id"`
	Tool     string           `json:"tool"`
	Status   string           `json:"status"`
	ExitCode *int32           `json:"exit_code,omitempty"`
	// Payload is the hash of what came under the key (EXT-06).
	Payload string `json:"payload_hash"`
	// Received is the server's time, in milliseconds; no other orders reports (EXT-12).
	Received time.Time `json:"received_at"`
}

// Key of the report.
func (r Report) Key() Key { return Key{r.Adapter, r.Event} }

// valid reports whether a report is one that the command lets through.
func (r Report) valid() bool {
	return r.Session.Valid() && !r.Project.Zero() && event.ValidFingerprint(r.Adapter) && event.ValidFingerprint(r.Event) &&
		toolForm.MatchString(r.Tool) && slices.Contains(Statuses(), r.Status) && event.ValidFingerprint(r.Payload)
}

// order is by the server's time, then by identity (HND-22).
func order(a, b Report) int {
	return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Adapter, b.Adapter), cmp.Compare(a.Event, b.Event))
}

// Reports is the fold, a state.Model. It is safe for concurrent use.
type Reports struct {
	mu      sync.RWMutex
	applied uint64
	of      map[event.SessionID][]Report // ordered; a list is never changed, only replaced
	total   int
	places  map[event.SessionID]map[Key]bool // held for reports that are being decided on

	dirty   changes // since the last capture
	writing changes // captured; the file may have it or not
}

// New is an empty fold.
func New() *Reports {
	return &Reports{of: map[event.SessionID][]Report{}, places: map[event.SessionID]map[Key]bool{}, dirty: changes{}, writing: changes{}}
}

// Apply folds one commit (eventlog.Fold).
func (s *Reports) Apply(seq uint64, _ string, c event.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.applied {
		return
	}
	s.applied = seq
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.ObservationRecorded:
			s.recorded(c, e)
		case event.SessionRemoved:
			s.replace(e.Session, nil)
		default: // carried: below
		}
	}
	if id, list, ok := carriedIn(c); ok {
		s.replace(id, list)
	}
}

// recorded takes a report. What a decision refuses changes nothing here either, should a log
// hold it: another Session's, a malformed one, a key twice, one too many.
func (s *Reports) recorded(c event.Commit, e event.ObservationRecorded) {
	r := Report{Project: e.Project, Session: e.Session, Adapter: e.Adapter, Event: e.Event, Tool: e.Tool, Status: e.Status, Payload: e.Payload,
		Received: c.At.UTC().Truncate(time.Millisecond)}
	if e.ExitCode != nil {
		n := int32(*e.ExitCode)
		if int(n) != *e.ExitCode {
			return
		}
		r.ExitCode = &n
	}
	list := s.of[r.Session]
	if !r.valid() || event.ExternalAggregate(r.Session) != c.Aggregate || len(list) >= MaxPerSession || at(list, r.Key()) >= 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(list, r, order)
	s.of[r.Session] = slices.Insert(slices.Clone(list), i, r)
	s.total++
	s.leave(r.Session, r.Key())
	s.dirty.put(r)
}

// replace makes list what is known about the Session.
func (s *Reports) replace(id event.SessionID, list []Report) {
	had := len(s.of[id])
	if had == 0 && len(list) == 0 {
		return
	}
	s.total += len(list) - had
	delete(s.of, id)
	if len(list) > 0 {
		s.of[id] = list
	}
	s.dirty.replace(id, list)
}

func at(list []Report, k Key) int {
	return slices.IndexFunc(list, func(r Report) bool { return r.Key() == k })
}

// Standing is what recording a report is decided on.
type Standing struct {
	// Same is the report that is there under the key; nil: none.
	Same *Report
	// Of are the reports about the Session, All those about any, places held included.
	Of, All int
}

// Hold tells how things stand and holds a place for a report until Release, so that reports
// about several Sessions at once never pass the bound of all (EXT-09).
func (s *Reports) Hold(id event.SessionID, k Key) Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.of[id]
	st := Standing{Of: len(list), All: s.total}
	for _, held := range s.places {
		st.All += len(held)
	}
	if i := at(list, k); i >= 0 {
		st.Same = &list[i]
		return st
	}
	if s.places[id][k] {
		st.All--
	}
	if s.places[id] == nil {
		s.places[id] = map[Key]bool{}
	}
	s.places[id][k] = true
	return st
}

// Release gives the place back. One whose report was folded is gone already.
func (s *Reports) Release(id event.SessionID, k Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(id, k)
}

func (s *Reports) leave(id event.SessionID, k Key) {
	delete(s.places[id], k)
	if len(s.places[id]) == 0 {
		delete(s.places, id)
	}
}

// Find gives the report under a key.
func (s *Reports) Find(id event.SessionID, k Key) (Report, bool) {
	list := s.About(id)
	if i := at(list, k); i >= 0 {
		return list[i], true
	}
	return Report{}, false
}

// About gives the reports about a Session, oldest first. The list must not be changed.
func (s *Reports) About(id event.SessionID) []Report {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.of[id]
}

// Total counts all reports.
func (s *Reports) Total() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.total
}

// changes are what the file lacks, by Session.
type changes map[event.SessionID]*change

// change is of one Session's rows.
type change struct {
	all  bool // the rows there are go first
	rows map[Key]Report
}

func (c changes) of(id event.SessionID) *change {
	if c[id] == nil {
		c[id] = &change{rows: map[Key]Report{}}
	}
	return c[id]
}

func (c changes) put(r Report) { c.of(r.Session).rows[r.Key()] = r }

func (c changes) replace(id event.SessionID, list []Report) {
	n := &change{all: true, rows: map[Key]Report{}}
	for _, r := range list {
		n.rows[r.Key()] = r
	}
	c[id] = n
}

// merged is both, one after the other.
func (c changes) merged(newer changes) changes {
	out := changes{}
	for id, x := range c {
		out[id] = &change{x.all, maps.Clone(x.rows)}
	}
	for id, x := range newer {
		if x.all {
			out[id] = &change{true, maps.Clone(x.rows)}
			continue
		}
		maps.Copy(out.of(id).rows, x.rows)
	}
	return out
}
