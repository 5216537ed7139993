package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"webcodex/internal/fault"
)

// Commit resolves a revision as git reads it, or HEAD where it is empty, to one full commit id
// (WTR-04). Errors: invalid_arguments with reason unknown_commit, or no_commit where HEAD has none
// yet.
func (r *Repo) Commit(ctx context.Context, rev string) (string, error) {
	if rev == "" {
		id, err := r.Head(ctx)
		if err == nil && id == "" {
			err = fault.New(fault.InvalidArguments, "the Project's repository has no commit yet").WithReason("no_commit")
		}
		return id, err
	}
	id, err := r.ResolveCommit(ctx, rev)
	if err == nil && !ValidID(id) {
		err = fault.New(fault.InvalidArguments, "there is no such commit in the Project's repository").WithReason("unknown_commit")
	}
	return id, err
}

// Common is the directory that all worktrees of the repository share: absolute, resolved.
func (r *Repo) Common() (string, error) {
	file := filepath.Join(r.gitDir, "commondir")
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return r.gitDir, nil
	}
	common, err := pointer(file, r.gitDir, "")
	if err != nil {
		return "", err
	}
	if common, err = filepath.EvalSymlinks(common); err != nil {
		return "", unavailable(err, "not_a_repository", "the Project's git directory does not exist")
	}
	return common, nil
}

// AddWorktree registers a detached worktree at a path where nothing is, without a file in it:
// Populate it from its own root, where git's settings may be others. No hook runs. After an error
// there may be something left of it (DropWorktree).
func (r *Repo) AddWorktree(ctx context.Context, path, commit string) error {
	common, err := r.Common()
	if err != nil {
		return err
	}
	// What stands there in a repository that somebody else packed could lead anywhere.
	if info, err := os.Lstat(filepath.Join(common, "worktrees")); err == nil && !info.IsDir() {
		return unavailable(nil, "unsupported_repository", "the place where git registers worktrees is not a directory")
	}
	return r.failed(r.git(ctx, nothing, "worktree", "add", "--quiet", "--detach", "--no-checkout", "--no-guess-remote", "--end-of-options", path, commit))
}

// Populate writes all files of HEAD into a working tree that has none. Filters do not run: files
// under one are written as they are stored. A sparse pattern has no say.
func (r *Repo) Populate(ctx context.Context) error {
	head, err := r.Commit(ctx, "")
	if err != nil {
		return err
	}
	return r.failed(r.git(ctx, nothing, "-c", "core.sparseCheckout=false", "read-tree", "--reset", "-u", head))
}

// Detached reports that HEAD names a commit and no branch.
func (r *Repo) Detached(ctx context.Context) (bool, error) {
	err := r.git(ctx, nothing, "symbolic-ref", "--quiet", "HEAD")
	if exitCode(err) == 1 {
		return true, nil
	}
	return false, r.failed(err)
}

// DropWorktree removes what a repository keeps of a worktree of that path, and nothing of any
// other: it is what an AddWorktree that broke off may have left. common is what Common gave; git
// does not run. The worktree's own directory is the caller's.
func DropWorktree(common, path string) error {
	root, err := os.OpenRoot(common)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := root.Open("worktrees")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		if entryOf(root, name, path) {
			failed = errors.Join(failed, root.RemoveAll("worktrees/"+name))
		}
	}
	return failed
}

// entryOf reports that a registration is of the worktree at path. One that broke off before it
// said so is told by its name, which git takes from the path's.
func entryOf(common *os.Root, name, path string) bool {
	text, err := common.ReadFile("worktrees/" + name + "/gitdir")
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return name == filepath.Base(path)
	}
	if err != nil || len(text) > maxPointerFile {
		return false
	}
	back := strings.TrimRight(string(text), "\r\n")
	if !filepath.IsAbs(back) {
		back = filepath.Join(common.Name(), "worktrees", name, back)
	}
	return filepath.Clean(back) == filepath.Join(path, ".git")
}
