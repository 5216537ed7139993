package git

import (
	"context"
	"errors"
	"io"
	"os"

	"webcodex/internal/fault"
)

// Init makes an empty repository, with the branch main and no hooks, in a root that has none.
// Errors: fault git_unavailable with reason git_missing, git_too_old or not_a_repository, and
// conflict where something called .git is there already.
func Init(ctx context.Context, root *os.Root) error {
	program, err := binary()
	if err != nil {
		return err
	}
	if _, err := root.Lstat(".git"); !errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(err, fault.Conflict, "the folder has a repository already")
	}
	dir, err := root.Open(".")
	if err != nil {
		return unavailable(err, "not_a_repository", "the folder could not be opened")
	}
	defer dir.Close()
	args := append(append([]string{}, safeFlags...), "-c", "init.defaultBranch=main", "init", "--quiet", "--template=", ".")
	err = child{program: program, dir: childDir(dir), env: childEnv(nil), args: args, timeout: Timeout}.run(ctx, func(out io.Reader) error {
		_, err := io.Copy(io.Discard, out)
		return err
	})
	if code := exitCode(err); code >= 0 {
		return fault.Wrap(err, fault.GitFailed, "git could not make a repository")
	}
	return err
}
