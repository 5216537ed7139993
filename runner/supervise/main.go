package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/wire"
)

// Why a Job is ended before its command ends.
var (
	errLimit = errors.New("its time is over")
	errStop  = errors.New("somebody asked for its end")
)

// supervisor is this process.
type supervisor struct {
	rec    Record
	out    *Log
	err    *Log
	cancel context.CancelCauseFunc
	peers  peers
}

// Main is the supervisor's process, or a Guard's: it is started by Pending.Start with the files that it needs,
// and ends with the Job. It gives the exit code of the process.
func Main() int {
	if len(os.Args) > 2 && os.Args[2] == guardName {
		return guard()
	}
	status, dir, lock := inherited(statusFD, "status"), inherited(dirFD, "job"), inherited(lockFD, "lock")
	syscall.CloseOnExec(cwdFD)
	defer lock.Close() // the last thing that is closed
	if err := syscall.Fchdir(int(dir.Fd())); err != nil {
		fmt.Fprintln(os.Stderr, "this is started by a Runner, for one of its Jobs")
		return 2
	}
	var spec Spec
	if err := json.NewDecoder(os.Stdin).Decode(&spec); err != nil || spec.Record.Version != Version {
		// Whoever wanted this start ended in the middle of it, or is another program.
		say(status, Word{Reason: proc.NoResources})
		record(Exit{State: wire.JStartFailed, Reason: proc.NoResources})
		return 1
	}
	_ = os.Stdin.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &supervisor{rec: spec.Record, out: NewLog(".", wire.Stdout), err: NewLog(".", wire.Stderr), cancel: cancel}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() { <-signals; cancel(errStop) }()
	return s.run(ctx, spec, inherited(cwdFD, spec.Cwd), status)
}

// inherited is a file that this process was given; its children are not.
func inherited(fd int, name string) *os.File {
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}

func say(to *os.File, w Word) {
	if b, err := json.Marshal(w); err == nil {
		_, _ = to.Write(append(b, '\n'))
	}
	_ = to.Close()
}

func (s *supervisor) run(ctx context.Context, spec Spec, cwd, status *os.File) int {
	close, err := s.listen()
	if err != nil {
		return s.fail(status, proc.NoResources)
	}
	defer close()
	p, err := proc.Start(proc.Command{Mark: string(s.rec.ID), Executable: spec.Executable, Args: spec.Args, Env: spec.Env, Dir: cwd,
		Stdin: []byte(spec.Stdin), Stdout: proc.NewTail(1), Stderr: proc.NewTail(1), Tee: s.out.Write, TeeErr: s.err.Write, Notify: s.peers.output})
	if err != nil {
		reason := proc.NoResources
		var se *proc.SpawnError
		if errors.As(err, &se) {
			reason = se.Reason
		}
		return s.fail(status, reason)
	}
	begun := proc.BootTime()
	child, self := p.Identity(), proc.Identity{PID: os.Getpid(), Start: proc.StartOf(os.Getpid())}
	s.rec.Child, s.rec.Supervisor, s.rec.StartedAt = &child, &self, event.FormatTime(time.Now())
	_ = replace(recordName, s.rec, false) // for diagnosis; the lock is what counts
	say(status, Word{Started: true, Child: &child})
	go s.limit(ctx, begun)
	exit := p.Wait(ctx)
	s.out.Close()
	s.err.Close()
	for until := time.Now().Add(cellWait); len(proc.ControlGroups()) > 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond) // it is taken away from beside
	}
	out := s.outcome(exit, context.Cause(ctx))
	if !record(Exit{State: wire.JTerminal, Process: out, EndedAt: event.FormatTime(time.Now())}) {
		return 1
	}
	return 0
}

func (s *supervisor) fail(status *os.File, reason string) int {
	record(Exit{State: wire.JStartFailed, Reason: reason, EndedAt: event.FormatTime(time.Now())})
	say(status, Word{Reason: reason})
	return 1
}

// limit ends the Job when its time is over, on the clock that counts sleep.
func (s *supervisor) limit(ctx context.Context, begun time.Duration) {
	if s.rec.LimitMS <= 0 {
		return
	}
	for {
		left := begun + time.Duration(s.rec.LimitMS)*time.Millisecond - proc.BootTime()
		if left <= 0 {
			s.cancel(errLimit)
			return
		}
		select {
		case <-time.After(min(left, clockStep)):
		case <-ctx.Done():
			return
		}
	}
}

func (s *supervisor) outcome(x proc.Exit, cause error) *wire.ProcessOutcome {
	timedOut := x.Cancelled && errors.Is(cause, errLimit)
	o := &wire.ProcessOutcome{Started: true, Completed: x.Reaped && !x.Cancelled, ExitCode: x.Code, Signal: x.Signal,
		TimedOut: timedOut, Cancelled: x.Cancelled && !timedOut, DurationMS: x.Duration.Milliseconds(),
		LeftoverKilled: x.LeftoverKilled, LeftoverAlive: x.LeftoverAlive}
	if x.Cancelled {
		o.ExitCode = nil // it is how it took being ended, not how it ended
	}
	o.Stdout.Bytes, o.Stderr.Bytes = s.out.Total(), s.err.Total()
	return o
}

// record makes the end durable. On a full disk it is tried for a while: without it nobody will
// know how the Job ended.
func record(e Exit) bool {
	e.Version = Version
	for try := range writeTries {
		if try > 0 {
			time.Sleep(writePause)
		}
		if replace(exitName, e, true) == nil && syncDir(filepath.Dir(exitName)) == nil {
			return true
		}
	}
	return false
}
