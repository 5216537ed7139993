package call

import "webcodex/internal/fault"

// MayExecute holds a call of a tool that reads to what a run of a command needs, the scope and the
// Session's guard, where the read may turn out to run what the Project brings. why says what for.
// Errors: insufficient_scope, session_guard_denied.
func (c *Call) MayExecute(why string) error {
	switch {
	case !c.HasScope(ScopeJobRun):
		return fault.New(fault.InsufficientScope, "%s, so this needs the scope %s", why, ScopeJobRun).WithReason(string(ScopeJobRun))
	case c.Session != nil && c.Session.Guards.DenyShell:
		return guardDenied("deny_shell_tools", "this Session is read-only, and "+why)
	}
	return nil
}
