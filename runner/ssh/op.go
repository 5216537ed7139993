package ssh

import (
	"context"
	"slices"
	"strings"
	"time"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Register lets a Runner run commands on its named resources.
func Register(r *runner.Runner, res *Resources) {
	runner.RegisterRemote(r, wire.OpSSHShell, checkShell, func(ctx context.Context, in wire.SSHShellIn, out runner.RemoteOutput) (runner.Remote, *fault.Error) {
		c, f := res.Open(ctx, in.Session, in.Resource)
		if f != nil {
			return nil, f
		}
		return &remote{Channel: c, cmd: Command{Command: in.Command, Shell: in.Shell, Cwd: in.Cwd, Stdout: out.Stdout, Stderr: out.Stderr,
			Notify: out.Notify, Started: out.Started}}, nil
	})
}

// remote is a Channel with what will run on it.
type remote struct {
	*Channel
	cmd Command
}

func (r *remote) Run(ctx context.Context, limit time.Duration) (wire.ProcessOutcome, *fault.Error) {
	return r.Channel.Run(ctx, r.cmd, limit)
}

// checkShell is the Runner's own word on an input, whatever the server has checked (EXE-19).
func checkShell(in wire.SSHShellIn) *fault.Error {
	bad := func(reason, text, field string) *fault.Error {
		return fault.New(fault.RunnerRefused, "%s", text).WithReason(reason).WithField(field)
	}
	switch {
	case !in.Session.Valid():
		return fault.New(fault.SSHSessionRequired, "a named resource is used under a Session alone").WithField("session_id")
	case in.Command == "" || !slices.Contains(wire.Shells, in.Shell):
		return bad("malformed", "a shell command needs a command and one of "+strings.Join(wire.Shells, ", "), "shell")
	case len(in.Command) > wire.MaxCommandWire || quotedSize(in.Command) > wire.MaxCommandWire:
		return bad("too_large", "the command is too large for a resource", "command")
	case strings.ContainsRune(in.Command, 0):
		return bad("nul", "an argument has no NUL byte", "command")
	case !ValidCwd(in.Cwd):
		return bad("malformed", "the directory is too long or holds a control character", "cwd")
	}
	return nil
}

func quotedSize(text string) int {
	var b strings.Builder
	quote(&b, text)
	return b.Len()
}
