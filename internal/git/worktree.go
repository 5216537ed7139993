package git

import "context"

// Files hands out every file of the working tree that git would look at: tracked ones, even
// where an ignore rule names them, and untracked ones that no rule ignores. Paths are raw
// bytes, unsorted; a tracked file may be gone from the disk, a conflicted one comes once, and
// a nested repository is one path that may end in a slash. An error of each ends it.
func (r *Repo) Files(ctx context.Context, each func(path string) error) error {
	return r.failed(r.git(ctx, records(func(rec []byte) error {
		return each(string(rec))
	}), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"))
}
