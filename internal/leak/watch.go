package leak

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"webcodex/internal/proc"
)

// Run is a run of many tests, in processes of their own.
type Run struct {
	tmp    string
	held   *os.File // tmp, locked
	before state
}

// Watch makes everything that descends from this process found at the End, whatever it sheds and
// whoever of its parents ends, and gives it a directory of its own for temporary files.
func Watch() (*Run, error) {
	keepOrphans()
	held, err := shortDir()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(empty(held.Name()), os.Setenv("TMPDIR", held.Name())); err != nil {
		return nil, err
	}
	return &Run{tmp: held.Name(), held: held, before: state{processes: descendants(), groups: allGroups()}}, nil
}

// End names what is left of the run, and removes its directory. Empty control groups of processes
// that were killed go as they go at the next start of a Runner.
func (r *Run) End() []string {
	proc.ControlGroups()
	defer r.held.Close()
	defer os.RemoveAll(r.tmp)
	return r.before.waited(func() state { return state{processes: descendants(), groups: allGroups()} }, r.tmp)
}

// shortDir makes a directory for temporary files. Its name is short, so that sockets in directories
// of tests have room, and the same in each run in this checkout, so that results are kept: a test that
// asks for the directory is another test where it is another one. One that a killed run has left is
// taken over.
func shortDir() (*os.File, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for n := crc32.ChecksumIEEE([]byte(here)); ; n++ {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("w%04x", n&0xffff))
		if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
			return nil, err
		}
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
			continue // somebody else's
		}
		held, err := os.Open(dir)
		if err != nil {
			continue
		}
		if unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			_ = held.Close()
			continue
		}
		return held, nil
	}
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
