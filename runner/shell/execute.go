package shell

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// execute gives a shell one command. ctx's deadline is the command's limit (SHL-25).
func (s *Shells) execute(ctx context.Context, p *runner.Project, in wire.ShellExecuteIn) (wire.ShellExecuteOut, *fault.Error) {
	var out wire.ShellExecuteOut
	if f := checkCommand(in.Command); f != nil {
		return out, f
	}
	r, f := s.find(p.ID, in.ShellAt)
	if f == nil {
		f = r.gone()
	}
	if f == nil {
		f = s.stands(r, p)
	}
	if f != nil {
		return out, f
	}
	e, f := r.begin()
	if f != nil {
		return out, f
	}
	began := time.Now()
	stdout, stderr := proc.NewTail(wire.MaxShellOutputBytes), proc.NewTail(wire.MaxShellOutputBytes)
	end := e.Execute(ctx, in.Command, stdout, stderr)
	out.DurationMS = time.Since(began).Milliseconds()
	out.Stdout, out.Stderr = shown(stdout, in.Chars), shown(stderr, in.Chars)
	if end.InStep {
		r.rest()
		if !end.Started {
			return out, spawnFault(errors.New("no pipe"))
		}
	} else {
		r.outOfStep(e, &out, end)
		if !end.Started {
			return out, r.gone()
		}
	}
	if end.Late {
		out.TimedOut = errors.Is(ctx.Err(), context.DeadlineExceeded)
		out.Cancelled = !out.TimedOut
	} else if end.Status != nil {
		out.Completed, out.ExitCode = true, end.Status
	}
	out.Shell = r.view()
	return out, nil
}

// outOfStep ends a shell of which nobody knows where it stands, or that is gone: no further
// command goes to it (SHL-26, SHL-31).
func (r *record) outOfStep(e Engine, out *wire.ShellExecuteOut, end Ended) {
	state, reason := wire.ShellPoisoned, wire.ShellByDamage
	switch {
	case end.Late && !gone(e):
		reason = wire.ShellByTimeout
	case gone(e):
		state, reason = ofExit(e.Exit())
	}
	r.end(state, reason)
	v := r.view()
	out.Exited = v.State == wire.ShellExited
	out.Reset = !out.Exited
	if out.Exited {
		out.Completed, out.ExitCode = v.ExitCode != nil && !end.Late, v.ExitCode
	}
}

func checkCommand(command string) *fault.Error {
	bad := func(reason, text string) *fault.Error {
		return notStarted(fault.New(fault.RunnerRefused, "%s", text).WithReason(reason).WithField("command"))
	}
	switch {
	case command == "":
		return bad("malformed", "there is no command")
	case len(command) > wire.MaxShellCommandBytes || QuotedBytes(command) > wire.MaxCommandWire:
		return bad("too_large", "the command is too large for a shell")
	case strings.ContainsRune(command, 0):
		return bad("nul", "a command has no NUL byte")
	}
	return nil
}

// shown is the end of a stream, at most so many characters, and no more than can travel.
func shown(t *proc.Tail, chars int) wire.Stream {
	text, dropped := t.Text(chars)
	for {
		encoded, _ := json.Marshal(text)
		over := len(encoded) - wire.MaxShellEncodedBytes
		if over <= 0 || text == "" {
			break
		}
		// A character takes at most six bytes more than it has.
		cut := min(max(over/6, 1), len(text))
		for cut < len(text) && !utf8.RuneStart(text[cut]) {
			cut++
		}
		text, dropped = text[cut:], dropped+int64(cut)
	}
	return wire.Stream{Text: text, Bytes: t.Total(), DroppedBytes: dropped, Truncated: dropped > 0}
}

// stands checks again what the shell was opened under (SHL-16). That the Project is still served,
// and is still the same directory, was checked on the way here.
func (s *Shells) stands(r *record, p *runner.Project) *fault.Error {
	now, f := s.look()
	if f != nil {
		return f
	}
	if r.resource != "" {
		generation, f := s.o.Remote.Generation(r.resource)
		if f != nil || generation != r.generation {
			return stale("the resource's settings have changed since this persistent shell was opened", "resource_changed")
		}
		return nil
	}
	if of := now.profileOf(string(p.ID)); of.name != r.profile || of.generation() != r.generation {
		return stale("the Runner's profile has changed since this persistent shell was opened", "profile_changed")
	}
	dir, f := runner.OpenCwd(p, r.cwd)
	switch {
	case f == nil:
		_ = dir.Close()
	case f.Reason == "not_found": // what is not there leads nowhere
	default:
		f = fault.Wrap(f, fault.ShellCwdDenied, "the directory that this persistent shell was opened in may not be used any more").WithReason(f.Reason).
			WithNext("close the shell with close_session_shell")
		return notStarted(f)
	}
	return nil
}

func stale(text, reason string) *fault.Error {
	return notStarted(fault.New(fault.ShellStale, "%s", text).WithReason(reason).
		WithNext("close the shell with close_session_shell and open another"))
}
