package session

import (
	"context"
	"slices"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/external"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// HandoffIn is the input of read_session_handoff. Absent include flags mean true.
type HandoffIn struct {
	SessionID          string `json:"session_id"`
	Project            string `json:"project,omitempty"`
	IncludeWorkspace   *bool  `json:"include_workspace,omitempty"`
	IncludeValidation  *bool  `json:"include_validation,omitempty"`
	IncludeCheckpoints *bool  `json:"include_checkpoints,omitempty"`
	Limit              *int   `json:"limit,omitempty"`
	Diagnostic         bool   `json:"diagnostic,omitempty"`
}

// ReadHandoff gives the handoff brief of an exactly named Session (HND-01…03).
var ReadHandoff = call.Spec{
	Name: "read_session_handoff", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Observe,
	In: HandoffIn{}, Run: readHandoff,
}

func readHandoff(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[HandoffIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needSession(c); err != nil {
		return call.Result{}, err
	}
	v, s, err := snapshot(ctx, c, session.Snapshot{IncludeWorkspace: asked(in.IncludeWorkspace),
		IncludeValidation: asked(in.IncludeValidation), IncludeCheckpoints: asked(in.IncludeCheckpoints)})
	if err != nil {
		return call.Result{}, err
	}
	h := session.NewHandoff(v, s, in.Diagnostic, in.Limit)
	h.SessionRef = sessionRefs(ctx, c, v.Core)[0]
	return call.Result{Output: h}, nil
}

// asked reads a flag that is true where it is absent.
func asked(flag *bool) bool { return flag == nil || *flag }

// snapshot gathers what the views are made of. The working tree is asked for only where it
// was requested (HND-29); a Session that moved on meanwhile is said to have (HND-35).
func snapshot(ctx context.Context, c *call.Call, s session.Snapshot) (session.View, session.Snapshot, error) {
	if s.IncludeValidation { // before the fence, which its own ends do not trip (HND-40)
		if err := c.Reconcile(ctx, c.Session.ID); err != nil {
			return session.View{}, s, err
		}
	}
	before, err := c.Sessions().Load(c.Session.ID)
	if err != nil {
		return session.View{}, s, err
	}
	s.Server = c.Server()
	outside := reported(c)
	if s.IncludeWorkspace {
		s.Workspace = workspaceOf(observe(ctx, c, wire.ObserveWorkspaceIn{Tree: s.IncludeValidation}))
	}
	if s.IncludeCheckpoints {
		s.Checkpoints = checkpoints(ctx, c)
	}
	after, err := c.Sessions().Load(c.Session.ID)
	if err != nil {
		return session.View{}, s, err
	}
	after.Stopping, after.Reconciled = c.Stopping(), c.Reconciled()
	s.SessionChanged = before.Fence().Moved(after, c.Invocation)
	s.External = reported(c)
	s.ExternalChanged = !s.External.Same(outside)
	return after, s, nil
}

// checkpoints are the newest of the Project, as its Runner tells; nil: nobody could.
func checkpoints(ctx context.Context, c *call.Call) *session.Checkpoints {
	if c.Target == nil || !c.HasScope(call.ScopeProjectRead) || !offers(c, wire.OpListCheckpoints) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	got, err := call.Ask[wire.ListCheckpointsOut](ctx, c, wire.OpListCheckpoints, wire.ListCheckpointsIn{Limit: session.MaxBriefCheckpoints})
	if err != nil {
		return nil
	}
	out := &session.Checkpoints{Total: got.Total}
	for _, k := range got.Checkpoints {
		out.Newest = append(out.Newest, session.CheckpointLine{ID: k.ID, Title: k.Title, Kind: k.Kind, CreatedAt: k.CreatedAt})
	}
	return out
}

// reported are the reports of adapters outside about the call's Session; nil: nobody can tell.
func reported(c *call.Call) *session.ExternalReports {
	if c.External() == nil || c.Session.Project.Zero() {
		return nil
	}
	return ExternalOf(c.External().About(c.Session.ID))
}

// ExternalOf is what views show of the reports about a Session, which are given oldest first.
func ExternalOf(all []external.Report) *session.ExternalReports {
	out := &session.ExternalReports{Total: len(all)}
	for _, r := range slices.Backward(all) {
		if r.Status == external.Unknown {
			out.Unknown++
		}
		if len(out.Newest) < session.MaxBriefReports {
			out.Newest = append(out.Newest, session.ExternalReport{AdapterID: r.Adapter, EventID: r.Event, Tool: r.Tool, Status: r.Status,
				ReceivedAt: event.FormatTime(r.Received)})
		}
	}
	return out
}

func workspaceOf(w wire.ObserveWorkspaceOut) *session.Workspace {
	return &session.Workspace{Status: w.Status, Reason: w.Reason, Branch: w.Branch, Head: w.Head, Conflicts: w.ConflictCount,
		ChangedFiles: w.ChangedFiles, Tree: w.Tree, TreeReason: w.TreeReason}
}

// projectName is the Project as callers name it, empty for a Session without one.
func projectName(ref event.ProjectRef) string {
	if ref.Zero() {
		return ""
	}
	return ref.String()
}
