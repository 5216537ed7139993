package call

import (
	"context"
	"encoding/json"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// named is what any tool's arguments may say about its targets.
type named struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id"`
}

// allow checks what is known of the caller without looking at anything else: scopes, and an
// identity that can have authority.
func (c *Call) allow() error {
	spec := c.req.Spec
	if len(spec.Scopes) == 0 && !c.Principal.Owner {
		return fault.New(fault.InsufficientScope, "this tool is open to the owner alone") // AUTH-10
	}
	for _, s := range spec.Scopes {
		if !c.Principal.Scopes[s] {
			return fault.New(fault.InsufficientScope, "this credential lacks the scope %s", s)
		}
	}
	if !event.ValidFingerprint(c.Principal.Actor.Authority) {
		return fault.New(fault.AuthorityUnavailable, "the caller has no canonical identity")
	}
	if !event.ValidFingerprint(c.Principal.Actor.Principal) {
		return fault.New(fault.OwnerUnavailable, "the caller has no identity of its own: it can own nothing")
	}
	return nil
}

// admit checks, in this order, scopes, the recorder's authority, refs, Project, Session
// authority, Project equality, lifecycle and the Runner. A refusal writes nothing (ruling 2).
// Nothing is ever inferred from who calls or what was called before (AUTH-09).
func (c *Call) admit(ctx context.Context) error {
	if err := c.allow(); err != nil {
		return err
	}
	if err := c.nameRecorder(ctx); err != nil {
		return err
	}
	spec := c.req.Spec
	var n named
	if spec.Plane != PlaneRuntime && len(c.Args) > 0 {
		if err := json.Unmarshal(c.Args, &n); err != nil {
			return fault.Wrap(err, fault.InvalidArguments, "the arguments are not a JSON object")
		}
	}
	if err := c.resolve(ctx, &n); err != nil {
		return err
	}
	if err := c.nameProject(n.Project); err != nil {
		return err
	}
	c.named = c.Project != nil
	if n.SessionID != "" {
		core, err := c.authorise(event.SessionID(n.SessionID))
		if err != nil {
			return err
		}
		c.Session = &core
		if err := c.matchProject(); err != nil {
			return err
		}
		if core.Lifecycle == session.Closed && spec.Class != Observe && !spec.ClosedOK {
			return fault.New(fault.SessionClosed, "this Session is closed; it answers reads and takes no more work").
				WithNext("call work_on_project with the project to start a new Session")
		}
	}
	if err := c.matchRecorder(); err != nil {
		return err
	}
	c.trace()
	return c.findRunner()
}

func (c *Call) nameProject(name string) error {
	if name == "" {
		return nil
	}
	ref, ok := event.ParseProject(name)
	if !ok {
		return unknownProject()
	}
	info, ok := c.projectInfo(ref)
	if !ok {
		return unknownProject()
	}
	c.Project = &info
	return nil
}

func unknownProject() error {
	return fault.New(fault.UnknownProject, "no such Project is registered here").WithField("project").WithNext("call list_projects")
}

func (c *Call) projectInfo(ref event.ProjectRef) (ProjectInfo, bool) {
	for _, p := range c.Projects() {
		if p.Ref == ref {
			return p, true
		}
	}
	return ProjectInfo{}, false
}

// authorise checks the caller's authority over a Session. The answer about one that is not
// there is in known.
func (c *Call) authorise(id event.SessionID) (session.Core, error) {
	core, err := c.known(id)
	if err != nil {
		return session.Core{}, err
	}
	// A stored fingerprint that is none matches nobody, whatever is presented (AUTH-06).
	if !event.ValidFingerprint(core.Authority) || core.Authority != c.Principal.Actor.Authority {
		return session.Core{}, fault.New(fault.SessionAuthorityDenied, "this Session belongs to another authority").WithField("session_id")
	}
	if !c.Principal.Sees(core.Project) {
		return session.Core{}, unknownProject() // authority over a Session is not access to its Project (AUTH-03)
	}
	return core, nil
}

// matchProject holds the Session's Project equal to the named one (AUTH-07); where none is
// named the Session's own is meant.
func (c *Call) matchProject() error {
	own := c.Session.Project
	switch {
	case c.Project != nil && own != c.Project.Ref:
		return fault.New(fault.SessionProjectMismatch, "this Session belongs to another Project").WithField("session_id").
			WithNext("use a Session of this Project, or the Project of the Session")
	case c.Project == nil && !own.Zero():
		info, ok := c.projectInfo(own)
		if !ok {
			return unknownProject()
		}
		c.Project = &info
	}
	return nil
}

func (c *Call) findRunner() error {
	if c.Project == nil {
		return nil
	}
	t, err := c.kernel.fleet.Target(c.Project.Ref)
	if err != nil {
		if c.req.Spec.Plane == PlaneProject {
			return err
		}
		return nil
	}
	c.Target = &t
	return nil
}

// guard enforces the Session's guards. A denial is evidence: start and finish in one commit
// (ruling 2).
func (c *Call) guard(ctx context.Context) error {
	if c.Session == nil || c.Session.Lifecycle != session.Active {
		return nil
	}
	denied := c.denial(c.Session.Guards)
	if denied == nil {
		return nil
	}
	if _, err := c.end(ctx, Result{}, denied); err != nil {
		return err
	}
	return denied
}

func guardDenied(guard, why string) *fault.Error {
	return fault.New(fault.SessionGuardDenied, "%s", why).WithReason(guard)
}

// denial is what the guards say about this tool, nil where they allow it.
func (c *Call) denial(g event.Guards) *fault.Error {
	var denied *fault.Error
	switch {
	case c.req.Spec.Class == Write && g.DenyWrite:
		denied = guardDenied("deny_write_tools", "this Session is read-only: it may not change files")
	case c.req.Spec.Class == Execute && g.DenyShell:
		denied = guardDenied("deny_shell_tools", "this Session is read-only: it may not run commands")
	default:
		return nil
	}
	denied.ExecutionState = string(event.NotStarted)
	return denied.WithNext("continue with work_on_project and session_mode normal if you may")
}
