package external

import (
	"context"
	"encoding/json"
	"slices"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/external"
)

// ListIn is the input of list_external_observations.
type ListIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id"`
	Offset    int    `json:"offset,omitempty"`
	Limit     *int   `json:"limit,omitempty"`
}

// ListOut is its output, the report received last first.
type ListOut struct {
	Project    string          `json:"project"`
	SessionID  event.SessionID `json:"session_id"`
	Provenance string          `json:"provenance"`
	Coverage   Coverage        `json:"coverage"`
	// Capacity is how many reports one Session can have.
	Capacity   int  `json:"capacity"`
	Total      int  `json:"total"`
	Returned   int  `json:"returned"`
	Offset     int  `json:"offset"`
	Limit      int  `json:"limit"`
	Truncated  bool `json:"truncated"`
	NextOffset *int `json:"next_offset"`
	// UnknownCount is of all reports whose outcome is unknown, shown here or not (EXT-07).
	UnknownCount int     `json:"unknown_count"`
	Observations []Shown `json:"observations"`
}

// ListObservations pages through the reports about a Session.
var ListObservations = call.Spec{
	Name: "list_external_observations", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: ListIn{}, Run: list,
}

func list(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListIn](c)
	if err != nil {
		return call.Result{}, err
	}
	reports, err := scope(c, in.Project)
	if err != nil {
		return call.Result{}, err
	}
	return call.Result{Output: in.page(c.Project.Project, c.Session.ID, reports.About(c.Session.ID))}, nil
}

// page is pure; what is reported between two pages moves the second by as much.
func (in ListIn) page(project string, id event.SessionID, all []external.Report) ListOut {
	out := ListOut{Project: project, SessionID: id, Provenance: provenance, Capacity: external.MaxPerSession, Total: len(all),
		Offset: max(in.Offset, 0), Limit: ListLimit, Observations: []Shown{}}
	if in.Limit != nil {
		out.Limit = min(max(*in.Limit, 1), MaxListLimit)
	}
	skip, room := out.Offset, MaxPageBytes
	for _, r := range slices.Backward(all) {
		if r.Status == external.Unknown {
			out.UnknownCount++
		}
		if skip--; skip >= 0 || out.Truncated {
			continue
		}
		s := shown(r)
		if room -= size(s); len(out.Observations) == out.Limit || room < 0 && len(out.Observations) > 0 {
			out.Truncated = true
			continue
		}
		out.Observations = append(out.Observations, s)
	}
	out.Returned = len(out.Observations)
	if out.Truncated {
		next := out.Offset + out.Returned
		out.NextOffset = &next
	}
	return out
}

// size is that of a report in a list.
func size(s Shown) int {
	b, err := json.Marshal(s)
	if err != nil {
		return MaxPageBytes
	}
	return len(b) + 1
}
