package session

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// WorkIn is the input of work_on_project: exactly one of project and session_id selects; an
// equal project beside session_id is fine.
type WorkIn struct {
	Instruction string     `json:"instruction"`
	Project     string     `json:"project,omitempty"`
	SessionID   string     `json:"session_id,omitempty"`
	Mode        string     `json:"mode,omitempty"`
	SessionMode string     `json:"session_mode,omitempty"`
	Context     *ContextIn `json:"execution_context,omitempty"`
}

// WorkOut is its output (shapes.md 4).
type WorkOut struct {
	SessionID    event.SessionID    `json:"session_id"`
	Project      string             `json:"project,omitempty"`
	Continuation string             `json:"continuation"`
	Session      Head               `json:"session"`
	Workspace    WorkspaceOut       `json:"workspace"`
	Instructions InstructionsOut    `json:"instructions"`
	Navigation   SemanticNavigation `json:"semantic_navigation"`
	Feedback     session.Feedback   `json:"continuation_feedback"`
	Next         []session.Action   `json:"next_actions"`
}

// WorkspaceOut is what was seen of the working tree.
type WorkspaceOut struct {
	Status       string   `json:"status"`
	ReasonCode   string   `json:"reason_code,omitempty"`
	Branch       string   `json:"branch,omitempty"`
	Head         string   `json:"head,omitempty"`
	Detached     bool     `json:"detached"`
	Conflicts    []string `json:"conflicts"`
	ChangedFiles int      `json:"changed_files"`
}

// InstructionsOut names the Project's instruction files, never their text (STA-14).
type InstructionsOut struct {
	Status  string                   `json:"status"`
	Sources []wire.InstructionSource `json:"sources"`
}

// SemanticNavigation says whether a language server was seen; it is never waited for.
type SemanticNavigation struct {
	Status    string `json:"status"`
	Available *bool  `json:"available"`
}

// WorkOnProject is the one entry that starts or exactly continues work (STA-01).
var WorkOnProject = call.Spec{
	Name: "work_on_project", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneSession, Class: call.Mutate,
	Conditional: []call.Scope{call.ScopeProjectRead, call.ScopeProjectWrite},
	In:          WorkIn{}, Run: workOnProject,
}

func workOnProject(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[WorkIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := checkWork(c, in); err != nil {
		return call.Result{}, err
	}
	defaults, err := in.Context.Event(c.Project != nil)
	if err != nil {
		return call.Result{}, err
	}
	id, how, feedback := event.SessionID(""), Resumed, session.FreshFeedback()
	if c.Session != nil {
		id = c.Session.ID
		feedback = feedbackBefore(c, id)
		err = resumeWork(ctx, c, in, defaults)
	} else {
		id, how = event.NewSessionID(), Created
		err = startWork(ctx, c, id, in, defaults)
	}
	if err != nil {
		return call.Result{}, err
	}
	core, _ := c.Sessions().Core(id)
	return call.Result{Output: workOutput(core, how, feedback, observe(ctx, c, true))}, nil
}

// checkWork refuses before anything is written.
func checkWork(c *call.Call, in WorkIn) error {
	if err := CheckInstruction(in.Instruction); err != nil {
		return err
	}
	if c.Project == nil && (c.Session == nil || in.Mode == "worktree") {
		return fault.New(fault.InvalidArguments, "name a project to start, or a session_id to continue").WithField("project").
			WithNext("call list_projects")
	}
	if in.Mode == "worktree" {
		return fault.New(fault.Unavailable, "managed worktrees are not available on this server").WithField("mode").
			WithNext("use mode checkout")
	}
	if c.Project != nil {
		if !c.HasScope(call.ScopeProjectRead) {
			return fault.New(fault.InsufficientScope, "this credential lacks the scope project:read")
		}
		if c.Target == nil {
			_, err := c.Fleet().Target(c.Project.Ref)
			return err
		}
	}
	normal := in.SessionMode == string(event.ModeNormal) || in.SessionMode == "" && c.Session == nil
	if normal && c.Session == nil && !c.HasScope(call.ScopeProjectWrite) {
		return fault.New(fault.InsufficientScope, "a normal Session needs the scope project:write").WithField("session_mode").
			WithNext("ask for session_mode read_only")
	}
	return nil
}

func startWork(ctx context.Context, c *call.Call, id event.SessionID, in WorkIn, defaults *event.ExecutionContext) error {
	s := Start{Actor: c.Principal.Actor, Nonce: event.NewNonce(), Project: c.Project.Ref, Root: c.Target.Root,
		Instruction: in.Instruction, Mode: event.Mode(in.SessionMode), Transport: c.Transport}
	if defaults != nil {
		s.Context = *defaults
	}
	_, err := c.Decide(ctx, event.SessionAggregate(id), func(time.Time) ([]event.Event, error) { return DecideStart(s) })
	return err
}

func resumeWork(ctx context.Context, c *call.Call, in WorkIn, defaults *event.ExecutionContext) error {
	id := c.Session.ID
	r := Resume{Instruction: in.Instruction, Mode: event.Mode(in.SessionMode), MayWrite: c.HasScope(call.ScopeProjectWrite),
		Context: defaults, Transport: c.Transport}
	_, err := c.Decide(ctx, event.SessionAggregate(id), func(time.Time) ([]event.Event, error) {
		core, _ := c.Sessions().Core(id)
		return DecideResume(core, r)
	})
	return err
}

// feedbackBefore tells of the attempt that the new instruction ends. The working tree plays
// no part in it: it is observed after the instruction is in the log.
func feedbackBefore(c *call.Call, id event.SessionID) session.Feedback {
	v, ok := c.Sessions().View(id)
	if !ok {
		return session.FreshFeedback()
	}
	return session.NewFeedback(v, session.Snapshot{Server: c.Server(), IncludeValidation: true}, session.FeedbackPathsStart)
}

func workOutput(core session.Core, how string, feedback session.Feedback, w wire.ObserveWorkspaceOut) WorkOut {
	out := WorkOut{SessionID: core.ID, Continuation: how, Session: HeadOf(core),
		Workspace: WorkspaceOut{Status: w.Status, ReasonCode: w.Reason, Branch: w.Branch, Head: w.Head, Detached: w.Detached,
			Conflicts: w.Conflicts, ChangedFiles: w.ChangedFiles},
		Instructions: InstructionsOut{Status: "unavailable", Sources: []wire.InstructionSource{}},
		Navigation:   SemanticNavigation{Status: "not_observed"},
		Feedback:     feedback, Project: projectName(core.Project),
	}
	if w.Instructions != nil {
		out.Instructions.Status = w.Instructions.Status
		if w.Instructions.Sources != nil {
			out.Instructions.Sources = w.Instructions.Sources
		}
	}
	out.Next = nextActions(core, how)
	return out
}

// nextActions carry the session_id, so that a model passes it on by itself.
func nextActions(core session.Core, how string) []session.Action {
	args := func(extra ...any) map[string]any {
		m := map[string]any{"session_id": core.ID}
		if !core.Project.Zero() {
			m["project"] = core.Project.String()
		}
		for i := 0; i+1 < len(extra); i += 2 {
			m[extra[i].(string)] = extra[i+1]
		}
		return m
	}
	var next []session.Action
	if how == Resumed {
		next = append(next, session.Action{Tool: "read_session_handoff", Arguments: map[string]any{"session_id": core.ID},
			Why: "see where the last window stopped before changing anything"})
	}
	if core.Project.Zero() {
		return next
	}
	if how == Created {
		next = append(next, session.Action{Tool: "read_project_overview", Arguments: args(), Why: "see the layout; pass this session_id on every call to keep the evidence"})
	}
	return append(next, session.Action{Tool: "get_git_status", Arguments: args(), Why: "see what is changed now"})
}
