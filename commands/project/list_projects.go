// Package project holds the tools about Projects as the server knows them.
package project

import (
	"context"
	"strings"

	"webcodex/commands/call"
)

// Bounds of list_projects.
const (
	MaxQuery     = 200
	DefaultLimit = 50
	MaxLimit     = 100
)

// ListIn is the input of list_projects.
type ListIn struct {
	ClientID string `json:"client_id,omitempty"`
	Query    string `json:"query,omitempty"`
	Limit    int    `json:"limit,omitempty"`
}

// ListOut is its output.
type ListOut struct {
	Projects  []call.ProjectInfo `json:"projects"`
	Count     int                `json:"count"`
	Matched   int                `json:"matched_count"`
	Truncated bool               `json:"truncated"`
}

// ListProjects shows the Projects that may be named in other calls.
var ListProjects = call.Spec{
	Name: "list_projects", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneRuntime, Class: call.Observe,
	In: ListIn{}, Run: listProjects,
}

func listProjects(_ context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ListIn](c)
	if err != nil {
		return call.Result{}, err
	}
	limit := in.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	out := ListOut{Projects: []call.ProjectInfo{}}
	query := strings.ToLower(in.Query)
	for _, p := range c.Projects() {
		if p.Root == "" {
			continue // it was unregistered
		}
		if in.ClientID != "" && string(p.Ref.Client) != in.ClientID || !strings.Contains(strings.ToLower(p.Name+" "+p.Project), query) {
			continue
		}
		out.Matched++
		if len(out.Projects) < limit {
			out.Projects = append(out.Projects, p)
		}
	}
	out.Count, out.Truncated = len(out.Projects), out.Matched > len(out.Projects)
	return call.Result{Output: out}, nil
}
