package worktree

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// Options of Register.
type Options struct {
	// Now is the wall clock of notes; nil: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// Manager makes and remembers the managed worktrees of one Runner.
type Manager struct {
	runner *runner.Runner
	notes  ledger
	now    func() time.Time
	logger *slog.Logger
	// reached is called after each step of a creation; tests end a life there.
	reached func(point string)

	mu sync.Mutex // one creation at a time: they share repositories and places
}

// Register adds the worktree ops to r and takes back what an earlier life left half-made. From
// then on a Project that is served brings the worktrees made of it along, but for those that were
// unregistered. Call it before Projects are added.
func Register(r *runner.Runner, o Options) *Manager {
	m := &Manager{runner: r, notes: ledger{dir: filepath.Join(r.Dir(), "worktrees"), sync: r.Durable()}, now: o.Now, logger: o.Logger,
		reached: func(string) {}}
	if m.now == nil {
		m.now = time.Now
	}
	if m.logger == nil {
		m.logger = slog.New(slog.DiscardHandler)
	}
	m.recover()
	runner.Effect(r, wire.OpCreateWorktree, m.Create)
	runner.Read(r, wire.OpObserveWorktree, m.Observe)
	r.OnProjectAdded(m.bring)
	r.OnProjectRemoved(m.release)
	return m
}

// recover takes back every worktree that was not finished.
func (m *Manager) recover() {
	all, err := m.notes.all()
	if err != nil {
		m.logger.Error("notes of worktrees could not be read", "cause", err)
	}
	for _, n := range all {
		if n.Step != stepCreating {
			continue
		}
		if err := m.takeBack(n); err != nil {
			m.logger.Error("what is left of a worktree could not be removed", "cause", err)
		}
	}
}

// takeBack removes all that a creation may have left: git's registration, the directory, the note.
func (m *Manager) takeBack(n note) error {
	if err := git.DropWorktree(n.Common, n.Path); err != nil {
		return err
	}
	around, err := os.OpenRoot(filepath.Dir(n.Path))
	if err == nil {
		err = errors.Join(around.RemoveAll(filepath.Base(n.Path)), around.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return m.notes.drop(n.Operation)
}

// bring serves the worktrees of a Project that has come to be served.
func (m *Manager) bring(p *runner.Project) {
	all, err := m.notes.all()
	if err != nil {
		m.logger.Error("notes of worktrees could not be read", "cause", err)
	}
	for _, n := range all {
		if n.Step != stepReady || n.Root != p.Fingerprint || n.Project == p.ID {
			continue
		}
		if _, err := os.Lstat(n.Path); errors.Is(err, fs.ErrNotExist) {
			continue // somebody removed it; a disk that is not there may come back
		}
		if _, err := m.serve(n); err != nil {
			m.logger.Warn("a managed worktree is not served", "project", n.Project, "cause", err)
		}
	}
}

// release keeps an unregistered worktree from coming back with its source.
func (m *Manager) release(id event.ProjectID) {
	all, _ := m.notes.all()
	for _, n := range all {
		if n.Project != id || n.Step != stepReady {
			continue
		}
		n.Step = stepReleased
		if err := m.notes.put(n); err != nil {
			m.logger.Error("the note of a worktree could not be kept up", "cause", err)
		}
	}
}

// Observe looks afresh at a Project: whether it is a managed worktree, still registered with the
// repository that it was made of, and a revision that is named still is its base (WTR-13).
func (m *Manager) Observe(ctx context.Context, p *runner.Project, in wire.ObserveWorktreeIn) (wire.ObserveWorktreeOut, error) {
	if err := wire.CheckBaseRef(in.BaseRef); err != nil {
		return wire.ObserveWorktreeOut{}, err
	}
	n, ok, err := m.of(p)
	if err != nil || !ok {
		return wire.ObserveWorktreeOut{}, err
	}
	if err := m.stillRegistered(n); err != nil {
		return wire.ObserveWorktreeOut{}, err
	}
	if err := m.baseStands(ctx, n, in.BaseRef); err != nil {
		return wire.ObserveWorktreeOut{}, err
	}
	return wire.ObserveWorktreeOut{Managed: true, BaseCommit: n.Base}, nil
}

// of finds the note of a Project.
func (m *Manager) of(p *runner.Project) (note, bool, error) {
	all, err := m.notes.all()
	for _, n := range all {
		if n.Step != stepCreating && n.Path == p.Path {
			return n, true, nil
		}
	}
	if err != nil {
		return note{}, false, unwritable(err)
	}
	return note{}, false, nil
}

// stillRegistered refuses a worktree that the repository it was made of does not know any more.
func (m *Manager) stillRegistered(n note) error {
	root, err := os.OpenRoot(n.Path)
	if err != nil {
		return lost(err, "the managed worktree's directory is gone")
	}
	defer root.Close()
	ctx, cancel := context.WithTimeout(context.Background(), cleanTime)
	defer cancel()
	repo, err := git.Open(ctx, root)
	if err != nil {
		return lost(err, "the managed worktree is not registered with its repository any more")
	}
	defer repo.Close()
	common, err := repo.Common()
	if err != nil {
		return err
	}
	a, err1 := os.Stat(common)
	b, err2 := os.Stat(n.Common)
	if err1 != nil || err2 != nil || !os.SameFile(a, b) {
		return lost(errors.Join(err1, err2), "the managed worktree belongs to another repository by now")
	}
	return nil
}

// baseStands resolves a revision in the source as it is now and holds it against the base.
func (m *Manager) baseStands(ctx context.Context, n note, ref string) error {
	if ref == "" {
		return nil
	}
	for _, p := range m.runner.Projects() {
		if p.ID != n.Source || p.Fingerprint != n.Root || !p.Same() {
			continue
		}
		repo, err := git.Open(ctx, p.Root)
		if err != nil {
			return err
		}
		defer repo.Close()
		now, err := repo.Commit(ctx, ref)
		if err != nil {
			return asked(err)
		}
		if now != n.Base {
			return fault.New(fault.RunnerRefused, "base_ref names another commit than this worktree was made of").WithField("base_ref").
				WithReason("base_commit_differs").WithNext("leave base_ref out to go on, or start a new worktree of the source Project")
		}
		return nil
	}
	return lost(nil, "the Project that the worktree was made of is not served, so base_ref cannot be looked up")
}

func lost(cause error, text string) error {
	return fault.Wrap(cause, fault.RunnerRefused, "%s", text).WithReason("provenance").
		WithNext("start a new worktree of the source Project")
}
