// Package material answers the context materials that a request asks for beside its tool: rules
// of the Project, guidance, work to resume, Jobs. Each is authorised before it is read, read
// after the tool's effect, and never changes the tool's result.
package material

import (
	"context"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
)

// material is one entry of the registry: what it needs, and who provides it (CTX-03, CTX-19).
type material struct {
	key    string
	scopes []call.Scope // all are needed; none: public
	// project: it is about the Project that the request itself names (CTX-14).
	project bool
	// read gives the content, or why there is none; nil: this server has no such plane.
	read func(ctx context.Context, c *call.Call, o Options) (content any, reason string)
}

// registry is the one source of what there is.
var registry = []material{
	{key: call.MaterialInstructions, scopes: []call.Scope{call.ScopeProjectRead}, project: true, read: instructions},
	{key: "webcodex.workflow", read: workflow},
	{key: "workflow.resume", scopes: []call.Scope{call.ScopeRuntimeRead, call.ScopeProjectRead}, read: resume},
	{key: "jobs.attention", scopes: []call.Scope{call.ScopeRuntimeRead}, project: true, read: jobs},
	{key: "skills.catalog", scopes: []call.Scope{call.ScopeProjectRead}, project: true},
	{key: "plugins.catalog", scopes: []call.Scope{call.ScopeProjectRead, call.ScopePluginInspect}, project: true},
	{key: "memory.bootstrap", scopes: []call.Scope{call.ScopeProjectRead, call.ScopeMemoryRead}, project: true},
}

// Keys lists the known keys, in order.
func Keys() []string {
	out := make([]string, len(registry))
	for i, m := range registry {
		out[i] = m.key
	}
	return out
}

// Options of New.
type Options struct {
	// Linked gives the Sessions linked to the caller's window, the newest first; nil: windows
	// have no links here.
	Linked func(ctx context.Context, c *call.Call) []event.SessionID
}

// Entry is what an answer says of one key.
type Entry struct {
	Key     string `json:"key"`
	Status  string `json:"status"`
	Reason  string `json:"reason_code,omitempty"`
	Content any    `json:"content,omitempty"`
}

// Statuses and reasons of an Entry.
const (
	Available   = "available"
	Unavailable = "unavailable"

	reasonUnknown    = "unknown_material"
	reasonScope      = "insufficient_scope"
	reasonProject    = "project_required"
	reasonCapability = "capability_unavailable"
	reasonRunner     = "runner_unavailable"
	reasonFailed     = "provider_failed"
	reasonProfile    = "invalid_profile"
)

// Context is the addition of an answer whose request asked for materials.
type Context struct {
	Materials []Entry `json:"materials"`
}

// New gives the addition context.
func New(o Options) call.Ambient {
	return func(ctx context.Context, c *call.Call, _ bool) []call.Addition {
		asked := c.Envelope().Context
		if len(asked) == 0 {
			return nil
		}
		out := Context{Materials: []Entry{}}
		done := map[string]bool{}
		for _, key := range asked {
			if !done[key] && len(out.Materials) < MaxEntries {
				done[key] = true
				out.Materials = append(out.Materials, entry(ctx, c, o, registry, key))
			}
		}
		return []call.Addition{{Name: "context", Value: out}}
	}
}

// entry authorises one material, then reads it. Nothing of a denied one is read.
func entry(ctx context.Context, c *call.Call, o Options, known []material, key string) (e Entry) {
	e = Entry{Key: key, Status: Unavailable}
	for _, m := range known {
		if m.key != key {
			continue
		}
		if e.Reason = m.denied(c); e.Reason != "" {
			return e
		}
		defer func() {
			if recover() != nil {
				c.Panicked("the material " + m.key)
				e = Entry{Key: key, Status: Unavailable, Reason: reasonFailed}
			}
		}()
		content, reason := m.read(ctx, c, o)
		if reason != "" {
			e.Reason = reason
			return e
		}
		e.Status, e.Content = Available, content
		return e
	}
	e.Reason = reasonUnknown
	return e
}

// denied is why the caller gets nothing of the material, empty where nothing stands against it.
func (m material) denied(c *call.Call) string {
	for _, s := range m.scopes {
		if !c.HasScope(s) {
			return reasonScope
		}
	}
	switch {
	case m.project && project(c) == nil:
		return reasonProject
	case m.read == nil:
		return reasonCapability
	}
	return ""
}

// project is the Project that the request is about by its own words, or, for the one tool that
// takes it from the Session it resumes, by what it has just looked at.
func project(c *call.Call) *call.ProjectInfo {
	if _, looked := c.Instructions(); looked {
		return c.Project
	}
	return c.NamedProject()
}
