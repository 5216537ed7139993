package shell

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// openLocal opens a shell on this machine.
func (s *Shells) openLocal(ctx context.Context, p *runner.Project, in wire.ShellOpenIn) (wire.ShellView, *fault.Error) {
	now, f := s.look()
	if f != nil {
		return wire.ShellView{}, f
	}
	if f := checkOpen(in); f != nil {
		return wire.ShellView{}, f
	}
	of := now.profileOf(string(p.ID))
	dialect, program, ok := dialectOf(s.o.system, in.Shell, of)
	if !ok {
		return wire.ShellView{}, unsupported(in.Shell != "")
	}
	dir, f := runner.OpenCwd(p, in.Cwd)
	if f != nil {
		return wire.ShellView{}, notStarted(f)
	}
	defer func() { _ = dir.Close() }()
	r := s.record(p, in)
	r.dialect, r.profile, r.generation = dialect, of.name, of.generation()
	if r.cwd = in.Cwd; r.cwd == "" {
		r.cwd = "."
	}
	env := of.environment(environ(), filepath.Join(p.Path, filepath.FromSlash(in.Cwd)))
	if !proc.Runnable(program, env) && program == dialect {
		return wire.ShellView{}, spawnFault(&proc.SpawnError{Reason: proc.NotFound})
	}
	return s.open(ctx, r, of.Init, func(ctx context.Context) (Engine, *fault.Error) {
		pipes, err := s.place()
		if err == nil {
			err = s.notes.add(r.id, proc.Identity{})
		}
		if err != nil {
			return nil, spawnFault(err)
		}
		e, err := startLocal(ctx, launch{mark: string(r.id), program: program, dir: dir, env: env, pipes: pipes,
			patient: s.o.patient, started: func(leader proc.Identity) { _ = s.notes.add(r.id, leader) }})
		if err != nil {
			return nil, spawnFault(err)
		}
		return e, nil
	})
}

// openRemote opens one on a named resource. Nothing falls back on this machine (SHL-05).
func (s *Shells) openRemote(ctx context.Context, p *runner.Project, in wire.ShellOpenIn) (wire.ShellView, *fault.Error) {
	if _, f := s.look(); f != nil {
		return wire.ShellView{}, f
	}
	if f := checkOpen(in); f != nil {
		return wire.ShellView{}, f
	}
	r := s.record(p, in)
	if r.dialect = in.Shell; r.dialect == "" {
		r.dialect = wire.Shells[0]
	}
	r.resource = in.Resource
	return s.open(ctx, r, "", func(ctx context.Context) (Engine, *fault.Error) {
		e, cwd, generation, f := s.o.Remote.OpenShell(ctx, RemoteIn{Session: in.Session, Resource: in.Resource, Dialect: r.dialect, Cwd: in.Cwd})
		if f != nil {
			return nil, f
		}
		r.cwd, r.generation = cwd, generation
		return e, nil
	})
}

// checkOpen is the Runner's own word on an input, whatever the server has checked.
func checkOpen(in wire.ShellOpenIn) *fault.Error {
	bad := func(text, field string) *fault.Error {
		return notStarted(fault.New(fault.RunnerRefused, "%s", text).WithReason("malformed").WithField(field))
	}
	switch {
	case !in.Session.Valid():
		return bad("a persistent shell is of a Session", "session_id")
	case in.Shell != "" && !slices.Contains(wire.Shells, in.Shell):
		return bad("a shell is one of "+strings.Join(wire.Shells, ", "), "shell")
	case strings.ContainsRune(in.Cwd, 0) || len(in.Cwd) > wire.MaxRemoteCwdBytes:
		return bad("the directory is too long or holds a NUL", "cwd")
	}
	return nil
}

func unsupported(asked bool) *fault.Error {
	f := fault.New(fault.ShellDialectUnsupported, "the Runner's configuration has no shell of this kind for the Project").
		WithNext("the operator looks at the profiles in shells.toml")
	if asked {
		f = f.WithField("shell").WithNext("leave shell away, or name the one of the Runner's profile")
	}
	f.Recovery = fault.FixArguments
	return notStarted(f)
}

func (s *Shells) record(p *runner.Project, in wire.ShellOpenIn) *record {
	now := s.o.Now()
	return &record{s: s, id: event.NewShellID(), session: in.Session, project: p.ID, state: wire.ShellOpening, created: now, used: now,
		abort: func() {}, done: make(chan struct{})}
}

// open takes a place, starts the shell in it and sets it up. A shell that somebody ended meanwhile
// never was one.
func (s *Shells) open(ctx context.Context, r *record, script string, start func(context.Context) (Engine, *fault.Error)) (wire.ShellView, *fault.Error) {
	opening, abort := context.WithCancel(ctx)
	r.abort = abort
	defer abort()
	if f := s.admit(r); f != nil {
		return wire.ShellView{}, f
	}
	e, f := start(opening)
	if f == nil && script != "" {
		f = r.setUp(opening, e, script)
	}
	if f == nil && r.opened(e) {
		return r.view(), nil
	}
	if e != nil {
		e.Close()
	}
	s.forget(r)
	close(r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.reason == wire.ShellBySession:
		return wire.ShellView{}, inactive()
	case r.ending:
		return wire.ShellView{}, notStarted(fault.New(fault.RunnerUnavailable, "the Runner ended the shell while it was opened").WithReason(r.reason))
	}
	return wire.ShellView{}, f
}

// setUp runs the profile's script, once (SHL-10).
func (r *record) setUp(ctx context.Context, e Engine, script string) *fault.Error {
	ctx, cancel := context.WithTimeout(ctx, wire.ShellInitTime)
	defer cancel()
	end := e.Execute(ctx, script, proc.NewTail(maxFrame), proc.NewTail(maxFrame))
	if end.InStep && !end.Late {
		r.initCode = end.Status
		return nil
	}
	reason := "shell_exited_during_initialization"
	if end.Late {
		reason = "initialization_timeout"
	}
	return notStarted(fault.New(fault.ShellProfileUnavailable, "the script of the Runner's profile did not come to its end").WithReason(reason).
		WithNext("the operator looks at init_script in shells.toml"))
}

func spawnFault(err error) *fault.Error {
	reason := proc.NoResources
	var se *proc.SpawnError
	if errors.As(err, &se) {
		reason = se.Reason
	}
	text := "the shell could not be started on the Runner"
	switch {
	case reason == proc.NotFound:
		text = "the shell was not found on the Runner"
	case errors.Is(err, errNoAnswer):
		reason, text = "no_answer", "the shell was started and did not answer; it was ended"
	}
	return notStarted(fault.Wrap(err, fault.CommandSpawnFailed, "%s", text).WithField("shell").WithReason(reason))
}
