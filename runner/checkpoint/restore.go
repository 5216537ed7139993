package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/files"
	"webcodex/runner/wire"
)

// plan is what a restore does.
type plan struct {
	now    git.Survey
	wanted []files.Wanted
	left   []git.Passed
}

func (pl plan) changes() []wire.CheckpointChange {
	out := []wire.CheckpointChange{}
	for _, w := range pl.wanted[:min(len(pl.wanted), wire.MaxCheckpointFiles)] {
		c := wire.CheckpointChange{Path: w.Path, Action: "write"}
		if w.Gone {
			c.Action = "delete"
		}
		out = append(out, c)
	}
	return out
}

// lookup finds out how the working tree differs from a checkpoint.
func lookup(ctx context.Context, repo *git.Repo, p *runner.Project, k kept) (plan, error) {
	now, err := repo.Survey(ctx, limits)
	if err != nil {
		return plan{}, err
	}
	f := facts{now: now, deleted: k.detail.Deleted, passed: k.detail.Passed, untracked: k.info.Untracked,
		kept: map[string]git.Entry{}, moved: map[string]git.Entry{}, head: map[string]git.Entry{}}
	full := fault.New(fault.CapacityReached, "more than %d files differ between then and now", limits.Paths).WithReason("too_many_files").
		WithNext("check out the checkpoint's commit first (its head), then restore")
	take := func(into map[string]git.Entry) func(git.Entry) error {
		return func(e git.Entry) error {
			if into[e.Path] = e; len(into) > limits.Paths {
				return full
			}
			return nil
		}
	}
	if err := repo.Under(ctx, k.git.Commit, "files/", take(f.kept)); err != nil {
		return plan{}, err
	}
	if now.Head.Commit != k.git.Parent {
		if err := repo.Between(ctx, now.Head.Commit, k.git.Parent, take(f.moved)); err != nil {
			return plan{}, err
		}
	}
	if k.git.Parent != "" {
		if err := repo.At(ctx, k.git.Parent, f.asks(), take(f.head)); err != nil {
			return plan{}, err
		}
	}
	aims, left := f.aims()
	out := plan{now: now, left: left}
	return out, out.fill(ctx, repo, p, aims)
}

// fill reads what is wanted and drops what is so already.
func (pl *plan) fill(ctx context.Context, repo *git.Repo, p *runner.Project, aims []aim) error {
	content, err := contents(ctx, repo, aims, pl)
	if err != nil {
		return err
	}
	for _, a := range aims {
		w := files.Wanted{Path: a.Path, Gone: a.Mode == "", Link: a.Mode == git.ModeLink, Program: a.Mode == git.ModeProgram}
		var ok bool
		if w.Content, ok = content[a.Path]; !ok && !w.Gone {
			continue // it was passed over, and is named in left
		}
		same, reason := already(p.Root, w)
		switch {
		case reason != "":
			pl.left = append(pl.left, git.Passed{Path: a.Path, Reason: reason})
		case !same:
			pl.wanted = append(pl.wanted, w)
		}
	}
	if len(pl.wanted) > files.MaxWanted {
		return fault.New(fault.CapacityReached, "more than %d files would have to be changed", files.MaxWanted).WithReason("too_many_files")
	}
	return nil
}

// already reports that a path is as it is wanted, or why it cannot be made so.
func already(root *os.Root, w files.Wanted) (same bool, reason string) {
	for dir := path.Dir(w.Path); dir != "."; dir = path.Dir(dir) {
		info, err := root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			return false, git.PassedUnread
		case !info.IsDir() && w.Gone:
			return true, "" // what was there is gone with its directory
		case !info.IsDir():
			return false, git.PassedPlace
		}
	}
	info, err := root.Lstat(w.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.Gone, ""
	case err != nil:
		return false, git.PassedUnread
	case info.IsDir():
		if w.Gone {
			return true, ""
		}
		return false, git.PassedPlace
	case w.Gone:
		return false, ""
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := root.Readlink(w.Path)
		return err == nil && w.Link && to == string(w.Content), ""
	case !info.Mode().IsRegular():
		return false, git.PassedKind
	case w.Link || info.Size() != int64(len(w.Content)) || info.Mode()&0o100 != 0 != w.Program:
		return false, ""
	}
	f, err := root.OpenFile(w.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, git.PassedUnread
	}
	defer f.Close()
	got, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	return err == nil && bytes.Equal(got, w.Content), ""
}

// contents reads what is wanted at each path: kept blobs as they are, HEAD's as a checkout writes
// them. What a content filter makes cannot be made here, and is left.
func contents(ctx context.Context, repo *git.Repo, aims []aim, pl *plan) (map[string][]byte, error) {
	out := map[string][]byte{}
	raw := map[string][]string{} // paths by blob
	var ids []string
	var checkout []git.Entry
	var paths []string
	for _, a := range aims {
		switch {
		case a.Mode == "":
		case a.Kept || a.Mode == git.ModeLink:
			if raw[a.ID] == nil {
				ids = append(ids, a.ID)
			}
			raw[a.ID] = append(raw[a.ID], a.Path)
		default:
			checkout = append(checkout, git.Entry{Path: a.Path, Mode: a.Mode, ID: a.ID})
			paths = append(paths, a.Path)
		}
	}
	room := int64(maxRestore)
	large := fault.New(fault.CapacityReached, "more than %d MiB would have to be put back", maxRestore>>20).WithReason(git.PassedLarge)
	err := repo.Objects(ctx, ids, limits.Size, func(o git.Object) error {
		if room -= int64(len(o.Content)); room < 0 {
			return large
		}
		for _, p := range raw[o.ID] {
			out[p] = o.Content
		}
		return nil
	})
	if err != nil || len(checkout) == 0 {
		return out, err
	}
	filtered, err := repo.Filtered(ctx, paths)
	if err != nil {
		return nil, err
	}
	var entries []git.Entry
	for _, e := range checkout {
		if filtered[e.Path] {
			pl.left = append(pl.left, git.Passed{Path: e.Path, Reason: git.PassedFilter})
			continue
		}
		entries = append(entries, e)
	}
	return out, exported(ctx, repo, entries, out, room, large)
}

// exported reads files as a checkout writes them, through a directory of their own.
func exported(ctx context.Context, repo *git.Repo, entries []git.Entry, out map[string][]byte, room int64, large error) error {
	if len(entries) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "webcodex-checkpoint-")
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "there is no place for temporary files")
	}
	defer os.RemoveAll(dir)
	if err := repo.Export(ctx, entries, dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(dir, "files"))
	if err != nil {
		return fault.Wrap(err, fault.GitFailed, "git did not write the files of the checkpoint")
	}
	defer root.Close()
	for _, e := range entries {
		info, err := root.Lstat(e.Path)
		if err != nil || !info.Mode().IsRegular() {
			return fault.Wrap(err, fault.GitFailed, "git did not write a file of the checkpoint")
		}
		if room -= info.Size(); room < 0 {
			return large
		}
		if out[e.Path], err = root.ReadFile(e.Path); err != nil {
			return fault.Wrap(err, fault.GitFailed, "git did not write a file of the checkpoint")
		}
	}
	return nil
}

// Restore puts the files of a checkpoint back (OpRestoreCheckpoint): all that can be, or nothing. What
// is there before is kept as a checkpoint first. HEAD, branches and the index stay.
func (s *Service) Restore(ctx context.Context, p *runner.Project, in wire.RestoreCheckpointIn) (wire.RestoreCheckpointOut, error) {
	if err := in.Check(); err != nil {
		return wire.RestoreCheckpointOut{}, err
	}
	defer s.files.Exclusive(p)()
	return with(ctx, p, func(repo *git.Repo) (out wire.RestoreCheckpointOut, err error) {
		k, err := find(ctx, repo, git.CheckpointRef{Owner: string(p.ID), Name: in.ID})
		if err != nil {
			return out, err
		}
		pl, err := lookup(ctx, repo, p, k)
		if err != nil {
			return out, err
		}
		out = wire.RestoreCheckpointOut{ID: in.ID, Changes: pl.changes(), ChangeCount: len(pl.wanted), Skipped: skipped(pl.left), Complete: len(pl.left) == 0,
			Head: pl.now.Head.Commit, HeadMoved: pl.now.Head.Commit != k.git.Parent, State: pl.now.State}
		if len(pl.wanted) == 0 {
			return out, nil
		}
		if pl.now.State != in.Expected {
			return out, fault.New(fault.EditConflict, "the working tree is not in the state that was expected; nothing was changed").
				WithField("expected_state").WithReason("state_changed").With("current_state", pl.now.State).
				WithNext("call read_workspace_checkpoint and look at what a restore would change now")
		}
		before := git.CheckpointRef{Owner: string(p.ID), Name: in.Before}
		_, err = s.keep(ctx, repo, before, wire.CreateCheckpointIn{ID: in.Before, Untracked: true,
			CheckpointAbout: wire.CheckpointAbout{Kind: "rollback_candidate", Title: "before the restore of " + in.ID}}, pl.now)
		if err != nil {
			return out, err
		}
		out.Before = in.Before
		// Nothing of ours writes here now; what others wrote since is not in that checkpoint.
		if again, err := repo.Survey(ctx, limits); err != nil || again.State != pl.now.State {
			return out, fault.Wrap(err, fault.EditConflict, "files were changed while the restore began; none of them was touched").WithReason("state_changed").
				WithNext("call read_workspace_checkpoint again")
		}
		if _, err := s.files.Apply(ctx, p, pl.wanted); err != nil {
			return out, err
		}
		out.Restored = true
		prune(p.Root, pl.wanted)
		if after, err := repo.Survey(ctx, limits); err == nil {
			out.State = after.State
		}
		return out, nil
	})
}

// prune removes the directories that a restore has emptied, as a checkout does.
func prune(root *os.Root, done []files.Wanted) {
	for _, w := range done {
		if !w.Gone {
			continue
		}
		for dir := path.Dir(w.Path); dir != "."; dir = path.Dir(dir) {
			info, err := root.Lstat(dir)
			if err != nil || !info.IsDir() || root.Remove(dir) != nil {
				break // it is not empty
			}
		}
	}
}

// Read gives one checkpoint and what a restore of it would do now (OpReadCheckpoint).
func (s *Service) Read(ctx context.Context, p *runner.Project, in wire.ReadCheckpointIn) (wire.ReadCheckpointOut, error) {
	if err := wire.CheckCheckpoint(in.ID); err != nil {
		return wire.ReadCheckpointOut{}, err
	}
	return with(ctx, p, func(repo *git.Repo) (out wire.ReadCheckpointOut, err error) {
		k, err := find(ctx, repo, git.CheckpointRef{Owner: string(p.ID), Name: in.ID})
		if err != nil {
			return out, err
		}
		pl, err := lookup(ctx, repo, p, k)
		if err != nil {
			return out, err
		}
		out = wire.ReadCheckpointOut{CheckpointInfo: k.info, Files: []wire.CheckpointFile{}, SkippedFiles: skipped(k.detail.Passed),
			Current: pl.now.State, Changes: pl.changes(), ChangeCount: len(pl.wanted), HeadMoved: pl.now.Head.Commit != k.git.Parent}
		all, err := listed(ctx, repo, k)
		if err != nil {
			return out, err
		}
		from := min(max(0, in.Offset), len(all))
		most := in.Limit
		if most <= 0 || most > wire.MaxCheckpointFiles {
			most = wire.MaxCheckpointFiles
		}
		to := min(from+most, len(all))
		if out.Files = append(out.Files, all[from:to]...); to < len(all) {
			out.NextOffset = &to
		}
		return out, nil
	})
}

var kinds = map[string]string{git.ModeFile: "file", git.ModeProgram: "program", git.ModeLink: "symlink"}

// listed are the files of a checkpoint that differed from its HEAD.
func listed(ctx context.Context, repo *git.Repo, k kept) ([]wire.CheckpointFile, error) {
	var all []wire.CheckpointFile
	err := repo.Under(ctx, k.git.Commit, "files/", func(e git.Entry) error {
		shown, _ := git.Show(e.Path)
		all = append(all, wire.CheckpointFile{Path: shown, Kind: kinds[e.Mode]})
		return nil
	})
	for _, path := range k.detail.Deleted {
		shown, _ := git.Show(path)
		all = append(all, wire.CheckpointFile{Path: shown, Kind: "deleted"})
	}
	return all, err
}
