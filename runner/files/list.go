package files

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"webcodex/internal/git"
	"webcodex/internal/relpath"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// list answers list_project_files: one directory, git's own entries left out.
func (s *service) list(ctx context.Context, p *runner.Project, in wire.ListFilesIn) (wire.ListFilesOut, error) {
	t := newTree(p.Root)
	defer t.close()
	parts, err := relpath.Split(in.Path)
	if err != nil {
		return wire.ListFilesOut{}, at(err, "path")
	}
	dir, path, err := t.directory(parts)
	if err != nil {
		return wire.ListFilesOut{}, at(err, "path")
	}
	names, all, err := readNames(ctx, dir)
	if err != nil {
		return wire.ListFilesOut{}, at(err, "path")
	}
	limit := in.Limit
	if limit <= 0 || limit > wire.MaxListFiles {
		limit = wire.MaxListFiles
	}
	out := wire.ListFilesOut{Path: shown(path), Entries: []wire.DirEntry{}, Total: len(names), TotalComplete: all}
	size := 0
	for _, n := range names {
		e := describe(dir, path, n)
		if size += len(e.Path) + 40; len(out.Entries) == limit || size > wire.MaxResultChars {
			break
		}
		out.Entries = append(out.Entries, e)
	}
	out.Returned = len(out.Entries)
	out.Truncated = out.Returned < out.Total || !all
	return out, nil
}

// shown is a directory's path for people; the root is a dot.
func shown(path string) string {
	if path == "" {
		return "."
	}
	name, _ := git.Show(path)
	return name
}

// name is one directory entry by the directory's own word, not looked at further.
type name struct {
	text string
	kind string
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return wire.EntryDir
	case m&fs.ModeSymlink != 0:
		return wire.EntrySymlink
	case m.IsRegular():
		return wire.EntryFile
	}
	return wire.EntryOther
}

// readNames lists a directory: directories first, then by bytes; git's own names left out.
// The second result is false where there are more than maxNames.
func readNames(ctx context.Context, dir *os.Root) ([]name, bool, error) {
	f, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, false, walkFault(err)
	}
	defer f.Close()
	var names []name
	for {
		batch, err := f.ReadDir(1024)
		if ctx.Err() != nil {
			return nil, false, timedOut(ctx)
		}
		for _, e := range batch {
			if !git.Internal(e.Name()) {
				names = append(names, name{e.Name(), kindOf(e.Type())})
			}
		}
		if errors.Is(err, io.EOF) || len(names) > maxNames {
			break
		}
		if err != nil {
			return nil, false, walkFault(err)
		}
	}
	all := len(names) <= maxNames
	if !all {
		names = names[:maxNames]
	}
	slices.SortFunc(names, func(a, b name) int {
		if ad, bd := a.kind == wire.EntryDir, b.kind == wire.EntryDir; ad != bd {
			if ad {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.text, b.text)
	})
	return names, all, nil
}

func describe(dir *os.Root, path string, n name) wire.DirEntry {
	full := n.text
	if path != "" {
		full = path + "/" + n.text
	}
	e := wire.DirEntry{Kind: n.kind}
	e.Path, e.Lossy = git.Show(full)
	if n.kind == wire.EntryFile {
		if info, err := dir.Lstat(n.text); err == nil && info.Mode().IsRegular() {
			size := info.Size()
			e.Bytes = &size
		}
	}
	return e
}
