package call

import (
	"slices"

	"webcodex/eventlog/event"
)

// Scope is a right that a credential carries.
type Scope string

// Scopes (tools.md). The set is closed.
const (
	ScopeRuntimeRead         Scope = "runtime:read"
	ScopeProjectRead         Scope = "project:read"
	ScopeProjectWrite        Scope = "project:write"
	ScopeJobRun              Scope = "job:run"
	ScopeJobDetach           Scope = "job:detach"
	ScopeCollaborate         Scope = "session:collaborate"
	ScopeMemoryRead          Scope = "memory:read"
	ScopeMemoryManage        Scope = "memory:manage"
	ScopePluginInspect       Scope = "plugin:inspect"
	ScopeCommunicationRead   Scope = "communication:read"
	ScopeCommunicationManage Scope = "communication:manage"
	ScopeAccountManage       Scope = "account:manage"
	ScopeAdmin               Scope = "admin"
)

var scopes = []Scope{ScopeRuntimeRead, ScopeProjectRead, ScopeProjectWrite, ScopeJobRun, ScopeJobDetach, ScopeCollaborate,
	ScopeMemoryRead, ScopeMemoryManage, ScopePluginInspect, ScopeCommunicationRead, ScopeCommunicationManage, ScopeAccountManage, ScopeAdmin}

// Valid reports whether s is one of the set.
func (s Scope) Valid() bool { return slices.Contains(scopes, s) }

// ScopeNames lists the set.
func ScopeNames() []string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = string(s)
	}
	return out
}

// Principal is an authenticated caller.
type Principal struct {
	Actor  event.Actor
	Scopes map[Scope]bool
	// Owner is the local owner of the data directory, the only one for whom a tool without a
	// declared scope is open (AUTH-10).
	Owner bool
	// Only limits the Projects that exist for the caller; nil: every one.
	Only *ProjectSet
}

// ProjectSet is a closed set of Projects. The empty one holds none.
type ProjectSet struct{ in map[event.ProjectRef]struct{} }

// NewProjectSet makes one.
func NewProjectSet(refs []event.ProjectRef) *ProjectSet {
	s := &ProjectSet{in: make(map[event.ProjectRef]struct{}, len(refs))}
	for _, r := range refs {
		s.in[r] = struct{}{}
	}
	return s
}

// Sees reports whether the Project exists for the caller. What has no Project is nobody's
// secret by its Project.
func (p Principal) Sees(ref event.ProjectRef) bool {
	if p.Only == nil || ref.Zero() {
		return true
	}
	_, ok := p.Only.in[ref]
	return ok
}

// Projects lists the Projects that exist for the caller, connected or not, ordered by id.
func (c *Call) Projects() []ProjectInfo {
	all := c.kernel.fleet.Projects()
	if c.Principal.Only == nil {
		return all
	}
	out := make([]ProjectInfo, 0, len(all))
	for _, p := range all {
		if c.Principal.Sees(p.Ref) {
			out = append(out, p)
		}
	}
	return out
}
