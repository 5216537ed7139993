package runner

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
)

// policy is where Projects may lie. What it says about a path it finds by device and inode, at
// the directories that really lie there: never by comparing texts.
type policy struct {
	deny []string // our own directories

	mu    sync.RWMutex
	roots []string // the directories below which callers may have Projects
}

// allow replaces the allowed roots.
func (p *policy) allow(roots []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roots = append([]string(nil), roots...)
}

func (p *policy) allowedRoots() []string {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.roots
}

// check refuses a directory that is not one of the allowed roots or below one, and one that
// reaches our own directories. What does not exist yet lies where its nearest parent lies.
func (p *policy) check(path string) error {
	here, whole, err := nearest(path)
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(here)
	for err != nil && here != filepath.Dir(here) { // a file, or what may not be opened: its parent tells
		here, whole = filepath.Dir(here), false
		dir, err = os.OpenRoot(here)
	}
	if err != nil {
		return fault.Wrap(err, fault.InvalidPath, "the directory cannot be opened").WithField("path").WithReason("unreadable")
	}
	defer dir.Close()
	if whole {
		return p.judge(dir)
	}
	return p.judgeIn(dir)
}

// judge is check for an opened directory.
func (p *policy) judge(dir *os.Root) error {
	if err := p.denied(dir); err != nil {
		return err
	}
	_, err := p.within(dir)
	return err
}

// judgeIn is check for what may be made in an opened directory.
func (p *policy) judgeIn(dir *os.Root) error {
	for _, own := range p.deny {
		if isIn(dir, own) {
			return dataDirectory(nil)
		}
	}
	_, err := p.within(dir)
	return err
}

// within gives the allowed root that an opened directory is or lies in.
func (p *policy) within(dir *os.Root) (string, error) {
	for _, root := range p.allowedRoots() {
		at, err := inodeAt(root)
		if err != nil {
			continue // a root that is not there allows nothing
		}
		if in, err := liesIn(dir, at); in && err == nil {
			return root, nil
		}
	}
	return "", fault.New(fault.InvalidPath, "the Runner's owner has not allowed this directory").WithField("path").WithReason("outside_allowed_roots").
		WithNext("name a directory below one of its allowed roots, or ask its owner to allow it (allowed_roots)")
}

// denied refuses a directory that holds or lies in one of our own: a write scope on a Project
// there would reach the log, the token and this very policy.
func (p *policy) denied(dir *os.Root) error {
	at, err := inodeOf(dir)
	for _, own := range p.deny {
		if err != nil || holds(at, own) || isIn(dir, own) {
			return dataDirectory(err)
		}
	}
	return nil
}

func dataDirectory(err error) error {
	return fault.Wrap(err, fault.InvalidPath, "this directory contains WebCodex's own data or settings, or lies in them").WithField("path").
		WithReason("data_directory").WithNext("name a repository, or another data directory with --data")
}

// holds reports that the directory at is one of ours or holds it. One that does not exist yet
// would be made in its nearest parent. What cannot be looked at is not cleared.
func holds(at inode, own string) bool {
	real, _, err := nearest(own)
	return err != nil || isOrBelow(real, at)
}

// isIn reports that an opened directory is one of ours or lies in it.
func isIn(dir *os.Root, own string) bool {
	at, err := inodeAt(own)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	in, err := liesIn(dir, at)
	return in || err != nil
}

// nearest gives the directory at a path, or its nearest parent that exists, with symlinks
// resolved; whole tells that it is the path itself.
func nearest(path string) (real string, whole bool, _ error) {
	if strings.ContainsRune(path, 0) {
		return "", false, fault.New(fault.InvalidPath, "a path has no NUL byte").WithField("path").WithReason("nul")
	}
	abs, err := filepath.Abs(path)
	for whole = true; err == nil; whole = false {
		real, rerr := filepath.EvalSymlinks(abs)
		if rerr == nil {
			return real, whole, nil
		}
		if _, lerr := os.Lstat(abs); !errors.Is(rerr, fs.ErrNotExist) || lerr == nil {
			err = rerr // a symlink to nothing leads anywhere
			break
		}
		abs = filepath.Dir(abs)
	}
	return "", false, fault.Wrap(err, fault.InvalidPath, "the directory cannot be found").WithField("path").WithReason("not_found")
}

// liesIn reports that an opened directory is the directory at, or lies below it. It asks the
// opened one for its parents, so a swap of the path makes no difference.
func liesIn(dir *os.Root, at inode) (bool, error) {
	d, err := dir.Open(".")
	if err != nil {
		return false, err
	}
	defer d.Close()
	return climb(int(d.Fd()), ".", at)
}

// isOrBelow reports that the directory at a resolved path is the directory at, or lies below it.
// What cannot be looked at is taken for it.
func isOrBelow(path string, at inode) bool {
	found, err := climb(unix.AT_FDCWD, path, at)
	return found || err != nil
}

// climb looks for the directory at in a directory and all its parents.
func climb(fd int, path string, at inode) (bool, error) {
	top, err := inodeAt("/")
	var last inode
	for n := 0; err == nil && n < maxClimb; n++ {
		var st unix.Stat_t
		if err = unix.Fstatat(fd, path, &st, 0); err != nil {
			break
		}
		here := inode{Device: uint64(st.Dev), Inode: st.Ino}
		if here.Device == at.Device && here.Inode == at.Inode {
			return true, nil
		}
		if here == top && here == last {
			return false, nil // the top is its own parent
		}
		last, path = here, path+"/.."
	}
	return false, errors.Join(err, errClimb)
}

// errClimb says that the parents of a directory could not be looked at, or had no end.
var errClimb = errors.New("the parents of a directory could not be looked at")

func realDir(path string) (string, error) {
	bad := func(err error, reason, text string) error {
		return fault.Wrap(err, fault.InvalidPath, "%s", text).WithField("path").WithReason(reason)
	}
	if strings.ContainsRune(path, 0) {
		return "", bad(nil, "nul", "a path has no NUL byte")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", bad(err, "not_found", "the directory cannot be found")
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", bad(err, "not_found", "the directory does not exist")
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", bad(err, "not_found", "the directory does not exist")
	}
	if !info.IsDir() {
		return "", bad(nil, "not_directory", "a Project is a directory")
	}
	return real, nil
}

func inodeOf(root *os.Root) (inode, error) {
	d, err := root.Open(".")
	if err != nil {
		return inode{}, err
	}
	defer d.Close()
	return bornAt(int(d.Fd()))
}

func bornOf(path string) (inode, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return inode{}, err
	}
	defer root.Close()
	return inodeOf(root)
}

func inodeAt(path string) (inode, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return inode{}, err
	}
	return inode{Device: uint64(st.Dev), Inode: st.Ino}, nil
}
