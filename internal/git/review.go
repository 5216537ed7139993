package git

import (
	"context"
	"strconv"
	"strings"

	"webcodex/internal/fault"
)

// FileChange is how one file differs; paths are raw bytes.
type FileChange struct {
	Path, Orig string
	Change     string
}

// Changed hands out the files that differ and how, in git's order. A conflicted path may come
// twice. An error of each ends it.
func (r *Repo) Changed(ctx context.Context, s Scope, each func(FileChange) error) error {
	args, err := r.diffArgs(ctx, s, "--name-status", "-z")
	if err != nil {
		return err
	}
	var f FileChange
	names := 0 // names still to come
	return r.failed(r.git(ctx, records(func(rec []byte) error {
		switch names {
		case 0:
			if len(rec) > 0 {
				f = FileChange{Change: changes[rec[0]]}
			}
			if f.Change == "" {
				return fault.New(fault.GitFailed, "git's list of changes could not be read")
			}
			if names = 1; f.Change == Renamed || f.Change == Copied {
				names = 2
			}
			return nil
		case 2:
			f.Orig, names = string(rec), 1
			return nil
		}
		f.Path, names = string(rec), 0
		return each(f)
	}), args...))
}

// Commits counts the commits that head has and base has not. Both are full ids.
func (r *Repo) Commits(ctx context.Context, base, head string) (int, error) {
	if !ValidID(base) || !ValidID(head) {
		return 0, fault.New(fault.InvalidArguments, "a commit is named by its full id")
	}
	out, err := r.output(ctx, r.env, r.place("rev-list", "--count", base+".."+head, "--")...)
	if err != nil {
		return 0, r.failed(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return 0, fault.Wrap(err, fault.GitFailed, "git's count could not be read")
	}
	return n, nil
}

// Untracked hands out files that are not in the index, in git's order; those that a rule ignores
// only where ignored is set. Paths limit it to files and directories of these exact names; none
// means all. A name that ends in a slash is a repository of its own, which git does not look into.
// An error of each ends it.
func (r *Repo) Untracked(ctx context.Context, paths []string, ignored bool, each func(path string) error) error {
	args := []string{"ls-files", "--others", "-z"}
	if !ignored {
		args = append(args, "--exclude-standard")
	}
	return r.failed(r.git(ctx, records(func(rec []byte) error {
		return each(string(rec))
	}), append(append(args, "--"), paths...)...))
}
