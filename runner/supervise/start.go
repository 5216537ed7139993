package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/internal/proc"
)

// Pending is a Job whose directory is made and locked and that was not started.
type Pending struct {
	*Job
	lock *os.File
}

// Files of a supervisor beside the standard three.
const (
	statusFD = 3 + iota
	dirFD
	lockFD
	cwdFD
)

// Prepare makes a Job's directory below jobs, with the record in it and the lock held: from here
// on it is never free until all of the Job has ended, because the supervisor inherits it.
func Prepare(jobs string, rec Record) (*Pending, error) {
	if err := os.MkdirAll(jobs, 0o700); err != nil {
		return nil, err
	}
	dir := filepath.Join(jobs, string(rec.ID))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	rec.Version = Version
	p := &Pending{Job: &Job{Dir: dir, Record: rec}}
	var err error
	p.lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = take(p.lock)
	}
	if err == nil {
		err = replace(filepath.Join(dir, recordName), rec, true)
	}
	if err == nil {
		err = errors.Join(syncDir(dir), syncDir(jobs))
	}
	if err != nil {
		p.Abandon()
		return nil, err
	}
	return p, nil
}

// take locks a file that nobody else keeps locked. Who looks whether a Job lives (held) has its
// lock for a moment, and may just be looking at this one.
func take(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Abandon takes away what was not started.
func (p *Pending) Abandon() {
	_ = os.RemoveAll(p.Dir)
	p.free()
}

func (p *Pending) free() {
	if p.lock != nil {
		_ = p.lock.Close()
		p.lock = nil
	}
}

// Word is what a supervisor says once: the command runs, or why it does not.
type Word struct {
	Started bool           `json:"started"`
	Reason  string         `json:"reason,omitempty"` // a proc.SpawnError's
	Child   *proc.Identity `json:"child,omitempty"`
}

// ErrNoSupervisor tells that the supervisor itself could not be started; nothing was.
var ErrNoSupervisor = errors.New("the supervisor could not be started")

// Start starts the supervisor by argv, which runs Main, and waits for its word. Without one the
// Job's directory tells how it stands; ok is false then. Error: ErrNoSupervisor.
func (p *Pending) Start(argv []string, spec Spec, cwd *os.File) (w Word, ok bool, err error) {
	defer p.free()
	spec.Record = p.Record
	body, err := json.Marshal(spec)
	if err == nil && len(body) > maxSpec {
		err = fmt.Errorf("it has %d bytes", len(body))
	}
	if err != nil {
		return Word{}, false, fmt.Errorf("%w: %w", ErrNoSupervisor, err)
	}
	said, err := p.launch(argv, body, cwd)
	if err != nil {
		return Word{}, false, fmt.Errorf("%w: %w", ErrNoSupervisor, err)
	}
	defer said.Close()
	_ = said.SetReadDeadline(time.Now().Add(handshake))
	ok = json.NewDecoder(said).Decode(&w) == nil
	return w, ok, nil
}

// launch gives the supervisor what it needs and nothing else of this process.
func (p *Pending) launch(argv []string, spec []byte, cwd *os.File) (said *os.File, err error) {
	var open []*os.File
	defer func() {
		for _, f := range open {
			_ = f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	specR, specW := pipe()
	saidR, saidW := pipe()
	var null, dir *os.File
	if err == nil {
		null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	if err == nil {
		dir, err = os.Open(p.Dir)
	}
	for _, f := range []*os.File{specR, saidW, null, dir} {
		if f != nil {
			open = append(open, f)
		}
	}
	var sup *os.Process
	if err == nil {
		sup, err = os.StartProcess(argv[0], append(argv[1:len(argv):len(argv)], string(p.Record.ID)), &os.ProcAttr{
			Env:   append(proc.Environment(os.Environ(), nil), proc.Helper, proc.MarkVariable+"="+os.Getenv(proc.MarkVariable)),
			Files: []*os.File{specR, null, null, saidW, dir, p.lock, cwd}, Sys: &syscall.SysProcAttr{Setsid: true}})
	}
	if err != nil {
		for _, f := range []*os.File{specW, saidR} {
			if f != nil {
				_ = f.Close()
			}
		}
		return nil, err
	}
	go func() { _, _ = sup.Wait() }()
	// It starts nothing before it has read all of it.
	go func() {
		_, _ = specW.Write(append(spec, '\n'))
		_ = specW.Close()
	}()
	return saidR, nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
