package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"webcodex/internal/fault"
)

// Bounds of coming back by itself after the disk failed or filled (faults.md 2.13).
const (
	// maxRestarts bounds the lives after a disk that failed. A disk that is only full is
	// waited for as long as it takes.
	maxRestarts  = 5
	restartPause = 2 * time.Second
	// maxPause is how long it may take at most until freed space is noticed.
	maxPause   = 30 * time.Second
	restartEnv = "WEBCODEX_RESTART"
	// fullBelow is the free space below which an end without another cause is the full
	// disk's: the embedded log server does not say why it cannot write.
	fullBelow = 16 << 20
)

// brokenLog is the end of a server whose log stopped writing: what it served goes on in the
// next life.
type brokenLog struct {
	err      error
	projects []string
	port     int
}

func (b *brokenLog) Error() string { return b.err.Error() }
func (b *brokenLog) Unwrap() error { return b.err }

// nextLife is what a life whose log broke hands to the next one.
type nextLife struct {
	Times    int      // lives that a failing disk ended
	Full     int      // lives that a full disk ended
	Projects []string // to serve besides its own
	// Port is where hosts connect, also where none was named; 0: as the flags say.
	Port int
}

// restarted tells whether this process is such a next life.
func restarted() (l nextLife, again bool) {
	if json.Unmarshal([]byte(os.Getenv(restartEnv)), &l) != nil {
		return nextLife{}, false
	}
	return l, true
}

// comeBack runs a server's life. One that ends because its log broke comes back through the
// one recovery path; a next life that finds the disk still full waits until it has room, so
// that the service returns by itself. A first life on a full disk is refused.
func comeBack(ctx context.Context, s streams, dir string, life func() error) error {
	said := false
	for tries := 0; ; tries++ {
		err := life()
		var broken *brokenLog
		if errors.As(err, &broken) {
			return restart(ctx, s, dir, broken)
		}
		if !noRoom(err, dir) {
			return err
		}
		full := failf(exitStorage, "the disk is full: free some space (%s)", oneLine(err))
		if _, again := restarted(); !again {
			return full
		}
		if !said {
			report(s.err, full)
			fmt.Fprintln(s.err, "webcodex: waiting for free space")
			said = true
		}
		if !sleep(ctx, pause(tries)) {
			return full
		}
	}
}

// restart replaces this process by its next life: the log takes no more commits in one that
// lost a write (faults.md 2.2).
func restart(ctx context.Context, s streams, dir string, why *brokenLog) error {
	next, _ := restarted()
	next.Projects, next.Port = why.projects, why.port
	wait := restartPause
	switch {
	case noRoom(why, dir):
		wait = pause(next.Full)
		next.Full++
	case next.Times >= maxRestarts:
		return why
	default:
		next.Times++
	}
	report(s.err, why)
	fmt.Fprintln(s.err, "webcodex: starting again through recovery")
	if !sleep(ctx, wait) {
		return why
	}
	self, err := os.Executable()
	if err != nil {
		return why
	}
	state, err := json.Marshal(next)
	if err != nil {
		return why
	}
	if err := os.Setenv(restartEnv, string(state)); err != nil {
		return why
	}
	if err := syscall.Exec(self, os.Args, os.Environ()); err != nil {
		return errors.Join(why, err)
	}
	return why
}

// noRoom tells whether a life ended, or could not begin, because the disk is full.
func noRoom(err error, dir string) bool {
	if err == nil {
		return false
	}
	if fullDisk(err) {
		return true
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return false
	}
	switch f.Kind {
	case fault.StorageFull:
		return true
	case fault.PersistenceUncertain, fault.Unavailable:
		free, _, err := diskSpace(nearest(dir))
		return err == nil && free < fullBelow
	}
	return false
}

// fullDisk tells whether the operating system said so.
func fullDisk(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// pause grows with the tries before it, up to maxPause.
func pause(tries int) time.Duration { return min(maxPause, restartPause<<min(tries, 8)) }

// sleep reports false where ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
