package run

import (
	"context"

	"webcodex/commands/call"
)

// ListJobsIn is the input of list_jobs.
type ListJobsIn struct {
	Project   string `json:"project,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	Active    bool   `json:"active,omitempty"`
	Limit     *int   `json:"limit,omitempty"`
	Offset    int    `json:"offset,omitempty"`
}

// ListJobsOut is one page.
type ListJobsOut struct {
	Items      []JobStatus `json:"items"`
	Total      int         `json:"total"`
	Active     int         `json:"active"` // of all, those without an end, by the server's own count
	Returned   int         `json:"returned"`
	Truncated  bool        `json:"truncated"`
	NextOffset *int        `json:"next_offset"`
}

// ListJobs finds the caller's Jobs: of a Project, of a Session, or all. Those without an end come
// first, each part the newest first.
var ListJobs = call.Spec{
	Name: "list_jobs", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: ListJobsIn{}, Run: listJobs,
}

func listJobs(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListJobsIn](c)
	if err != nil {
		return call.Result{}, err
	}
	jobs, err := c.Jobs(c.Project, c.Session)
	if err != nil {
		return call.Result{}, err
	}
	out := ListJobsOut{}
	for _, j := range jobs {
		if !j.Ended {
			out.Active++
		}
	}
	if in.Active {
		jobs = jobs[:out.Active]
	}
	out.Total = len(jobs)
	limit := DefaultListed
	if in.Limit != nil {
		limit = min(max(*in.Limit, 1), MaxListed)
	}
	from := min(max(in.Offset, 0), len(jobs))
	to := min(from+limit, len(jobs))
	out.Items = statusesOf(ctx, c, jobs[from:to])
	out.Returned, out.Truncated = to-from, to < len(jobs)
	if out.Truncated {
		out.NextOffset = &to
	}
	return call.Result{Output: out}, nil
}
