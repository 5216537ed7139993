package eventlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
)

// ErrLocked is the cause of Open's fault when another process has the data directory.
var ErrLocked = errors.New("the data directory is locked by another process")

// Names inside the data directory.
const (
	lockName       = "lock"
	formatName     = "format"
	checkpointName = "checkpoint.json"
	storeName      = "log"
)

// dir is a locked data directory. The lock is taken before anything is read and held until
// the process ends or the log is closed: JetStream itself takes none, and
// two servers on one store acknowledge the same sequence twice. It is held on the directory
// itself, which nobody removes from under a server as a file is, and on the lock file, which
// older programs know alone.
type dir struct {
	path string
	self *os.File
	lock *os.File // nil: there is none on a file system that cannot be written
	// fixed tells that the file system cannot be written.
	fixed bool
}

// openDir creates the directory if it is missing, and locks it. Who only reads may have it on a
// file system that cannot be written.
func openDir(path string, reads bool) (*dir, error) {
	if path == "" {
		return nil, fault.New(fault.InvalidArguments, "no data directory is named")
	}
	if err := makeDurable(path); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the data directory cannot be created").
			WithNext("check its parent's permissions or name another with --data")
	}
	if err := makePrivate(path); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the data directory cannot be made private").
			WithNext("use a directory of your own, on a file system that can be written")
	}
	d := &dir{path: path}
	// os.Open sets CLOEXEC, so no child inherits the lock.
	var err error
	if d.self, err = os.Open(path); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "the data directory cannot be read")
	}
	if err = lockFile(d.self); err == nil || !errors.Is(err, ErrLocked) {
		// A network file system may lock files alone.
		err = d.lockByName(reads)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// makePrivate changes a mode only where it has to: a file system may be there to be read.
func makePrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	return os.Chmod(path, 0o700)
}

// lockByName holds the lock file.
func (d *dir) lockByName(reads bool) error {
	f, err := os.OpenFile(d.file(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, unix.EROFS) && reads {
		d.fixed = true
		if f, err = os.Open(d.file(lockName)); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	if errors.Is(err, unix.EROFS) {
		return fixedDir()
	}
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "the data directory cannot be written")
	}
	d.lock = f
	return lockFile(f)
}

// fixedDir is what opening a log says, whose server writes files of its own even for reading.
func fixedDir() error {
	return fault.New(fault.Unavailable, "the data directory lies on a file system that cannot be written").
		WithNext("`webcodex verify` reads it there; for anything else copy the directory to a disk that can be written and name that with --data")
}

func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return fault.Wrap(ErrLocked, fault.Conflict, "another WebCodex process has this data directory open").
			WithNext("use the running server, stop it, or name another directory with --data")
	}
	return fault.Wrap(err, fault.Unavailable, "the data directory cannot be locked on this file system")
}

// close gives the directory free at once: a child of ours that is between fork and exec has
// copies of both files, and would hold the locks until then.
func (d *dir) close() {
	for _, f := range []*os.File{d.lock, d.self} {
		if f != nil {
			_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
			_ = f.Close()
		}
	}
}

func (d *dir) file(name string) string { return filepath.Join(d.path, name) }

func (d *dir) store() string { return d.file(storeName) }

// blocks is where JetStream keeps the stream's block files.
func (d *dir) blocks() string { return filepath.Join(d.streamDir(), "msgs") }

func (d *dir) streamDir() string {
	return filepath.Join(d.store(), "jetstream", accountLog, "streams", streamName)
}

// format is what the data directory says about itself.
type format struct {
	Format int `json:"format"`
	// MaxBytes is the log's budget, settled at the first start, so that a stream whose meta
	// file was lost is re-created with the identical configuration.
	MaxBytes int64 `json:"log_max_bytes"`
}

// readFormat reads the format file; the zero format means that there is none.
func (d *dir) readFormat() (format, error) {
	var f format
	b, err := os.ReadFile(d.file(formatName))
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fault.Wrap(err, fault.Unavailable, "the data directory's format file cannot be read")
	}
	if err := json.Unmarshal(b, &f); err != nil || f.Format < 1 {
		return f, fault.New(fault.LogDamaged, "the data directory's format file is not readable as one").
			WithNext("restore the data directory from a backup, or move %s away: the next start writes it again", formatName)
	}
	if f.Format > FormatVersion {
		return f, fault.New(fault.Unavailable,
			"the data directory has format %d and this program knows %d", f.Format, FormatVersion).
			WithReason(damageNewer).WithNext("use the newer WebCodex that wrote it, or another directory")
	}
	return f, nil
}

// writeFile replaces a small file atomically and durably.
func (d *dir) writeFile(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return d.writeBytes(name, append(b, '\n'))
}

func (d *dir) writeBytes(name string, b []byte) error {
	tmp := d.file(name + ".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, d.file(name))
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncPath(d.path)
}

// makeDurable creates a directory with what is missing above it, and makes each new entry
// durable: a power cut must not take the directory from under a log that was acknowledged.
func makeDurable(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	var fresh []string
	for p := path; ; p = filepath.Dir(p) {
		if _, err := os.Stat(p); err == nil || p == filepath.Dir(p) {
			break
		}
		fresh = append(fresh, p)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, p := range fresh {
		if err := syncPath(filepath.Dir(p)); err != nil {
			return err
		}
	}
	return nil
}

// syncPath makes a file's data, or a directory's entries, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// freeSpace is what the file system has left for this user, and whether it could be told.
func freeSpace(path string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
