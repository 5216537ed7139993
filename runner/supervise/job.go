package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"webcodex/runner/wire"
)

// State of a Job's directory.
type State int

// States.
const (
	// Lost: nobody holds the lock and nobody wrote down an end.
	Lost State = iota
	Held
	Ended
	// Foreign: what lies there is of a later version, or cannot be read.
	Foreign
)

// Job is a Job's directory as a Runner sees it.
type Job struct {
	Dir    string
	Record Record
	Exit   Exit // where it is Ended
}

// Stdout and Stderr are its logs.
func (j *Job) Stdout() Reader { return Reader{j.Dir, wire.Stdout} }

// Stderr is the other one.
func (j *Job) Stderr() Reader { return Reader{j.Dir, wire.Stderr} }

// Open reads a Job's directory. Its state is what Look says.
func Open(dir string) (*Job, State) {
	j := &Job{Dir: dir}
	if err := read(filepath.Join(dir, recordName), &j.Record); err != nil || j.Record.Version > Version {
		if errors.Is(err, fs.ErrNotExist) && !j.held() {
			return j, Lost // its making broke off before anything was started
		}
		return j, Foreign
	}
	return j, j.Look()
}

// Look tells how the Job is now.
func (j *Job) Look() State {
	held := j.held()
	err := read(filepath.Join(j.Dir, exitName), &j.Exit)
	switch {
	case held:
		return Held
	case err == nil && j.Exit.Version <= Version:
		return Ended
	case errors.Is(err, fs.ErrNotExist):
		return Lost
	}
	return Foreign
}

// held reports that somebody has the lock; where that cannot be told, that nobody has.
func (j *Job) held() bool {
	f, err := os.Open(filepath.Join(j.Dir, lockName))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// Remove takes the directory away; it is left where the lock is held.
func (j *Job) Remove() error {
	f, err := os.Open(filepath.Join(j.Dir, lockName))
	if err == nil {
		defer f.Close()
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return fmt.Errorf("it lives: %w", err)
		}
	}
	return os.RemoveAll(j.Dir)
}

func read(name string, v any) error {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
