package session_test

import (
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// The defaults are replaced as a whole, an equal set writes nothing, and every view tells the
// complete set.
//
// Covers: EVT-18, EVT-32
func TestUpdateSessionContext(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha, "session_mode": "read_only"}) // a change of the Session, not of files
	if s.Session.Context != (event.ExecutionContext{}) {
		t.Errorf("%+v", s.Session)
	}
	update := func(ctx args) session.UpdateContextOut {
		t.Helper()
		return calltest.Must[session.UpdateContextOut](e, &session.UpdateContext, args{"project": alpha, "session_id": s.SessionID, "execution_context": ctx})
	}
	one := update(args{"default_cwd": "cmd//tool/./", "default_shell": "bash"})
	want := event.ExecutionContext{DefaultCwd: "cmd/tool", DefaultShell: "bash"}
	if !one.Changed || one.Context != want || one.Previous != (event.ExecutionContext{}) || one.SessionID != s.SessionID || one.Project != alpha {
		t.Errorf("%+v", one)
	}
	before := e.Seq()
	if same := update(args{"default_cwd": "cmd/tool", "default_shell": "bash"}); same.Changed || same.Previous != want || same.Context != want ||
		same.UpdatedAt != one.UpdatedAt || e.Seq() != before {
		t.Errorf("%+v", same)
	}
	sum := calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": s.SessionID})
	if sum.Context != want || sum.Events[len(sum.Events)-1].Kind != view.KindContextUpdated {
		t.Errorf("%+v", sum)
	}
	if again := start(e, args{"session_id": string(s.SessionID), "instruction": "go on"}); again.Session.Context != want {
		t.Errorf("%+v", again.Session)
	}
	e.Reopen()
	if core, _ := e.Store.Core(s.SessionID); core.Context != want {
		t.Errorf("after a restart %+v", core.Context)
	}
	if cleared := update(args{}); !cleared.Changed || cleared.Context != (event.ExecutionContext{}) || cleared.Previous != want {
		t.Errorf("%+v", cleared)
	}
	if root := update(args{"default_cwd": "./"}); root.Context.DefaultCwd != "." {
		t.Errorf("%+v", root)
	}
	kinds := 0
	for _, ev := range e.Events(s.SessionID) {
		if _, ok := ev.(event.ContextUpdated); ok {
			kinds++
		}
	}
	if kinds != 3 {
		t.Errorf("%d events of change", kinds)
	}
}

// Every form that is no directory of the Project is refused and changes nothing.
//
// Covers: SES-24
func TestUpdateSessionContextRefuses(t *testing.T) {
	e := calltest.New(t, nil)
	s, closed := start(e, args{"project": alpha}), start(e, args{"project": alpha})
	loose := calltest.Must[session.StartOut](e, &session.StartSession, args{"title": "no project"})
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": closed.SessionID})
	ok := args{"default_cwd": "a"}
	for name, tc := range map[string]struct {
		p    call.Principal
		a    args
		kind fault.Kind
	}{
		"closed":              {calltest.Owner(), args{"project": alpha, "session_id": closed.SessionID, "execution_context": ok}, fault.SessionClosed},
		"no scope":            {calltest.Owner(call.ScopeProjectWrite), args{"project": alpha, "session_id": s.SessionID, "execution_context": ok}, fault.InsufficientScope},
		"another authority":   {calltest.Someone("b"), args{"project": alpha, "session_id": s.SessionID, "execution_context": ok}, fault.SessionAuthorityDenied},
		"another project":     {calltest.Owner(), args{"project": beta, "session_id": s.SessionID, "execution_context": ok}, fault.SessionProjectMismatch},
		"a Session with none": {calltest.Owner(), args{"project": alpha, "session_id": loose.SessionID, "execution_context": ok}, fault.SessionProjectMismatch},
		"no session":          {calltest.Owner(), args{"project": alpha, "execution_context": ok}, fault.InvalidArguments},
		"no project":          {calltest.Owner(), args{"session_id": s.SessionID, "execution_context": ok}, fault.InvalidArguments},
		"no context":          {calltest.Owner(), args{"project": alpha, "session_id": s.SessionID}, fault.InvalidArguments},
		"unknown":             {calltest.Owner(), args{"project": alpha, "session_id": string(event.NewSessionID()), "execution_context": ok}, fault.UnknownSessionID},
		"resource":            {calltest.Owner(), args{"project": alpha, "session_id": s.SessionID, "execution_context": args{"resource": "a..b"}}, fault.InvalidContext},
		"shell":               {calltest.Owner(), args{"project": alpha, "session_id": s.SessionID, "execution_context": args{"default_shell": "zsh"}}, fault.InvalidContext},
	} {
		t.Run(name, func(t *testing.T) { e.Refused(tc.p, &session.UpdateContext, tc.a, tc.kind) })
	}
	for _, cwd := range []string{"/etc", "../x", "a/../..", `\\host\x`, `C:\x`, "~/x", "file:///etc", "https://x", "a\x1b[0m", "a\nb", "a\x00",
		"token=abcdef0123456789abcdef0123456789/x"} {
		e.Refused(calltest.Owner(), &session.UpdateContext, args{"project": alpha, "session_id": s.SessionID,
			"execution_context": args{"default_cwd": cwd}}, fault.InvalidContext)
	}
	if core, _ := e.Store.Core(s.SessionID); core.Context != (event.ExecutionContext{}) {
		t.Errorf("%+v", core.Context)
	}
}
