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

// WorkIn is the input of work_on_project: exactly one of project, session_id and client_id with
// path selects; an equal project beside session_id is fine.
type WorkIn struct {
	Instruction string `json:"instruction"`
	Project     string `json:"project,omitempty"`
	SessionID   string `json:"session_id,omitempty"`
	// ClientID and Path name a directory on a Runner's machine: the Project there, or the one that
	// is registered for it.
	ClientID    event.ClientID `json:"client_id,omitempty"`
	Path        string         `json:"path,omitempty"`
	Mode        string         `json:"mode,omitempty"`
	BaseRef     string         `json:"base_ref,omitempty"` // what a worktree is made of; empty: HEAD
	SessionMode string         `json:"session_mode,omitempty"`
	Context     *ContextIn     `json:"execution_context,omitempty"`
	// Profile is the form of guidance for this request; nothing keeps it (PRO-05).
	Profile string `json:"guidance_profile,omitempty"`
	// Detail is how much the answer shows of the attempt before; absent: standard (CON-16).
	Detail string `json:"detail,omitempty"`
}

// Details of a start.
const (
	DetailMinimal  = "minimal"
	DetailStandard = "standard"
)

// detailPaths are the paths that each detail shows of what was changed and explored (CON-16).
var detailPaths = map[string]int{"": session.FeedbackPathsStart, DetailStandard: session.FeedbackPathsStart, DetailMinimal: session.FeedbackPathsMinimal}

// WorkOut is its output (shapes.md 4).
type WorkOut struct {
	SessionID    event.SessionID    `json:"session_id"`
	SessionRef   string             `json:"session_ref,omitempty"`
	Project      string             `json:"project,omitempty"`
	ProjectRef   string             `json:"project_ref,omitempty"`
	Continuation string             `json:"continuation"`
	Session      Head               `json:"session"`
	Workspace    WorkspaceOut       `json:"workspace"`
	Worktree     *WorktreeOut       `json:"worktree,omitempty"`
	Instructions InstructionsOut    `json:"instructions"`
	Navigation   SemanticNavigation `json:"semantic_navigation"`
	Feedback     session.Feedback   `json:"continuation_feedback"`
	Next         []session.Action   `json:"next_actions"`
	Profile      string             `json:"guidance_profile"`
}

// WorkspaceOut is what was seen of the working tree.
type WorkspaceOut struct {
	Status     string `json:"status"`
	ReasonCode string `json:"reason_code,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Head       string `json:"head,omitempty"`
	Detached   bool   `json:"detached"`
	// Conflicts are as many conflicted paths as an answer holds; ConflictCount is exact.
	Conflicts     []string `json:"conflicts"`
	ConflictCount int      `json:"conflict_count"`
	ChangedFiles  int      `json:"changed_files"`
}

// Statuses of SemanticNavigation.
const (
	NavigationAvailable   = "available"
	NavigationUnavailable = "unavailable"
	NavigationNotObserved = "not_observed" // it had not answered by the time all else had
)

// SemanticNavigation says whether a language server was seen; it is never waited for. Available
// is null where it was not observed.
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
	defaults, err := in.Context.Event(in.onProject(c))
	if err != nil {
		return call.Result{}, err
	}
	profile, err := c.Guidance(in.Profile)
	if err != nil {
		return call.Result{}, err
	}
	if err := in.place(ctx, c); err != nil {
		return call.Result{}, err
	}
	w := WorkOut{SessionID: event.NewSessionID(), Continuation: Created, Feedback: session.FreshFeedback(), Profile: profile}
	facts, err := begin(ctx, c, in, defaults, &w)
	if err != nil {
		return call.Result{Facts: facts}, err
	}
	core, err := c.Current(w.SessionID)
	if err != nil {
		return call.Result{}, err
	}
	c.Worked(core)
	w.SessionRef, w.ProjectRef = sessionRefs(ctx, c, core)[0], projectRef(ctx, c)
	w.Session, w.Project, w.Next = HeadOf(core), projectName(core.Project), nextActions(core, w.Continuation)
	return call.Result{Output: w, Facts: facts}, nil
}

// begin makes or continues the Session, in a worktree where that was asked for. The facts are of
// what was made for it.
func begin(ctx context.Context, c *call.Call, in WorkIn, defaults *event.ExecutionContext, w *WorkOut) (facts call.Facts, err error) {
	if c.Session != nil {
		w.SessionID, w.Continuation, w.Feedback = c.Session.ID, Resumed, feedbackBefore(c, c.Session.ID, detailPaths[in.Detail])
		if in.Mode == ModeWorktree {
			if w.Worktree, err = resumeWorktree(ctx, c, in); err != nil {
				return facts, err
			}
		}
		return facts, resumeWork(ctx, c, in, defaults, w)
	}
	if in.Mode == ModeWorktree {
		if w.Worktree, facts, err = startWorktree(ctx, c, in, in.Path != ""); err != nil {
			return facts, err
		}
	}
	if err = startWork(ctx, c, in, defaults, w); err != nil && w.Worktree != nil && w.Worktree.Source != "" {
		err = halfway(err, c.Project.Project)
	}
	return facts, err
}

// checkWork refuses before anything is written.
func checkWork(c *call.Call, in WorkIn) error {
	if err := CheckInstruction(in.Instruction); err != nil {
		return err
	}
	if detailPaths[in.Detail] == 0 {
		return fault.New(fault.InvalidArguments, "detail is minimal or standard").WithField("detail")
	}
	if err := in.checkPlace(c); err != nil {
		return err
	}
	if !in.onProject(c) && (c.Session == nil || in.Mode == ModeWorktree) {
		return fault.New(fault.InvalidArguments, "name a project to start, or a session_id to continue").WithField("project").
			WithNext("call list_projects")
	}
	if err := checkWorktree(c, in); err != nil {
		return err
	}
	if in.onProject(c) && !c.HasScope(call.ScopeProjectRead) {
		return fault.New(fault.InsufficientScope, "this credential lacks the scope project:read")
	}
	if c.Project != nil && c.Target == nil {
		_, err := c.Fleet().Target(c.Project.Ref)
		return err
	}
	normal := in.SessionMode == string(event.ModeNormal) || in.SessionMode == "" && c.Session == nil
	if normal && c.Session == nil && !c.HasScope(call.ScopeProjectWrite) {
		return fault.New(fault.InsufficientScope, "a normal Session needs the scope project:write").WithField("session_mode").
			WithNext("ask for session_mode read_only")
	}
	return nil
}

// startWork makes the Session. What is seen of the Project comes first, so that all of the
// start is one commit (STA-10).
func startWork(ctx context.Context, c *call.Call, in WorkIn, defaults *event.ExecutionContext, w *WorkOut) error {
	s := Start{Actor: c.Principal.Actor, Nonce: event.NewNonce(), Project: c.Project.Ref, Root: c.Target.Root,
		Instruction: in.Instruction, Mode: event.Mode(in.SessionMode), Transport: c.Transport}
	if defaults != nil {
		s.Context = *defaults
	}
	seen := w.observe(ctx, c)
	w.Instructions, s.Files = Compare(nil, seen)
	return create(ctx, c, w.SessionID, s)
}

// resumeWork goes on with the Session. What would be refused is refused before the Runner is
// asked, and decided again on the Session as it is then.
func resumeWork(ctx context.Context, c *call.Call, in WorkIn, defaults *event.ExecutionContext, w *WorkOut) error {
	r := Resume{Instruction: in.Instruction, Mode: event.Mode(in.SessionMode), MayWrite: c.HasScope(call.ScopeProjectWrite),
		Context: defaults, Transport: c.Transport}
	if _, err := DecideResume(*c.Session, r); err != nil {
		return err
	}
	seen := w.observe(ctx, c)
	_, err := c.Decide(ctx, event.SessionAggregate(w.SessionID), func(time.Time) ([]event.Event, error) {
		core, err := c.Current(w.SessionID)
		if err != nil {
			return nil, err
		}
		w.Instructions, r.Files = Compare(core.Instructions, seen)
		return DecideResume(core, r)
	})
	return err
}

// observe fills in what the Runner sees, and gives what it sees of instruction files.
func (w *WorkOut) observe(ctx context.Context, c *call.Call) *wire.InstructionSources {
	b := observeStart(ctx, c)
	w.Workspace = WorkspaceOut{Status: b.workspace.Status, ReasonCode: b.workspace.Reason, Branch: b.workspace.Branch,
		Head: b.workspace.Head, Detached: b.workspace.Detached, Conflicts: b.workspace.Conflicts,
		ConflictCount: b.workspace.ConflictCount, ChangedFiles: b.workspace.ChangedFiles}
	w.Navigation = b.navigation
	c.Looked(b.workspace.Instructions)
	return b.workspace.Instructions
}

// feedbackBefore tells of the attempt that the new instruction ends, with so many paths. The
// working tree plays no part in it: it is shown beside it.
func feedbackBefore(c *call.Call, id event.SessionID, paths int) session.Feedback {
	v, ok := c.Sessions().View(id)
	if !ok {
		return session.FreshFeedback()
	}
	v.Stopping, v.Reconciled = c.Stopping(), c.Reconciled()
	return session.NewFeedback(v, session.Snapshot{Server: c.Server(), IncludeValidation: true}, paths)
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
