package session

import (
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Row is one Session of list_sessions.
type Row struct {
	SessionID  event.SessionID `json:"session_id"`
	SessionRef string          `json:"session_ref,omitempty"`
	Project    *string         `json:"project"`
	Title      string          `json:"title"`
	Mode       event.Mode      `json:"mode"`
	Lifecycle  Lifecycle       `json:"lifecycle"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	// EventsObserved is cumulative and no cursor (EVT-06).
	EventsObserved uint64 `json:"events_observed"`
	OpenCalls      int    `json:"open_calls"`
	ActiveJobs     int    `json:"active_jobs"`
}

// Page is the output of list_sessions. Pages are not a frozen snapshot: a Session updated
// between two calls moves (LST-08).
type Page struct {
	Total    int `json:"total"`
	Returned int `json:"returned"`
	Offset   int `json:"offset"`
	Limit    int `json:"limit"`
	// Truncated: the byte bound cut rows off this page; NextOffset goes on without a gap.
	Truncated bool `json:"truncated"`
	// NextOffset is null on the last page.
	NextOffset *int  `json:"next_offset"`
	Sessions   []Row `json:"sessions"`
}

// ParseLifecycle reads list_sessions' lifecycle; empty is all. Expired Sessions have no row
// and no filter (LST-11): invalid_arguments.
func ParseLifecycle(s string) (Lifecycle, error) {
	switch l := Lifecycle(s); l {
	case "", Active, Closed:
		return l, nil
	}
	return "", fault.New(fault.InvalidArguments, "lifecycle is active or closed").WithField("lifecycle")
}

// Page gives one page of the matching Sessions. Without a limit it has ListLimit rows,
// otherwise limit clamped to 1..MaxListLimit (LST-05); a negative offset is 0.
func (s *Store) Page(f Filter, offset int, limitAsked *int) (Page, error) {
	limit := clamp(limitAsked, ListLimit, MaxListLimit)
	offset = max(offset, 0)
	cores, total, err := s.Select(f, offset, limit)
	if err != nil {
		return Page{}, fault.Wrap(err, fault.Internal, "the list of Sessions cannot be read").
			WithNext("call again; if it stays so, restart WebCodex")
	}
	return newPage(cores, total, offset, limit), nil
}

// newPage shows the cores that stand at offset as far as the byte bound allows.
func newPage(cores []Core, total, offset, limit int) Page {
	p := Page{Total: total, Offset: offset, Limit: limit, Sessions: []Row{}}
	next := total
	p.NextOffset = &next // its place counts while the page is measured
	used := size(p) + 2*len("9223372036854775807")
	p.NextOffset = nil
	for _, c := range cores {
		r := row(c)
		r.SessionRef = longestRef // measured with what the caller's ref may take
		n := size(r) + 1
		r.SessionRef = ""
		if used+n > MaxListBytes && len(p.Sessions) > 0 {
			p.Truncated = true
			break
		}
		used += n
		p.Sessions = append(p.Sessions, r)
	}
	p.Returned = len(p.Sessions)
	from := min(offset, total)
	if next = from + limit; p.Truncated {
		next = from + p.Returned
	}
	if next < total {
		p.NextOffset = &next
	}
	return p
}

var longestRef = event.RefSession.Ref(event.MaxRefNumber)

func row(c Core) Row {
	h := head(c)
	return Row{SessionID: h.SessionID, Project: h.Project, Title: h.Title, Mode: h.Mode, Lifecycle: h.Lifecycle,
		CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, EventsObserved: c.Observed,
		OpenCalls: c.OpenCalls(), ActiveJobs: len(c.Jobs)}
}
