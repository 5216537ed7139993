package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"webcodex/internal/fault"
	"webcodex/internal/git"
)

// tree walks one Project. It keeps the chain of directories of the last place open, so that
// neighbouring files cost one open each. Not for concurrent use; close it.
type tree struct {
	root  *os.Root
	git   os.FileInfo // the root's .git entry, nil where there is none
	bare  bool        // the root itself is a git directory
	names []string
	dirs  []*os.Root // dirs[i] is names[i] in its parent
}

// place is a name in an opened directory, which stays open until the tree moves on or closes.
type place struct {
	dir  *os.Root
	name string
	path string      // project-relative, links resolved
	info os.FileInfo // Lstat; nil where nothing is there
	// missing are the directories to make between dir and name.
	missing []string
}

func newTree(root *os.Root) *tree {
	t := &tree{root: root, bare: isGitDir(root)}
	if info, err := root.Lstat(".git"); err == nil {
		t.git = info
	}
	return t
}

func (t *tree) close() { t.rewind(0) }

func (t *tree) rewind(depth int) {
	for i := len(t.dirs) - 1; i >= depth; i-- {
		t.dirs[i].Close()
	}
	t.names, t.dirs = t.names[:depth], t.dirs[:depth]
}

func (t *tree) top() *os.Root {
	if len(t.dirs) == 0 {
		return t.root
	}
	return t.dirs[len(t.dirs)-1]
}

// enter opens the directory that info described. A name swapped since then for anything else
// is noticed by its identity.
func (t *tree) enter(name string, info os.FileInfo) error {
	// The dot makes the name an inner component, which is opened as a directory or not at all.
	sub, err := t.top().OpenRoot(name + "/.")
	if err != nil {
		return walkFault(err)
	}
	got, err := sub.Stat(".")
	switch {
	case err != nil:
		err = walkFault(err)
	case !os.SameFile(info, got):
		err = badPath(reasonChanged, nil)
	case t.git != nil && os.SameFile(got, t.git), isGitDir(sub):
		err = badPath(reasonGitInternal, nil)
	case len(t.dirs) >= maxDepth:
		err = badPath(reasonTooLong, nil)
	}
	if err != nil {
		sub.Close()
		return err
	}
	t.names, t.dirs = append(t.names, name), append(t.dirs, sub)
	return nil
}

// isGitDir reports whether d is laid out as a git directory: a bare repository, or one kept
// apart from its working tree. Its hooks and configuration run programs.
func isGitDir(d *os.Root) bool {
	has := func(name string) bool { _, err := d.Lstat(name); return err == nil }
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// finding says how find treats the last component.
type finding struct {
	follow bool // a symbolic link at the end is followed
	create bool // it may be missing, and directories before it
}

// find walks to parts and gives their place.
func (t *tree) find(parts []string, how finding) (place, error) {
	if t.bare {
		return place{}, badPath(reasonGitInternal, nil)
	}
	same := 0
	for same < len(t.names) && same < len(parts)-1 && t.names[same] == parts[same] {
		same++
	}
	t.rewind(same)
	todo, links := parts[same:], 0
	for len(todo) > 0 {
		name, last := todo[0], len(todo) == 1
		if name == ".." {
			if len(t.names) == 0 {
				return place{}, badPath(reasonSymlinkOutside, nil)
			}
			t.rewind(len(t.names) - 1)
			todo = todo[1:]
			continue
		}
		if name == "." { // the path ends like a directory's
			break
		}
		if git.Internal(name) {
			return place{}, badPath(reasonGitInternal, nil)
		}
		info, err := t.top().Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && how.create:
			return t.lacking(todo)
		case err != nil:
			return place{}, walkFault(err)
		case info.Mode()&fs.ModeSymlink != 0 && (!last || how.follow):
			if links++; links > maxLinks {
				return place{}, badPath(reasonSymlinkLoop, nil)
			}
			target, err := t.target(name)
			if err != nil {
				return place{}, err
			}
			todo = append(target, todo[1:]...)
			continue
		case last:
			return place{dir: t.top(), name: name, path: t.join(name), info: info}, nil
		case !info.IsDir():
			return place{}, badPath(reasonNotDirectory, nil)
		}
		if err := t.enter(name, info); err != nil {
			return place{}, err
		}
		todo = todo[1:]
	}
	// A link led back to a directory that is open already, or the path ends like one's.
	info, err := t.top().Stat(".")
	if err != nil {
		return place{}, walkFault(err)
	}
	return place{dir: t.top(), name: ".", path: t.join(""), info: info}, nil
}

// lacking is the place of something that does not exist yet.
func (t *tree) lacking(todo []string) (place, error) {
	if todo[len(todo)-1] == "." {
		return place{}, badPath(reasonNotDirectory, nil)
	}
	for _, name := range todo {
		// Below a missing name a link's target cannot be walked: what it will be is not known.
		if name == ".." {
			return place{}, badPath(reasonSymlinkOutside, nil)
		}
		if git.Internal(name) {
			return place{}, badPath(reasonGitInternal, nil)
		}
	}
	n := len(todo) - 1
	return place{dir: t.top(), name: todo[n], path: t.join(strings.Join(todo, "/")), missing: todo[:n]}, nil
}

// target reads a symbolic link and splits where it leads.
func (t *tree) target(name string) ([]string, error) {
	to, err := t.top().Readlink(name)
	if err != nil {
		return nil, walkFault(err)
	}
	if strings.HasPrefix(to, "/") || to == "" {
		return nil, badPath(reasonSymlinkOutside, nil)
	}
	var parts []string
	for part := range strings.SplitSeq(to, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	if len(parts) > maxDepth {
		return nil, badPath(reasonTooLong, nil)
	}
	return parts, nil
}

func (t *tree) join(name string) string {
	all := strings.Join(t.names, "/")
	switch {
	case all == "":
		return name
	case name == "":
		return all
	}
	return all + "/" + name
}

// directory walks to a directory and gives it with its path; no parts is the root. It stays
// open until the tree moves on.
func (t *tree) directory(parts []string) (*os.Root, string, error) {
	if len(parts) == 0 {
		if t.bare {
			return nil, "", badPath(reasonGitInternal, nil)
		}
		t.rewind(0)
		return t.root, "", nil
	}
	p, err := t.find(parts, finding{follow: true})
	if err != nil {
		return nil, "", err
	}
	if !p.info.IsDir() {
		return nil, "", badPath(reasonNotDirectory, nil)
	}
	if p.name != "." {
		if err := t.enter(p.name, p.info); err != nil {
			return nil, "", err
		}
	}
	return t.top(), p.path, nil
}

// latest is open for those who only read: where another file took the name between the look and
// the opening, as every edit does, it looks again, a few times.
func (p place) latest() (*os.File, os.FileInfo, error) {
	for looks := 1; ; looks++ {
		f, info, err := p.open()
		if err == nil || looks == maxLooks || fault.As(err).Reason != reasonChanged {
			return f, info, err
		}
		if p.info, err = p.dir.Lstat(p.name); err != nil {
			return nil, nil, walkFault(err)
		}
	}
}

// open opens a regular file for reading and proves that it is the one info described. It
// never waits: a FIFO put in its place meanwhile is opened without blocking and refused.
func (p place) open() (*os.File, os.FileInfo, error) {
	switch {
	case p.info == nil:
		return nil, nil, badPath(reasonNotFound, nil)
	case p.info.Mode()&fs.ModeSymlink != 0:
		return nil, nil, badPath(reasonSymlink, nil)
	case !p.info.Mode().IsRegular():
		return nil, nil, badPath(reasonNotRegular, nil)
	}
	f, err := p.dir.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, walkFault(err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = walkFault(err)
	case !info.Mode().IsRegular():
		err = badPath(reasonNotRegular, nil)
	case !os.SameFile(info, p.info):
		err = badPath(reasonChanged, nil)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// walkFault is what a system error on the way says about a path.
func walkFault(err error) error {
	reason := reasonUnreadable
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = reasonNotFound
	case errors.Is(err, syscall.ENOTDIR):
		reason = reasonNotDirectory
	case errors.Is(err, syscall.ENAMETOOLONG):
		reason = reasonTooLong
	case errors.Is(err, syscall.ELOOP):
		reason = reasonChanged
	case errors.Is(err, syscall.ENXIO):
		reason = reasonNotRegular
	}
	return badPath(reason, err)
}
