package run

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// resourceOf is the named resource on which a Session's commands run, empty for the Runner's own
// machine.
func resourceOf(c *call.Call) string {
	if c.Session == nil {
		return ""
	}
	return c.Session.Context.Resource
}

// runRemote runs a shell command on the Session's resource. It is never run here instead, and
// its end proves nothing about the Project's files: it validates nothing.
func runRemote(ctx context.Context, c *call.Call, in ShellIn, remote wire.SSHShellIn) (call.Result, error) {
	if in.Interactive {
		return call.Result{}, noTerminal()
	}
	if err := checkRemote(c, remote); err != nil {
		return call.Result{}, err
	}
	timeoutSecs := timeoutOf(in.TimeoutSecs)
	o, err := c.Effect(ctx, wire.OpSSHShell, remote, call.EffectOptions{Timeout: time.Duration(timeoutSecs) * time.Second, Grace: graceOf(in.SyncWaitSecs), Key: in.Key})
	if err != nil {
		return call.Result{}, err
	}
	out, res := FromOutcome(c.Execution(), o, timeoutSecs)
	out.Replayed = o.First != ""
	out.Expect(c.Evidence(), res.Facts)
	if out.Promoted {
		out.SoFar(ctx, c)
	}
	res.Output = ShellOut{Output: out, Shell: remote.Shell, Executor: "ssh", Resource: &remote.Resource}
	return res, nil
}

// noTerminal refuses an interactive run on a named resource; it must not run here instead (NEG-18).
func noTerminal() error {
	f := fault.New(fault.Unavailable, "a run on a named resource has no terminal").WithField("interactive").
		WithReason("unsupported_resource").WithNext("leave interactive out, or use a Session without a resource")
	f.ExecutionState = string(event.NotStarted)
	return f
}

// checkRemote refuses what cannot be run on a resource, before anything is recorded as started.
func checkRemote(c *call.Call, remote wire.SSHShellIn) error {
	if err := checkNUL(wire.ProcessIn{Command: remote.Command, Cwd: remote.Cwd}); err != nil {
		return err
	}
	if len(remote.Cwd) > wire.MaxRemoteCwdBytes || strings.ContainsFunc(remote.Cwd, unicode.IsControl) {
		return fault.New(fault.InvalidArguments, "a directory on a resource has at most %d bytes and no control characters",
			wire.MaxRemoteCwdBytes).WithField("cwd")
	}
	if c.Target != nil && !serves(c, wire.OpSSHShell) {
		f := fault.New(fault.CapabilityUnavailable, "the Runner of this Project runs no commands on named resources").
			WithField("resource").WithNext("use a Session without a resource")
		f.ExecutionState = string(event.NotStarted)
		return f
	}
	return nil
}

// serves reports whether the Runner of the call's Project said that it can do the op.
func serves(c *call.Call, op wire.Op) bool {
	return slices.ContainsFunc(c.Fleet().Runners(), func(r call.RunnerInfo) bool {
		return r.Client == c.Target.Ref.Client && slices.Contains(r.Capabilities, string(op))
	})
}
