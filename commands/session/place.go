package session

import (
	"context"

	"webcodex/commands/call"
	"webcodex/commands/project"
	"webcodex/internal/fault"
)

// MaxPath bounds the path of a directory to work on, in bytes.
const MaxPath = project.MaxPath

// onProject reports whether the work is on a Project: named, of the Session, or at a path.
func (in WorkIn) onProject(c *call.Call) bool { return c.Project != nil || in.Path != "" }

// checkPlace refuses a directory that is half named, or named beside something else.
func (in WorkIn) checkPlace(c *call.Call) error {
	bad := func(field, text string) *fault.Error {
		return fault.New(fault.InvalidArguments, "%s", text).WithField(field)
	}
	switch {
	case in.ClientID == "" && in.Path == "":
		return nil
	case in.ClientID == "":
		return bad("client_id", "a path is on the machine of a Runner: name its client_id too").WithNext("call list_runners")
	case in.Path == "":
		return bad("path", "client_id goes with the path of a directory there")
	case c.Project != nil || c.Session != nil:
		return bad("path", "name a project, a session_id, or a directory by client_id and path: one of them")
	}
	return nil
}

// place makes the Project at client_id and path the call's own. Where there is none yet it is
// registered, within the Runner's own policy.
func (in WorkIn) place(ctx context.Context, c *call.Call) error {
	if in.Path == "" {
		return nil
	}
	ref, err := project.Locate(ctx, c, in.ClientID, in.Path)
	if err != nil {
		return err
	}
	if err := c.Choose(ref); err != nil {
		return err
	}
	if c.Target == nil {
		_, err = c.Fleet().Target(ref)
	}
	return err
}
