package git

import (
	"bytes"
	"context"

	"webcodex/internal/fault"
)

// Kinds of tracked entries.
const (
	KindFile      = "file"
	KindSymlink   = "symlink"
	KindSubmodule = "submodule"
)

var kinds = map[string]string{"100644": KindFile, "100755": KindFile, "120000": KindSymlink, "160000": KindSubmodule}

// Tracked is one index entry; Path is raw bytes. A conflicted path has several, one a Stage.
type Tracked struct {
	Path  string
	Kind  string
	Stage int
}

// Tracked hands out the index in byte order of paths. Paths limit it to files and directories
// of these exact names (no patterns); none means all. An error of each ends it.
func (r *Repo) Tracked(ctx context.Context, paths []string, each func(Tracked) error) error {
	return r.failed(r.git(ctx, records(func(rec []byte) error {
		// mode SP object SP stage TAB path
		head, path, ok := bytes.Cut(rec, []byte("\t"))
		f := bytes.Fields(head)
		if !ok || len(f) != 3 || len(f[2]) != 1 || len(path) == 0 {
			return fault.New(fault.GitFailed, "git's index listing could not be read")
		}
		kind, known := kinds[string(f[0])]
		if !known {
			kind = KindFile
		}
		return each(Tracked{Path: string(path), Kind: kind, Stage: int(f[2][0] - '0')})
	}), append([]string{"ls-files", "--stage", "-z", "--"}, paths...)...))
}
