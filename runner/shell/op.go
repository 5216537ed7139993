package shell

import (
	"context"

	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Register lets a Runner keep persistent shells.
func Register(r *runner.Runner, s *Shells) {
	s.notes.guard = r.Guard()
	runner.Effect(r, wire.OpShellOpen, opOf(s.openLocal))
	if s.o.Remote != nil {
		runner.Effect(r, wire.OpShellOpenSSH, opOf(s.openRemote))
	}
	runner.Effect(r, wire.OpShellExecute, opOf(s.execute))
	runner.Effect(r, wire.OpShellClose, opOf(s.close))
	runner.Read(r, wire.OpShellStatus, opOf(s.status))
	runner.Read(r, wire.OpShellRelease, opOf(s.release))
	r.OnProjectRemoved(s.ReleaseProject)
	r.OnGone(func(stopping bool) {
		if stopping {
			s.Close()
		} else {
			s.Disconnected()
		}
	})
}

// opOf makes a handler of a method: a nil fault is no error.
func opOf[In, Out any](do func(context.Context, *runner.Project, In) (Out, *fault.Error)) func(context.Context, *runner.Project, In) (Out, error) {
	return func(ctx context.Context, p *runner.Project, in In) (Out, error) {
		out, f := do(ctx, p, in)
		if f != nil {
			return out, f
		}
		return out, nil
	}
}

// status tells how a shell stands. An ended one tells that, whatever has changed since.
func (s *Shells) status(_ context.Context, p *runner.Project, at wire.ShellAt) (wire.ShellView, *fault.Error) {
	r, f := s.find(p.ID, at)
	if f != nil {
		return wire.ShellView{}, f
	}
	v := r.view()
	if v.State != wire.ShellRunning {
		return v, nil
	}
	if f := s.stands(r, p); f != nil {
		return v, f.With("shell_state", v.State)
	}
	return v, nil
}

// close ends a shell, whatever has changed since it was opened (SHL-17). Ending it twice is no
// error (SHL-18).
func (s *Shells) close(_ context.Context, p *runner.Project, at wire.ShellAt) (wire.ShellCloseOut, *fault.Error) {
	r, f := s.find(p.ID, at)
	if f != nil {
		return wire.ShellCloseOut{}, f
	}
	r.mu.Lock()
	already := r.ending
	r.mu.Unlock()
	r.end(wire.ShellClosed, wire.ShellByCaller)
	return wire.ShellCloseOut{Shell: r.view(), AlreadyClosed: already}, nil
}

func (s *Shells) release(_ context.Context, _ *runner.Project, in wire.ShellReleaseIn) (wire.ShellReleaseOut, *fault.Error) {
	if !in.Session.Valid() {
		return wire.ShellReleaseOut{}, fault.New(fault.RunnerRefused, "a release names a Session").WithReason("malformed")
	}
	return wire.ShellReleaseOut{Ended: s.Release(in.Session)}, nil
}
