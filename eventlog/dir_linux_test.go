package eventlog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// given an open log, when somebody removes its lock file, then no second process opens the
// directory all the same, to write or to read; and once it is closed the next one may.
func TestLockOutlivesItsFile(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	for _, reads := range []bool{false, true} {
		second, err := Open(context.Background(), Options{Dir: dir, MaxBytes: 64 << 20, Server: event.NewInstanceID(), ReadOnly: reads})
		if !errors.Is(err, ErrLocked) || fault.KindOf(err) != fault.Conflict {
			t.Errorf("read-only %v: %v", reads, err)
		}
		if err == nil {
			_ = second.Close()
		}
	}
	if _, err := VerifyFiles(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrLocked) {
		t.Errorf("verify: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

// given a process that knows the lock file alone, as older programs do, then the directory is
// its own.
func TestLockFileOfAnOlderProgramIsHonoured(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := openDir(dir, false); !errors.Is(err, ErrLocked) {
		t.Errorf("%v", err)
	}
}

// given a child that has copies of the files, as each has between fork and exec, when the directory
// is closed, then it is free.
func TestClosedDirectoryIsFreeBesideAFork(t *testing.T) {
	path := t.TempDir()
	d, err := openDir(path, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*os.File{d.self, d.lock} {
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	if _, err := openDir(path, false); !errors.Is(err, ErrLocked) {
		t.Errorf("while it is open: %v", err)
	}
	d.close()
	d, err = openDir(path, false)
	if err != nil {
		t.Fatal(err)
	}
	d.close()
}

// given a data directory on a file system that cannot be written, then its files are verified
// there, with and without a lock file, and opening the log says what can be done instead.
func TestLogOnAFileSystemThatCannotBeWritten(t *testing.T) {
	mount := t.TempDir()
	if err := unix.Mount("none", mount, "tmpfs", 0, "size=96m,mode=0700"); err != nil {
		t.Skipf("this machine mounts no small disk: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
	dir := filepath.Join(mount, "data")
	remount := func(flags uintptr) {
		t.Helper()
		if err := unix.Mount("none", mount, "tmpfs", unix.MS_REMOUNT|flags, "size=96m"); err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, dir)
	if _, err := l.Append(context.Background(), draft(l, t, aggregates(1)[0])); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, with := range []bool{true, false} {
		if !with {
			remount(0)
			if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
				t.Fatal(err)
			}
		}
		remount(unix.MS_RDONLY)
		if r, err := VerifyFiles(t.Context(), Options{Dir: dir}); err != nil || !r.OK() || r.Commits != 2 {
			t.Errorf("lock file %v: %+v %v", with, r, err)
		}
		for _, reads := range []bool{true, false} {
			_, err := Open(context.Background(), Options{Dir: dir, Server: event.NewInstanceID(), ReadOnly: reads})
			if f := fault.As(err); f.Kind != fault.Unavailable || !strings.Contains(f.Message, "cannot be written") || !strings.Contains(f.Next, "webcodex verify") {
				t.Errorf("lock file %v, read-only %v: %v (%s)", with, reads, err, f.Next)
			}
		}
	}
}
