package files

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
)

// errMoved tells that a target is no longer what was checked, or what was put there.
var errMoved = errors.New("the target changed after it was checked")

// sidePrefix begins the names of files that exist only during a transaction.
const sidePrefix = ".webcodex-"

func sideName(suffix string) string {
	var b [8]byte
	rand.Read(b[:])
	return sidePrefix + hex.EncodeToString(b[:]) + suffix
}

// identity tells a file from every other and from itself with other content, as far as size
// and time tell. No device: its number may be another after a reboot.
type identity struct {
	Inode   uint64 `json:"inode"`
	Size    int64  `json:"size"`
	Changed int64  `json:"changed"` // modification time, nanoseconds
}

func identityOf(info os.FileInfo) identity {
	id := identity{Size: info.Size(), Changed: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.Inode = st.Ino
	}
	return id
}

// is reports whether info describes the file; the zero identity is no file's.
func (id identity) is(info os.FileInfo) bool {
	return id != identity{} && info != nil && id == identityOf(info)
}

// unchanged reports whether two looks at a name saw the same file with the same content, as
// far as size and time tell.
func unchanged(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode().Type() == b.Mode().Type()
}

func verify(dir *os.Root, name string, want os.FileInfo) error {
	got, err := look(dir, name)
	if err == nil && (got == nil || !unchanged(got, want)) {
		return errMoved
	}
	return err
}

// look is Lstat; nil where nothing is.
func look(dir *os.Root, name string) (os.FileInfo, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// discard removes one of a transaction's own files; "" and what is gone are fine,
// as is a directory that is gone.
func discard(dir *os.Root, name string) error {
	if name == "" || dir == nil {
		return nil
	}
	if err := dir.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// unsupported reports that the file system does not have an operation, or not here.
func unsupported(err error) bool {
	for _, e := range []error{syscall.EINVAL, syscall.EPERM, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EMLINK, syscall.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// exactly are these permissions, whatever the default ones are.
func exactly(mode fs.FileMode) func(fs.FileMode) fs.FileMode {
	return func(fs.FileMode) fs.FileMode { return mode }
}

// writeSide makes a synced file with this content next to a target and tells what it is. mode
// gives its permissions from the default ones; nil: those.
func writeSide(dir *os.Root, name string, data []byte, mode func(fs.FileMode) fs.FileMode) (identity, error) {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return identity{}, err
	}
	_, err = f.Write(data)
	if err == nil && mode != nil {
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			err = f.Chmod(mode(info.Mode().Perm()))
		}
	}
	if err == nil {
		err = f.Sync()
	}
	info, serr := f.Stat()
	if err = errors.Join(err, serr, f.Close()); err != nil {
		dir.Remove(name)
		return identity{}, err
	}
	return identityOf(info), nil
}

// linkSide makes a symbolic link next to a target and tells what it is.
func linkSide(dir *os.Root, name, to string) (identity, error) {
	if err := dir.Symlink(to, name); err != nil {
		return identity{}, err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return identity{}, err
	}
	return identityOf(info), nil
}

// fds opens two directories for calls that name files in both.
func fds(a, b *os.Root, do func(a, b int) error) error {
	da, err := a.Open(".")
	if err != nil {
		return err
	}
	defer da.Close()
	db, err := b.Open(".")
	if err != nil {
		return err
	}
	defer db.Close()
	return do(int(da.Fd()), int(db.Fd()))
}

// move renames between two opened directories and never over something that exists. Where
// the system cannot do that at once, the file has both names for a moment, and keeps them
// when that is the moment everything ends.
func move(from *os.Root, name string, to *os.Root, toName string) error {
	return fds(from, to, func(a, b int) error {
		err := renameFree(a, name, b, toName)
		if err != nil && unsupported(err) {
			if err = unix.Linkat(a, name, b, toName, 0); err == nil {
				return from.Remove(name)
			}
			if unsupported(err) {
				if there, lerr := look(to, toName); lerr != nil || there != nil {
					return errors.Join(lerr, badPath(reasonExists, nil))
				}
				return unix.Renameat(a, name, b, toName)
			}
		}
		if errors.Is(err, fs.ErrExist) {
			return badPath(reasonExists, err)
		}
		return err
	})
}

// moveBack is move for taking a change back; errMoved where somebody was quicker.
func moveBack(from *os.Root, name string, to *os.Root, toName string) error {
	err := move(from, name, to, toName)
	if f := fault.As(err); f != nil && f.Reason == reasonExists || errors.Is(err, fs.ErrNotExist) {
		return errMoved
	}
	return err
}

// swap exchanges two names of a directory.
func swap(dir *os.Root, a, b string) error {
	return fds(dir, dir, func(d, _ int) error { return renameSwap(d, a, b) })
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
