package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// abi is the version of Landlock that the kernel has, 0 for none.
func abi() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// Rights to files.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir  = unix.LANDLOCK_ACCESS_FS_READ_DIR
	write    = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	ofFile = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// writing are the rights to change something that a version knows.
func writing(version int) (rights uint64) {
	rights = write
	if version >= 2 {
		rights |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		rights |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	return rights
}

// listing is a directory whose entries were let be read one by one: what comes into it later
// cannot be, until the rules are made anew.
type listing struct {
	path        string
	dev, ino    uint64
	mtim, ctim  unix.Timespec
	quiet, gone bool
	names       map[string][2]uint64 // its entries then, each with what it was
}

func lookAt(path string) listing {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return listing{path: path, gone: true}
	}
	return listing{path: path, dev: uint64(st.Dev), ino: st.Ino, mtim: st.Mtim, ctim: st.Ctim,
		quiet: time.Since(time.Unix(st.Ctim.Unix())) > settled}
}

// knows reports that a path leads on from the directory as it did, or not through it.
func (l listing) knows(path string) bool {
	rest, in := strings.CutPrefix(filepath.Clean(path), strings.TrimSuffix(l.path, "/")+"/")
	if !in {
		return true
	}
	name, _, _ := strings.Cut(rest, "/")
	now, then := lookAt(filepath.Join(l.path, name)), l.names[name]
	return now.gone && then == [2]uint64{} || !now.gone && then == [2]uint64{now.dev, now.ino}
}

func (l listing) changed() bool {
	now := lookAt(l.path)
	return !l.quiet || now.dev != l.dev || now.ino != l.ino || now.mtim != l.mtim || now.ctim != l.ctim || now.gone != l.gone
}

// ruleset makes rules under which everything but dirs may be read, and only what lies in
// writable be written. A rule can only allow, so what lies beside a protected directory is allowed
// name by name; the directories above it cannot be listed.
func ruleset(version int, dirs, writable []string) (fd int, listed []listing, err error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: readFile | readDir | writing(version)}
	if version >= landlockNet {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	made, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, nil, fmt.Errorf("landlock: %w", errno)
	}
	b := &builder{fd: int(made), hidden: map[[2]uint64]bool{}}
	defer func() {
		if err != nil {
			_ = unix.Close(b.fd)
		}
	}()
	for _, d := range dirs {
		if now := lookAt(d); !now.gone {
			b.dirs, b.hidden[[2]uint64{now.dev, now.ino}] = append(b.dirs, d), true
		}
	}
	if err := b.reveal("/"); err != nil {
		return -1, nil, err
	}
	for _, d := range writable {
		if err := b.allow(d, readFile|readDir|writing(version)); err != nil {
			return -1, nil, err
		}
	}
	if err := b.allow(os.DevNull, readFile|unix.LANDLOCK_ACCESS_FS_WRITE_FILE); err != nil {
		return -1, nil, err
	}
	return b.fd, b.listed, nil
}

type builder struct {
	fd     int
	dirs   []string // protected, and there
	hidden map[[2]uint64]bool
	listed []listing
}

// reveal allows reading below a directory, but for what is protected.
func (b *builder) reveal(dir string) error {
	if !slices.ContainsFunc(b.dirs, func(d string) bool { return below(d, dir) }) {
		return b.allow(dir, readFile|readDir)
	}
	l := lookAt(dir) // before its entries: what comes between shows
	l.names = map[string][2]uint64{}
	b.listed = append(b.listed, l)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > maxListed {
		return fmt.Errorf("more than %d entries lie beside the data directory or above it", maxListed)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if now := lookAt(path); !now.gone {
			l.names[e.Name()] = [2]uint64{now.dev, now.ino}
		}
		if e.Type()&os.ModeSymlink != 0 {
			continue // it is allowed where what it leads to is
		}
		if e.IsDir() && slices.ContainsFunc(b.dirs, func(d string) bool { return below(d, path) }) {
			if !slices.Contains(b.dirs, path) {
				err = b.reveal(path)
			}
		} else {
			err = b.allow(path, readFile|readDir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// allow gives rights to a file or below a directory. What is gone or may not be reached needs none.
func (b *builder) allow(path string, rights uint64) error {
	at, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
			return err
		}
		return nil
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	switch {
	case b.hidden[[2]uint64{uint64(st.Dev), st.Ino}]:
		return nil // a protected directory under another name
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return nil
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		rights &= ofFile
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(b.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	// What has no place in a file system, as a pipe, cannot have a rule and needs none.
	if errno != 0 && errno != unix.EBADFD {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}
