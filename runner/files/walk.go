package files

import (
	"context"
	"errors"
	"slices"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// listing is the files of a Project that a search looks at, made once for all queries of a
// call: what git would look at in a repository, else everything but git's own files.
type listing struct {
	p     *runner.Project
	files []string // sorted; nil until made
	all   bool     // false where there are more than maxScanFiles
	made  bool
}

var errEnough = errors.New("enough files")

// under gives the files at or below a directory; the empty path is the root.
func (l *listing) under(ctx context.Context, t *tree, base string) ([]string, bool, error) {
	if !l.made {
		if err := l.make(ctx, t); err != nil {
			return nil, false, err
		}
	}
	if base == "" {
		return l.files, l.all, nil
	}
	from, _ := slices.BinarySearch(l.files, base+"/")
	to, _ := slices.BinarySearch(l.files, base+"0") // the byte after the slash
	if from < to {
		return l.files[from:to], l.all, nil
	}
	// A directory that is ignored, named on purpose, is searched all the same.
	var files []string
	all, err := walk(ctx, t, base, func(f string) { files = append(files, f) })
	slices.Sort(files)
	return files, all, err
}

func (l *listing) make(ctx context.Context, t *tree) error {
	l.files, l.all = []string{}, true
	var nested []string
	err := l.fromGit(ctx, func(path string) error {
		if len(l.files) >= maxScanFiles {
			l.all = false
			return errEnough
		}
		if dir, ok := strings.CutSuffix(path, "/"); ok {
			nested = append(nested, dir)
		} else if !git.Internal(path) {
			l.files = append(l.files, path)
		}
		return nil
	})
	switch {
	case err == nil, errors.Is(err, errEnough):
	case fault.KindOf(err) == fault.GitUnavailable:
		l.files, nested = l.files[:0], []string{""}
	default:
		return err
	}
	for _, dir := range nested {
		all, err := walk(ctx, t, dir, func(f string) { l.files = append(l.files, f) })
		if err != nil && dir == "" {
			return err
		}
		l.all = l.all && all
	}
	slices.Sort(l.files)
	l.files, l.made = slices.Compact(l.files), true
	return nil
}

func (l *listing) fromGit(ctx context.Context, each func(string) error) error {
	repo, err := git.Open(ctx, l.p.Root)
	if err != nil {
		return err
	}
	defer repo.Close()
	return repo.Files(ctx, each)
}

// walk hands out the regular files below a directory, links not followed and git directories
// left out. It is false where it stopped at maxScanFiles; what cannot be read is left out.
func walk(ctx context.Context, t *tree, base string, each func(string)) (bool, error) {
	seen := 0
	todo := []string{base}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		dir, _, err := t.directory(fields(path))
		var names []name
		all := true
		if err == nil {
			names, all, err = readNames(ctx, dir)
		}
		if ctx.Err() != nil {
			return false, timedOut(ctx)
		}
		if err != nil {
			if path == base {
				return false, err
			}
			continue
		}
		if !all {
			return false, nil
		}
		for _, n := range names {
			full := n.text
			if path != "" {
				full = path + "/" + n.text
			}
			switch n.kind {
			case wire.EntryDir:
				todo = append(todo, full)
			case wire.EntryFile:
				each(full)
			}
			if seen++; seen > maxScanFiles {
				return false, nil
			}
		}
	}
	return true, nil
}

// fields are the components of a path that we made.
func fields(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
