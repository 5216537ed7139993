package shell

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// OpenIn is the input of open_session_shell.
type OpenIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id"`
	Cwd       string `json:"cwd,omitempty"`
	Shell     string `json:"shell,omitempty"`
}

// Open opens the one persistent shell of a Session, where the Session's commands run: on its named
// resource, or on the Runner's machine.
var Open = call.Spec{
	Name: "open_session_shell", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
	In: OpenIn{}, Evidence: openEvidence, Run: open,
}

func openEvidence(args json.RawMessage) event.Input {
	var in OpenIn
	_ = json.Unmarshal(args, &in)
	return event.Input{Shell: in.Shell, Cwd: in.Cwd}
}

func open(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[OpenIn](c)
	if err != nil {
		return call.Result{}, err
	}
	if err := needs(c, wire.OpShellOpen); err != nil {
		return call.Result{}, err
	}
	// What the call says, then what the Session says; the rest is the Runner's (SHL-07, SHL-09).
	defaults := c.Session.Context
	at := wire.ShellOpenIn{Session: c.Session.ID, Shell: in.Shell, Cwd: in.Cwd, Resource: defaults.Resource}
	if at.Shell == "" {
		at.Shell = defaults.DefaultShell
	}
	if at.Cwd == "" {
		at.Cwd = defaults.DefaultCwd
	}
	op := wire.OpShellOpen
	if at.Resource != "" {
		op = wire.OpShellOpenSSH
		err = needs(c, op)
	}
	if err == nil {
		err = checkCwd(at)
	}
	if err != nil {
		return call.Result{}, err
	}
	o, err := c.Effect(ctx, op, at, call.EffectOptions{Timeout: wire.ShellOpenTime, Facts: openFacts})
	if err != nil {
		return call.Result{}, err
	}
	v, err := read[wire.ShellView](o.Result)
	if err != nil {
		return call.Result{}, err
	}
	// A close of the Session that came meanwhile wins (SHL-20).
	if core, err := c.Sessions().Target(c.Session.ID); err != nil || core.Lifecycle != session.Active {
		release(ctx, c.Fleet(), *c.Target, c.Session.ID)
		f := fault.New(fault.ShellSessionInactive, "the Session was closed while its shell was opened; the shell was ended").
			WithNext("start another Session with work_on_project")
		f.CommandStarted, f.ExecutionState = true, string(event.Cancelled)
		return call.Result{}, f
	}
	return call.Result{Output: viewOf(c, v), Facts: openFacts(*o.Result)}, nil
}

// checkCwd refuses what the text of a directory tells.
func checkCwd(in wire.ShellOpenIn) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.InvalidArguments, format, args...).WithField("cwd")
	}
	switch {
	case strings.ContainsRune(in.Cwd, 0):
		return bad("cwd holds a NUL byte")
	case in.Resource == "" && len(in.Cwd) > wire.MaxCwdBytes:
		return bad("a directory of the Project has at most %d bytes", wire.MaxCwdBytes)
	case in.Resource == "":
		return wire.ProcessIn{Cwd: in.Cwd}.CheckCwd()
	case len(in.Cwd) > wire.MaxRemoteCwdBytes || strings.ContainsFunc(in.Cwd, unicode.IsControl):
		return bad("a directory on a resource has at most %d bytes and no control characters", wire.MaxRemoteCwdBytes)
	}
	return nil
}

func openFacts(r wire.Result) call.Facts {
	f := call.FactsOf(r)
	if v, err := read[wire.ShellView](&r); err == nil {
		f.Shell, f.Effect.CommandStarted = factsOf(actionOpen, v), true
	}
	return f
}
