package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// StartIn is the input of start_session.
type StartIn struct {
	Project string     `json:"project,omitempty"`
	Title   string     `json:"title,omitempty"`
	Mode    string     `json:"mode,omitempty"`
	Context *ContextIn `json:"execution_context,omitempty"`
}

// StartOut is its output.
type StartOut struct {
	SessionID  event.SessionID `json:"session_id"`
	SessionRef string          `json:"session_ref,omitempty"`
	Project    string          `json:"project,omitempty"`
	ProjectRef string          `json:"project_ref,omitempty"`
	Session    Head            `json:"session"`
}

// StartSession makes a Session without an instruction, with or without a Project.
var StartSession = call.Spec{
	Name: "start_session", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Mutate,
	Conditional: []call.Scope{call.ScopeProjectWrite},
	In:          StartIn{}, Run: startSession,
}

func startSession(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[StartIn](c)
	if err != nil {
		return call.Result{}, err
	}
	defaults, err := in.Context.Event(c.Project != nil)
	if err != nil {
		return call.Result{}, err
	}
	if in.Mode != string(event.ModeReadOnly) && c.Project != nil && !c.HasScope(call.ScopeProjectWrite) {
		return call.Result{}, fault.New(fault.InsufficientScope, "a normal Session needs the scope project:write").WithField("mode")
	}
	s := Start{Actor: c.Principal.Actor, Nonce: event.NewNonce(), Title: in.Title, Mode: event.Mode(in.Mode), Transport: c.Transport}
	if defaults != nil {
		s.Context = *defaults
	}
	if c.Project != nil {
		s.Project, s.Root = c.Project.Ref, c.Project.Root
	}
	id := event.NewSessionID()
	if err := create(ctx, c, id, s); err != nil {
		return call.Result{}, err
	}
	core, err := c.Current(id)
	if err != nil {
		return call.Result{}, err
	}
	out := StartOut{SessionID: id, SessionRef: sessionRefs(ctx, c, core)[0], ProjectRef: projectRef(ctx, c), Session: HeadOf(core)}
	if c.Project != nil {
		out.Project = c.Project.Project
	}
	return call.Result{Output: out}, nil
}
