package files

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// action is one step of a transaction on one file. stage prepares beside the target and
// leaves it alone; commit makes the change and cleans up after itself when it fails; undo
// takes a commit back; settle drops what undo would have needed; unstage drops what stage
// made and commit did not use.
type action interface {
	stage() error
	commit() error
	undo() error
	settle()
	unstage()
	// paths are what the action changes, for the report.
	paths() []string
	// directories are synced after the commit.
	directories() []*os.Root
}

// errMoved tells that a target is no longer what was checked.
var errMoved = errors.New("the target changed after it was checked")

// stuckError is a commit that failed and could not be cleaned up after: the paths of its
// action are changed.
type stuckError struct{ error }

func (e stuckError) Unwrap() error { return e.error }

// cleaned is the error of a failed commit after cleaning up.
func cleaned(err, cleaning error) error {
	if cleaning != nil {
		return stuckError{errors.Join(err, cleaning)}
	}
	return err
}

// sidePrefix begins the names of files that exist only during a transaction.
const sidePrefix = ".webcodex-"

func sideName(suffix string) string {
	var b [8]byte
	rand.Read(b[:])
	return sidePrefix + hex.EncodeToString(b[:]) + suffix
}

// unchanged reports whether two looks at a name saw the same file with the same content, as
// far as size and time tell.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode().Type() == b.Mode().Type()
}

func verify(dir *os.Root, name string, want os.FileInfo) error {
	got, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !unchanged(got, want) {
		return errMoved
	}
	return err
}

// noLinks reports that the file system has no hard links, or not here.
func noLinks(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK, syscall.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// writeSide makes a synced file with this content next to a target.
func writeSide(dir *os.Root, name string, data []byte, mode *fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && mode != nil {
		err = f.Chmod(*mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		dir.Remove(name)
	}
	return err
}

// replace puts new content in the place of a regular file.
type replace struct {
	at     place
	before []byte
	after  []byte
	temp   string
	backup string
}

func (a *replace) stage() error {
	mode := a.at.info.Mode().Perm()
	a.temp = sideName(".tmp")
	return writeSide(a.at.dir, a.temp, a.after, &mode)
}

func (a *replace) commit() error {
	backup := sideName(".old")
	err := a.at.dir.Link(a.at.name, backup)
	switch {
	case err == nil:
		err = verify(a.at.dir, backup, a.at.info)
	case errors.Is(err, fs.ErrNotExist):
		return errMoved
	case noLinks(err):
		mode := a.at.info.Mode().Perm()
		if err = writeSide(a.at.dir, backup, a.before, &mode); err == nil {
			err = verify(a.at.dir, a.at.name, a.at.info)
		}
	default:
		return err
	}
	if err == nil {
		err = a.at.dir.Rename(a.temp, a.at.name)
	}
	if err != nil {
		a.at.dir.Remove(backup)
		return err
	}
	a.temp, a.backup = "", backup
	return nil
}

func (a *replace) undo() error { return a.at.dir.Rename(a.backup, a.at.name) }
func (a *replace) settle()     { a.at.dir.Remove(a.backup) }
func (a *replace) unstage() {
	if a.temp != "" {
		a.at.dir.Remove(a.temp)
	}
}
func (a *replace) paths() []string         { return []string{a.at.path} }
func (a *replace) directories() []*os.Root { return []*os.Root{a.at.dir} }

// create makes a file where nothing is, with the directories before it.
type create struct {
	tree    *tree
	at      place
	content []byte
	temp    string
	made    []madeDir
}

type madeDir struct {
	in   *os.Root
	name string
}

func (a *create) stage() error {
	if err := a.tree.make(&a.at, &a.made); err != nil {
		return err
	}
	a.temp = sideName(".tmp")
	return writeSide(a.at.dir, a.temp, a.content, nil)
}

// make creates the missing directories of a place and moves it into the last one.
func (t *tree) make(at *place, made *[]madeDir) error {
	for _, name := range at.missing {
		err := t.top().Mkdir(name, 0o777)
		if err == nil {
			*made = append(*made, madeDir{t.top(), name})
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := t.top().Lstat(name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return errMoved
		}
		if err := t.enter(name, info); err != nil {
			return err
		}
	}
	at.dir, at.missing = t.top(), nil
	return nil
}

// unmake takes back made directories, but never what someone put there meanwhile: it removes
// empty directories only.
func unmake(made []madeDir) {
	for i := len(made) - 1; i >= 0; i-- {
		if d, err := made[i].in.Open("."); err == nil {
			unix.Unlinkat(int(d.Fd()), made[i].name, unix.AT_REMOVEDIR)
			d.Close()
		}
	}
}

func (a *create) commit() error {
	err := a.at.dir.Link(a.temp, a.at.name)
	if err != nil && noLinks(err) {
		if _, lerr := a.at.dir.Lstat(a.at.name); lerr == nil {
			return badPath(reasonExists, nil)
		}
		if err = a.at.dir.Rename(a.temp, a.at.name); err == nil {
			a.temp = ""
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return badPath(reasonExists, err)
	}
	return err
}

func (a *create) undo() error {
	if a.temp != "" {
		mine, err1 := a.at.dir.Lstat(a.temp)
		there, err2 := a.at.dir.Lstat(a.at.name)
		if err1 == nil && (err2 != nil || !os.SameFile(mine, there)) {
			return errMoved // what is there is not ours to remove
		}
	}
	return a.at.dir.Remove(a.at.name)
}
func (a *create) settle() {
	if a.temp != "" {
		a.at.dir.Remove(a.temp)
	}
	a.temp, a.made = "", nil
}
func (a *create) unstage() {
	if a.temp != "" {
		a.at.dir.Remove(a.temp)
	}
	unmake(a.made)
}
func (a *create) paths() []string         { return []string{a.at.path} }
func (a *create) directories() []*os.Root { return []*os.Root{a.at.dir} }

// remove deletes a file, or a symbolic link itself.
type remove struct {
	at     place
	backup string
}

func (a *remove) stage() error { return nil }

func (a *remove) commit() error {
	if err := verify(a.at.dir, a.at.name, a.at.info); err != nil {
		return err
	}
	backup := sideName(".old")
	if err := a.at.dir.Rename(a.at.name, backup); err != nil {
		return err
	}
	if err := verify(a.at.dir, backup, a.at.info); err != nil {
		return cleaned(err, a.at.dir.Rename(backup, a.at.name))
	}
	a.backup = backup
	return nil
}

func (a *remove) undo() error {
	if _, err := a.at.dir.Lstat(a.at.name); err == nil {
		return fs.ErrExist // someone made a new one: it is theirs
	}
	return a.at.dir.Rename(a.backup, a.at.name)
}
func (a *remove) settle()                 { a.at.dir.Remove(a.backup) }
func (a *remove) unstage()                {}
func (a *remove) paths() []string         { return []string{a.at.path} }
func (a *remove) directories() []*os.Root { return []*os.Root{a.at.dir} }

// rename moves a file to a name where nothing is.
type rename struct {
	from, to place
	tree     *tree // of to
	made     []madeDir
}

func (a *rename) stage() error { return a.tree.make(&a.to, &a.made) }

func (a *rename) commit() error {
	if err := verify(a.from.dir, a.from.name, a.from.info); err != nil {
		return err
	}
	if err := move(a.from.dir, a.from.name, a.to.dir, a.to.name); err != nil {
		return err
	}
	if err := verify(a.to.dir, a.to.name, a.from.info); err != nil {
		return cleaned(err, move(a.to.dir, a.to.name, a.from.dir, a.from.name))
	}
	return nil
}

func (a *rename) undo() error             { return move(a.to.dir, a.to.name, a.from.dir, a.from.name) }
func (a *rename) settle()                 { a.made = nil }
func (a *rename) unstage()                { unmake(a.made) }
func (a *rename) paths() []string         { return []string{a.from.path, a.to.path} }
func (a *rename) directories() []*os.Root { return []*os.Root{a.from.dir, a.to.dir} }

// move renames between two opened directories and never over something that exists.
func move(from *os.Root, name string, to *os.Root, toName string) error {
	a, err := from.Open(".")
	if err != nil {
		return err
	}
	defer a.Close()
	b, err := to.Open(".")
	if err != nil {
		return err
	}
	defer b.Close()
	err = unix.Linkat(int(a.Fd()), name, int(b.Fd()), toName, 0)
	switch {
	case err == nil:
		if err = from.Remove(name); err != nil {
			return cleaned(err, to.Remove(toName))
		}
		return nil
	case errors.Is(err, fs.ErrExist):
		return badPath(reasonExists, err)
	case !noLinks(err):
		return err
	}
	if _, err := to.Lstat(toName); err == nil {
		return badPath(reasonExists, nil)
	}
	return unix.Renameat(int(a.Fd()), name, int(b.Fd()), toName)
}

// systemReason names a system error that a caller can act on.
func systemReason(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "no_space"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "permission"
	case errors.Is(err, fs.ErrNotExist):
		return reasonChanged
	}
	return "io"
}
