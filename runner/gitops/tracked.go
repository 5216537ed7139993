package gitops

import (
	"context"
	"strings"

	"webcodex/internal/fault"
	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

const defaultTrackedLimit = 200

func trackedFiles(ctx context.Context, p *runner.Project, in wire.TrackedFilesIn) (wire.TrackedFilesOut, error) {
	out := wire.TrackedFilesOut{Entries: []wire.TrackedEntry{}}
	var paths []string
	if in.Path != "" && in.Path != "." {
		var err error
		if paths, err = relpath.Clean("path", []string{in.Path}, 1); err != nil {
			return out, err
		}
	}
	match, err := globs(in.Globs)
	if err != nil {
		return out, err
	}
	return with(ctx, p, func(repo *git.Repo) (wire.TrackedFilesOut, error) {
		page := pager{offset: max(0, in.Offset), limit: clamp(in.Limit, defaultTrackedLimit, maxTrackedLimit), room: trackedChars}
		f := folder{depth: in.Depth, under: strings.TrimSuffix(strings.Join(paths, ""), "/"), emit: func(e wire.TrackedEntry) {
			if page.take(chars(e.Path) + entryFrame) {
				out.Entries = append(out.Entries, e)
			}
		}}
		last := ""
		err := repo.Tracked(ctx, paths, func(t git.Tracked) error {
			if t.Path == last || !match(t.Path) { // a conflicted path comes once per stage
				return nil
			}
			last = t.Path
			out.TotalFiles++
			f.add(t)
			return nil
		})
		f.end()
		out.TotalEntries, out.Returned, out.NextOffset = page.seen, len(out.Entries), page.next()
		out.Truncated = out.NextOffset != nil
		return out, err
	})
}

// folder turns files deeper than depth, counted below under, into one entry a directory. The
// index is ordered by bytes, so that the files of a directory follow each other.
type folder struct {
	depth int
	under string
	emit  func(wire.TrackedEntry)
	dir   string
	files int
}

func (f *folder) add(t git.Tracked) {
	if dir, deep := f.fold(t.Path); deep {
		if dir != f.dir {
			f.end()
			f.dir = dir
		}
		f.files++
		return
	}
	f.end()
	e := wire.TrackedEntry{Kind: t.Kind}
	e.Path, e.Lossy = git.Show(t.Path)
	f.emit(e)
}

func (f *folder) end() {
	if f.files == 0 {
		return
	}
	e := wire.TrackedEntry{Kind: "dir", Files: f.files}
	e.Path, e.Lossy = git.Show(f.dir)
	f.dir, f.files = "", 0
	f.emit(e)
}

func (f *folder) fold(path string) (dir string, deep bool) {
	if f.depth <= 0 {
		return "", false
	}
	start := 0
	if f.under != "" && strings.HasPrefix(path, f.under+"/") {
		start = len(f.under) + 1
	}
	at := start
	for range f.depth {
		i := strings.IndexByte(path[at:], '/')
		if i < 0 {
			return "", false
		}
		at += i + 1
	}
	return path[:at-1], true
}

// globs compiles patterns; a path is selected when any matches it. None selects all.
func globs(patterns []string) (func(string) bool, error) {
	if len(patterns) > maxGlobs {
		return nil, fault.New(fault.InvalidArguments, "globs has more than %d entries", maxGlobs).WithField("globs")
	}
	if len(patterns) == 0 {
		return func(string) bool { return true }, nil
	}
	list := make([]glob, 0, len(patterns))
	for _, p := range patterns {
		g, err := compile(p)
		if err != nil {
			return nil, err
		}
		list = append(list, g)
	}
	return func(path string) bool {
		for _, g := range list {
			if g.match(path) {
				return true
			}
		}
		return false
	}, nil
}
