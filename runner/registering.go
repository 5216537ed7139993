package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner/wire"
)

// registerOwn registers the ops about the Runner's own Projects. They get no Project.
func (r *Runner) registerOwn() {
	Read(r, wire.OpFindProject, r.findProject)
	Effect(r, wire.OpRegisterProject, r.registerProject)
	Effect(r, wire.OpCreateProject, r.createProject)
	Effect(r, wire.OpUnregisterProject, r.unregisterProject)
	Effect(r, wire.OpExecutionInput, r.input)
}

// findProject tells which Project serves a directory. Where none does it says whether a caller
// may have one there, and nothing about what lies outside of the allowed roots.
func (r *Runner) findProject(_ context.Context, _ *Project, in wire.FindProjectIn) (out wire.FindProjectOut, _ error) {
	if err := wire.CheckProjectPath(in.Path); err != nil {
		return out, err
	}
	real, missing := realDir(in.Path)
	if missing == nil {
		if at, err := bornOf(real); err == nil {
			if p := r.projects.servedAt(real, at); p != nil {
				w := announced(p)
				out.Project = &w
				return out, nil
			}
		}
	}
	if err := r.Allowed(in.Path); err != nil {
		return out, err
	}
	return out, missing
}

func (r *Runner) registerProject(_ context.Context, _ *Project, in wire.RegisterProjectIn) (out wire.RegisterProjectOut, _ error) {
	if err := in.Check(); err != nil {
		return out, err
	}
	return r.accept(in.Path, in.Name)
}

// accept serves a directory for a caller, in this life and those to come.
func (r *Runner) accept(path, name string) (out wire.RegisterProjectOut, _ error) {
	r.entering.Lock()
	defer r.entering.Unlock()
	p, fresh, err := r.projects.add(wish{path: path, title: name, by: byCaller})
	if err != nil {
		return out, err
	}
	if fresh {
		r.sayHello()
	}
	return wire.RegisterProjectOut{Project: announced(p), Registered: fresh}, nil
}

// createProject makes a directory below an allowed root and serves it. Where something is there
// already it makes nothing. What it made is taken away again if it cannot be served.
func (r *Runner) createProject(ctx context.Context, _ *Project, in wire.CreateProjectIn) (out wire.RegisterProjectOut, err error) {
	if err := in.Check(); err != nil {
		return out, err
	}
	path := filepath.Clean(in.Path)
	parent, name := filepath.Dir(path), filepath.Base(path)
	if err := r.Allowed(path); err != nil {
		return out, err
	}
	at, err := os.OpenRoot(parent)
	if err != nil {
		return out, fault.Wrap(err, fault.InvalidPath, "the directory in which the Project is to be made does not exist").WithField("path").WithReason("not_found")
	}
	defer at.Close()
	if err := r.projects.policy.judgeIn(at); err != nil {
		return out, err
	}
	switch err := at.Mkdir(name, 0o777); {
	case errors.Is(err, fs.ErrExist):
		return out, fault.Wrap(err, fault.InvalidPath, "something is there already; nothing was made").WithField("path").WithReason("exists").
			WithNext("call register_project if it is a directory that is to be served, or name another path")
	case err != nil:
		return out, fault.Wrap(err, fault.InvalidPath, "the directory cannot be made").WithField("path").WithReason("unwritable")
	}
	defer func() {
		if err != nil {
			err = undo(at, name, err)
		}
	}()
	if in.GitInit {
		if err := initIn(ctx, at, name); err != nil {
			return out, err
		}
	}
	return r.accept(path, in.Name)
}

func initIn(ctx context.Context, at *os.Root, name string) error {
	made, err := at.OpenRoot(name)
	if err != nil {
		return fault.Wrap(err, fault.InvalidPath, "the directory that was made cannot be opened").WithField("path").WithReason("unreadable")
	}
	defer made.Close()
	return git.Init(ctx, made)
}

// undo takes away a directory that was just made; what cannot be taken away is told.
func undo(at *os.Root, name string, err error) error {
	f := *fault.As(err)
	f.StateChanged = at.RemoveAll(name) != nil
	return &f
}

// unregisterProject serves a Project no longer, and waits until what ran of it has ended. What the
// owner's file names is the owner's to take out.
func (r *Runner) unregisterProject(ctx context.Context, _ *Project, in wire.UnregisterProjectIn) (out wire.UnregisterProjectOut, _ error) {
	by := r.projects.wants(in.Project)
	if by&byFile != 0 {
		return out, fault.New(fault.RunnerRefused, "the Runner's owner named this Project in the projects file").WithReason("named_by_owner").
			WithNext("ask the Runner's owner to take it out of the projects file")
	}
	ending, err := r.dismiss(in.Project)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	for _, e := range ending {
		if !e.ended(ctx) {
			f := fault.New(fault.Timeout, "the Project is served no longer, and something of it has not ended yet").WithNext("call again")
			f.StateChanged = true
			return out, f
		}
	}
	return wire.UnregisterProjectOut{Unregistered: by != 0, Ended: len(ending)}, nil
}

// dismiss serves a Project no longer. Who registers it again meanwhile waits, so that what begins
// then is not ended with what ran before.
func (r *Runner) dismiss(id event.ProjectID) ([]*execution, error) {
	r.entering.Lock()
	defer r.entering.Unlock()
	p, err := r.projects.dismiss(id, bySelf|byCaller)
	return r.end(p), err
}

// ended waits until an execution has ended; false: ctx ended before.
func (e *execution) ended(ctx context.Context) bool {
	for {
		e.mu.Lock()
		over := e.result != nil
		if !over && e.changed == nil {
			e.changed = make(chan struct{})
		}
		change := e.changed
		e.mu.Unlock()
		if over {
			return true
		}
		select {
		case <-change:
		case <-ctx.Done():
			return false
		}
	}
}

// announced is a Project as the server sees it.
func announced(p *Project) wire.Project {
	return wire.Project{ID: p.ID, Name: p.Name, Title: p.Title, Root: p.Fingerprint, Git: p.Git}
}
