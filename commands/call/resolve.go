package call

import (
	"context"
	"encoding/json"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/access"
	"webcodex/projections/session"
)

// resolve puts canonical ids in place of refs, before anything is authorised: afterwards a
// ref is its id, in every check and in all that may be stored (SES-09, SES-14). A ref is no
// credential: it only says which Session or Project its own principal means (SES-10).
func (c *Call) resolve(ctx context.Context, n *named) error {
	changed := map[string]string{}
	if strings.HasPrefix(n.SessionID, refMark) {
		id, err := c.sessionOf(ctx, n.SessionID)
		if err != nil {
			return err
		}
		n.SessionID = string(id)
		changed["session_id"] = n.SessionID
	}
	if strings.HasPrefix(n.Project, refMark) {
		p, err := c.projectOf(ctx, n.Project)
		if err != nil {
			return err
		}
		n.Project = p.Project
		changed["project"] = n.Project
	}
	if len(changed) == 0 {
		return nil
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal(c.Args, &args); err != nil {
		return fault.Wrap(err, fault.InvalidArguments, "the arguments are not a JSON object")
	}
	for name, id := range changed {
		args[name] = json.RawMessage(`"` + id + `"`)
	}
	out, err := marshal(args)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "the arguments could not be read")
	}
	c.Args = out
	return nil
}

// refMark begins every ref and no canonical id.
const refMark = "~"

// sessionOf resolves a session_ref of the caller. Whatever keeps it from naming a Session,
// the answer is the same one (SES-13), but for the caller's own Session that was removed.
func (c *Call) sessionOf(ctx context.Context, ref string) (event.SessionID, error) {
	t, ok, err := c.target(ctx, event.RefSession, ref)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", unknownSessionRef()
	}
	core, err := c.kernel.cfg.Sessions.LoadCore(t.Session)
	switch kind := fault.KindOf(err); {
	case err == nil && event.Incarnation(core.ID, core.Nonce) == t.Pin:
		return t.Session, nil
	case err == nil: // another incarnation: none that was pinned
	case kind != fault.UnknownSessionID: // it is there and cannot be read
		return "", err
	case c.expired(t.Session, t.Pin):
		return "", sessionExpired(t.Session)
	}
	return "", unknownSessionRef()
}

// projectOf resolves a project_ref of the caller: the Project is still served with the root
// that was pinned (SES-19).
func (c *Call) projectOf(ctx context.Context, ref string) (ProjectInfo, error) {
	t, ok, err := c.target(ctx, event.RefProject, ref)
	if err != nil {
		return ProjectInfo{}, err
	}
	if p, served := c.projectInfo(t.Project); ok && served && p.Root == t.Pin {
		return p, nil
	}
	return ProjectInfo{}, fault.New(fault.UnknownProjectRef, "this project_ref names nothing").WithField("project").
		WithNext("call list_projects")
}

// target is what the caller's own number of the kind pins (SES-07).
func (c *Call) target(ctx context.Context, kind event.RefKind, ref string) (access.Target, bool, error) {
	n, ok := kind.ParseRef(ref)
	if !ok || c.kernel.cfg.Refs == nil {
		return access.Target{}, false, nil
	}
	t, ok, err := c.kernel.cfg.Refs.Resolve(ctx, c.Principal.Actor.Principal, kind, n)
	if err != nil {
		return access.Target{}, false, fault.Wrap(err, fault.Internal, "the refs could not be read")
	}
	return t, ok, nil
}

// known gives a retained Session, or says what the caller may know of one that is not there:
// its owner that it was removed, while its tombstone lasts (SES-37); everybody else, about a
// foreign tombstone and about an id that never was, exactly the same after exactly the same
// look-ups (SES-38, SES-39, SES-54).
func (c *Call) known(id event.SessionID) (session.Core, error) {
	core, err := c.kernel.cfg.Sessions.LoadCore(id)
	expired := c.expired(id, "")
	switch kind := fault.KindOf(err); {
	case err == nil: // it counts, whatever tombstone there is (RES-06)
		return core, nil
	case kind != fault.UnknownSessionID: // it is there and cannot be read
		return session.Core{}, err
	case expired:
		return session.Core{}, sessionExpired(id)
	}
	return session.Core{}, fault.New(fault.UnknownSessionID, "no such Session is known here").WithField("session_id").
		WithNext("call list_sessions with the project")
}

// expired reports whether the caller is the principal that owned the removed Session; with a
// pin, of this incarnation. Another principal of the same authority group is not (AUTH-15).
func (c *Call) expired(id event.SessionID, pin string) bool {
	if c.kernel.cfg.Tombstones == nil {
		return false
	}
	t, ok := c.kernel.cfg.Tombstones.Find(id)
	return ok && t.Principal == c.Principal.Actor.Principal && (pin == "" || t.Incarnation == pin)
}

func unknownSessionRef() *fault.Error {
	return fault.New(fault.UnknownSessionRef, "this session_ref names nothing").WithField("session_id").
		WithNext("use the canonical session_id (wc_sess_…) or call list_sessions")
}

func sessionExpired(id event.SessionID) *fault.Error {
	return fault.New(fault.SessionExpired, "this Session was closed and has been removed: closed history is bounded").
		WithField("session_id").With("session_id", id).WithNext("call work_on_project with the project to start a new Session")
}

// Authorised resolves a Session selector and checks the caller's authority over it, for
// tools whose arguments name a further Session.
func (c *Call) Authorised(ctx context.Context, selector string) (session.Core, error) {
	if !strings.HasPrefix(selector, refMark) {
		return c.authorise(event.SessionID(selector))
	}
	id, err := c.sessionOf(ctx, selector)
	if err != nil {
		return session.Core{}, err
	}
	return c.authorise(id)
}

// Current is the Session as it is now, for a decision on it. Errors: as for a selector that
// names it, where it was removed since the call was admitted.
func (c *Call) Current(id event.SessionID) (session.Core, error) {
	if _, err := c.kernel.cfg.Sessions.Target(id); err != nil && fault.KindOf(err) != fault.UnknownSessionID {
		return session.Core{}, err
	}
	return c.known(id)
}

// Refs gives the refs as folded; nil where this server keeps none.
func (c *Call) Refs() *access.Refs { return c.kernel.cfg.Refs }

// Closed tells that a Session was closed: what lives for it has to end, and history may have to
// shrink.
func (c *Call) Closed(ctx context.Context, core session.Core) {
	if c.kernel.cfg.OnClosing != nil {
		c.kernel.cfg.OnClosing(ctx, core)
	}
	c.kernel.atRest(ctx, core.ID)
}

// atRest tells of a Closed Session that may be removed now, if it is one.
func (k *Kernel) atRest(ctx context.Context, id event.SessionID) {
	if k.cfg.OnClosed == nil {
		return
	}
	if core, ok := k.cfg.Sessions.Core(id); ok && core.Lifecycle == session.Closed && len(core.Open)+len(core.Jobs) == 0 {
		k.cfg.OnClosed(ctx, core)
	}
}

// NumberedRef is the session_ref that the caller has of a Session already; empty: none. None is
// assigned by it.
func (c *Call) NumberedRef(ctx context.Context, core session.Core) string {
	if c.Refs() == nil {
		return ""
	}
	n, err := c.Refs().Find(ctx, c.Principal.Actor.Principal, event.RefSession, access.SessionTarget(core.ID, core.Nonce))
	if err != nil || n == 0 {
		return ""
	}
	return event.RefSession.Ref(n)
}
