package worktree

import (
	"context"
	"os"
	"path/filepath"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Create makes the worktree of one operation, or tells what that made before (WTR-16). After any
// failure nothing of it is left; where that cannot be done at once, the next start does it.
func (m *Manager) Create(ctx context.Context, source *runner.Project, in wire.CreateWorktreeIn) (wire.CreateWorktreeOut, error) {
	if err := in.Check(); err != nil {
		return wire.CreateWorktreeOut{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !source.Same() {
		return wire.CreateWorktreeOut{}, fault.New(fault.RunnerRefused, "the source Project's directory was moved or replaced").WithReason("root_changed")
	}
	known, found, err := m.notes.find(in.Operation)
	switch {
	case err != nil:
		return wire.CreateWorktreeOut{}, unwritable(err)
	case found && (known.Source != source.ID || known.Root != source.Fingerprint):
		return wire.CreateWorktreeOut{}, fault.New(fault.ExecutionConflict, "this operation made a worktree of another Project")
	case found && known.Step != stepCreating:
		return m.again(known)
	case found:
		if err := m.takeBack(known); err != nil {
			return wire.CreateWorktreeOut{}, unwritable(err)
		}
	}
	return m.fresh(ctx, source, in)
}

// again serves what the operation made before.
func (m *Manager) again(n note) (wire.CreateWorktreeOut, error) {
	p, err := m.serve(n)
	if err != nil {
		return wire.CreateWorktreeOut{}, err
	}
	return answer(n, p, false), nil
}

func answer(n note, p *runner.Project, created bool) wire.CreateWorktreeOut {
	return wire.CreateWorktreeOut{Project: wire.Project{ID: p.ID, Name: p.Name, Root: p.Fingerprint, Git: p.Git},
		BaseCommit: n.Base, Created: created, FiltersDisabled: n.Filters}
}

func (m *Manager) fresh(ctx context.Context, source *runner.Project, in wire.CreateWorktreeIn) (out wire.CreateWorktreeOut, err error) {
	repo, err := git.Open(ctx, source.Root)
	if err != nil {
		return out, err
	}
	defer repo.Close()
	base, err := repo.Commit(ctx, in.BaseRef)
	if err != nil {
		return out, asked(err)
	}
	common, err := repo.Common()
	if err != nil {
		return out, err
	}
	if err := m.room(source); err != nil {
		return out, err
	}
	at, err := m.place(source)
	if err != nil {
		return out, err
	}
	defer at.root.Close()
	dir := name(source, in.Operation)
	if _, err := at.root.Lstat(dir); err == nil {
		return out, fault.New(fault.RunnerRefused, "the place of the worktree is taken").WithReason("already_exists")
	}
	n := note{Version: noteVersion, Operation: in.Operation, Step: stepCreating, Source: source.ID, Root: source.Fingerprint, From: source.Path,
		Common: common, Base: base, Path: filepath.Join(at.path, dir), CreatedAt: event.FormatTime(m.now())}
	if err := m.notes.put(n); err != nil {
		return out, unwritable(err)
	}
	m.reached("noted")
	p, err := m.build(ctx, repo, at.root, &n)
	if err != nil {
		if cerr := m.takeBack(n); cerr != nil {
			m.logger.Error("what is left of a worktree could not be removed; the next start tries again", "cause", cerr)
		}
		return out, err
	}
	return answer(n, p, true), nil
}

// build makes what a note announces, up to a Project that is served.
func (m *Manager) build(ctx context.Context, source *git.Repo, around *os.Root, n *note) (*runner.Project, error) {
	source.Patient(populateTime)
	if err := source.AddWorktree(ctx, n.Path, n.Base); err != nil {
		return nil, err
	}
	m.reached("added")
	if err := m.populate(ctx, around, n); err != nil {
		return nil, err
	}
	m.reached("populated")
	n.Step = stepReady
	if err := m.notes.put(*n); err != nil {
		return nil, unwritable(err)
	}
	m.reached("ready")
	return m.serve(*n)
}

// populate writes the files, as the worktree's own settings say, and looks at what came of it.
func (m *Manager) populate(ctx context.Context, around *os.Root, n *note) error {
	root, err := around.OpenRoot(filepath.Base(n.Path))
	if err != nil {
		return fault.Wrap(err, fault.GitFailed, "git did not make the worktree")
	}
	defer root.Close()
	repo, err := git.Open(ctx, root)
	if err != nil {
		return err
	}
	defer repo.Close()
	repo.Patient(populateTime)
	n.Filters = repo.FiltersDisabled()
	if err := repo.Populate(ctx); err != nil {
		return err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return err
	}
	detached, err := repo.Detached(ctx)
	if err == nil && (!detached || head != n.Base) {
		err = fault.New(fault.GitFailed, "git made another worktree than it was told to")
	}
	return err
}

// serve makes the worktree a Project, if its owner's policy still has room for it.
func (m *Manager) serve(n note) (*runner.Project, error) {
	if err := m.runner.MayHold(filepath.Dir(filepath.Dir(n.Path))); err != nil {
		return nil, noRoot(err, "outside_allowed_roots")
	}
	if err := m.stillRegistered(n); err != nil {
		return nil, err
	}
	p, err := m.runner.AddProject(n.Path)
	if err != nil {
		return nil, err
	}
	if n.Project != p.ID || n.Step != stepReady {
		n.Project, n.Step = p.ID, stepReady
		if err := m.notes.put(n); err != nil {
			m.logger.Warn("the note of a worktree could not be kept up", "cause", err)
		}
	}
	return p, nil
}

// room refuses one worktree too many. Those that somebody removed do not count.
func (m *Manager) room(source *runner.Project) error {
	all, err := m.notes.all()
	if err != nil {
		m.logger.Warn("notes of worktrees could not be read", "cause", err)
	}
	have := 0
	for _, n := range all {
		if n.Root != source.Fingerprint {
			continue
		}
		if _, err := os.Lstat(n.Path); err == nil {
			have++
		}
	}
	if have >= maxPerSource {
		return fault.New(fault.CapacityReached, "this Project has %d managed worktrees already", have).
			WithNext("go on in one of them (list_projects), or have one removed with git worktree remove")
	}
	return nil
}

// asked puts what is wrong with a revision to the argument that named it.
func asked(err error) error {
	if f := fault.As(err); f.Kind == fault.InvalidArguments {
		return f.WithField("base_ref").WithNext("name a branch, tag or commit that the Project's repository has")
	}
	return err
}

func unwritable(err error) error {
	return fault.Wrap(err, fault.Unavailable, "the Runner's directory cannot be used")
}
