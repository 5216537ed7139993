package session

import (
	"cmp"
	"database/sql"
	"maps"
	"slices"

	"webcodex/eventlog/event"
)

// Unfinished is what one Session has open: calls without a finish, Jobs without an end.
type Unfinished struct {
	Session event.SessionID
	Project event.ProjectRef
	Calls   []OpenCall
	Jobs    []OpenJob
}

// Open lists everything open over all Sessions, ordered by Session, then start, then id. At
// start a dead server's calls are found here.
func (s *Store) Open() ([]Unfinished, error) {
	o := s.over()
	ids := slices.Collect(maps.Keys(o.cores))
	if o.file != nil {
		rows, err := idsOf(o.file.busy.Query())
		if err != nil {
			return nil, err
		}
		ids = append(ids, rows...)
	}
	slices.Sort(ids)
	var out []Unfinished
	for _, id := range slices.Compact(ids) {
		c, ok := o.cores[id]
		if !ok {
			if c, ok = s.Core(id); !ok {
				continue // its readers are told why; the others go on
			}
		}
		if len(c.Open)+len(c.Jobs) > 0 {
			out = append(out, Unfinished{Session: c.ID, Project: c.Project, Calls: openCalls(c), Jobs: openJobs(c)})
		}
	}
	return out, nil
}

func idsOf(rows *sql.Rows, err error) (out []event.SessionID, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id event.SessionID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
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

// Ended finds how a Job of any Session ended, by its id, and the Session it belongs to.
func (s *Store) Ended(id event.ExecutionID) (EndedJob, Core, bool) {
	o := s.over()
	for _, c := range o.cores {
		if j, ok := endedIn(c, id); ok {
			return j, c, true
		}
	}
	if o.file == nil {
		return EndedJob{}, Core{}, false
	}
	var owner event.SessionID
	if err := o.file.ended.QueryRow(string(id)).Scan(&owner); err != nil {
		return EndedJob{}, Core{}, false
	}
	c, _ := s.Core(owner)
	j, ok := endedIn(c, id)
	return j, c, ok
}

// Running finds a Job of any Session that has no end yet, by its id, and the Session it belongs to.
func (s *Store) Running(id event.ExecutionID) (OpenJob, Core, bool) {
	open, err := s.Open()
	if err != nil {
		return OpenJob{}, Core{}, false
	}
	for _, w := range open {
		for _, j := range w.Jobs {
			if j.Execution.ID == id {
				c, ok := s.Core(w.Session)
				return j, c, ok
			}
		}
	}
	return OpenJob{}, Core{}, false
}

func endedIn(c Core, id event.ExecutionID) (EndedJob, bool) {
	i := slices.IndexFunc(c.Ended, func(j EndedJob) bool { return j.Execution == id })
	if i < 0 {
		return EndedJob{}, false
	}
	return c.Ended[i], true
}

// Totals are the Session counters of a status report: no ids, no keys (SES-58).
type Totals struct {
	// Sessions are the retained ones, hot and cold, active and closed.
	Sessions int `json:"sessions"`
	Active   int `json:"active"`
	Closed   int `json:"closed"`
	// Hot are expanded in memory, the others lie in state.db.
	Hot  int `json:"hot"`
	Cold int `json:"cold"`
	// HotTarget is a count of Sessions, not of bytes (SES-32). MaxSessions repeats it under its
	// older name; nothing is deleted by it (SES-42).
	HotTarget   int `json:"hot_session_capacity_target"`
	MaxSessions int `json:"max_sessions"`
	// MaxTail is how many events of a Session are retained.
	MaxTail int `json:"tail_events_limit"`
	// Tombstones of removed Sessions are kept by projections/retention, which fills this in.
	Tombstones int `json:"tombstones"`
	// LastPersistError says why the newest changes are in memory and in the log but not in
	// state.db yet; null after a good write (RES-23).
	LastPersistError *string `json:"last_persist_error"`
}

// Any reports whether there is a Session at all.
func (s *Store) Any() bool {
	t := s.Totals()
	return t.Sessions > 0
}

// Totals counts the retained Sessions.
func (s *Store) Totals() Totals {
	n := s.Count(Filter{AnyAuthority: true})
	lastError := s.lastPersistError()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Totals{Active: n.Active, Closed: n.Closed, Hot: s.hot.len(), HotTarget: s.hot.target, MaxSessions: s.hot.target,
		MaxTail: MaxTail, LastPersistError: lastError}
	t.Sessions = t.Active + t.Closed
	t.Cold = max(t.Sessions-t.Hot, 0)
	return t
}

func (s *Store) lastPersistError() *string {
	s.mu.Lock()
	keeper := s.keeper
	s.mu.Unlock()
	if keeper == nil {
		return nil
	}
	if why := keeper.LastPersistError(); why != "" {
		return &why
	}
	return nil
}
