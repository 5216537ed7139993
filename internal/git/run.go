package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/internal/sandbox"
)

// safeFlags stand before every subcommand. Together with the environment of childEnv and the
// flags of diffFlags they ran nothing in the hostile repository matrix (faults.md 4).
var safeFlags = []string{
	"--no-optional-locks", "--no-pager", "--literal-pathspecs",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=/dev/null",
	"-c", "core.pager=cat",
	"-c", "core.askPass=false",
	"-c", "core.quotePath=false",
	"-c", "core.sshCommand=false",
	"-c", "log.showSignature=false",
	"-c", "log.mailmap=false",
	"-c", "protocol.allow=never",
	"-c", "credential.helper=",
	"-c", "submodule.recurse=false",
	"-c", "status.submoduleSummary=false",
	"-c", "diff.renameLimit=" + renameLimit,
	"-c", "diff.suppressBlankEmpty=false",
	"-c", "diff.orderFile=/dev/null",
	"-c", "gc.auto=0",
}

// passedEnv is what a child inherits; everything else is dropped, GIT_* above all.
var passedEnv = []string{"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR"}

func childEnv(extra []string) []string {
	env := []string{
		"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_ASKPASS=false", "SSH_ASKPASS=false",
		proc.Helper,
	}
	for _, name := range passedEnv {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, extra...)
}

// readers are the subcommands that change nothing, as we call them. They run in the sandbox, which
// holds what a repository might bring them to run all the same.
var readers = map[string]bool{
	"cat-file": true, "check-attr": true, "check-ignore": true, "config": true, "diff": true, "diff-files": true, "for-each-ref": true,
	"log": true, "ls-files": true, "ls-tree": true, "merge-base": true, "rev-list": true, "rev-parse": true, "show": true, "status": true,
}

// reads reports whether arguments only read. Before the subcommand stand our flags and the place
// of the repository; one that is given another setting there is none of these.
func reads(args []string) bool {
	if len(args) < len(safeFlags) {
		return false
	}
	for _, a := range args[len(safeFlags):] {
		if !strings.HasPrefix(a, "--") {
			return readers[a]
		}
	}
	return false
}

// places are where the repository lies, as the arguments say.
func (c child) places() (out []string) {
	for _, a := range c.args[len(safeFlags):] {
		if dir, ok := strings.CutPrefix(a, "--git-dir="); ok {
			out = append(out, dir)
		}
	}
	return out
}

// binary finds git once. A git found through a relative PATH entry is refused by LookPath.
var binary = sync.OnceValues(func() (string, error) {
	p, err := exec.LookPath("git")
	if err != nil {
		return "", fault.Wrap(err, fault.GitUnavailable, "git is not installed where the Runner runs").
			WithReason("git_missing").WithNext("Install git on the Runner's machine and start it again.")
	}
	if p, err = filepath.Abs(p); err != nil {
		return "", fault.Wrap(err, fault.GitUnavailable, "the git program could not be located").WithReason("git_missing")
	}
	return p, checkVersion(p)
})

func checkVersion(program string) error {
	ctx, stop := context.WithTimeout(context.Background(), Timeout)
	defer stop()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env = childEnv(nil)
	out, err := cmd.Output()
	if err != nil {
		return fault.Wrap(err, fault.GitUnavailable, "git does not run on the Runner's machine").WithReason("git_missing")
	}
	have, err := versionOf(out)
	if err != nil {
		return fault.Wrap(err, fault.GitUnavailable, "the git program on the Runner's machine does not tell its version").
			WithReason("git_missing")
	}
	if have[0] < minVersion[0] || have[0] == minVersion[0] && have[1] < minVersion[1] {
		return fault.New(fault.GitUnavailable, "git on the Runner's machine is older than %d.%d, which cannot be run safely",
			minVersion[0], minVersion[1]).WithReason("git_too_old").WithNext("Install a newer git on the Runner's machine.")
	}
	return nil
}

// exitError is a child that ended with a bad status; stderr is for telling failures apart and
// for the log, never for a caller.
type exitError struct {
	code   int
	stderr string
}

func (e *exitError) Error() string {
	return "git exited with status " + strconv.Itoa(e.code) + ": " + e.stderr
}

func exitCode(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return -1
}

// child runs one git to its end and hands its stdout to read. When read returns early, or the
// output passes its bound, the child is ended; that is errCut unless read had an error itself.
type child struct {
	program string
	dir     string
	env     []string
	args    []string
	timeout time.Duration
	stdin   io.Reader // nil: nothing
}

var errCut = errors.New("git printed more than is read")

func (c child) run(ctx context.Context, read func(io.Reader) error) error {
	ctx, stop := context.WithTimeout(ctx, c.timeout)
	defer stop()
	if err := ctx.Err(); err != nil {
		return timedOut(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fault.Wrap(err, fault.GitFailed, "git could not be started")
	}
	defer r.Close()
	var stderr tail
	cmd := exec.Command(c.program, c.args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.dir, c.env, c.stdin, w, &stderr
	// A session of its own is a group of its own and has no terminal to ask on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = drainGrace
	if reads(c.args) {
		err = sandbox.StartWith(cmd, sandbox.Options{Reads: c.places()})
	} else {
		err = cmd.Start()
	}
	w.Close()
	if err != nil {
		return fault.Wrap(err, fault.GitFailed, "git could not be started")
	}
	g := &group{pid: cmd.Process.Pid}
	unwatch := context.AfterFunc(ctx, g.kill)
	defer unwatch()

	in := &limited{r: r, left: maxOutput}
	done := make(chan error, 1)
	go func() {
		err := read(in)
		if err == nil && !in.eof {
			// A reader that stops before the end wants no more.
			if _, e := in.Read(make([]byte, 1)); e == nil || errors.Is(e, errCut) {
				err = errCut
			}
		}
		if err != nil {
			g.kill()
		}
		done <- err
	}()
	g.reap(cmd)
	r.SetReadDeadline(time.Now().Add(drainGrace))
	readErr := <-done
	if err := ctx.Err(); err != nil {
		return timedOut(err)
	}
	if readErr != nil {
		return readErr
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		return &exitError{code: code, stderr: stderr.String()}
	}
	return nil
}

func timedOut(err error) error {
	if errors.Is(err, context.Canceled) {
		return fault.Wrap(err, fault.Cancelled, "the call was cancelled while git was running")
	}
	return fault.Wrap(err, fault.Timeout, "git did not finish in time; it was ended").
		WithNext("Ask for less, for example by naming paths.")
}

// group is a process group that must not be signalled once its leader is reaped: the id could
// name another by then.
type group struct {
	mu     sync.Mutex
	pid    int
	reaped bool
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reaped {
		syscall.Kill(-g.pid, syscall.SIGKILL)
	}
}

// reap waits for the leader, ends what it left behind, and collects it.
func (g *group) reap(cmd *exec.Cmd) {
	waitExit(g.pid)
	g.mu.Lock()
	syscall.Kill(-g.pid, syscall.SIGKILL)
	g.reaped = true
	g.mu.Unlock()
	cmd.Wait()
}

// limited passes on up to left bytes, then errCut.
type limited struct {
	r    io.Reader
	left int64
	eof  bool
}

func (l *limited) Read(p []byte) (int, error) {
	if l.eof {
		return 0, io.EOF
	}
	if l.left <= 0 {
		return 0, errCut
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	if err != nil {
		l.eof = true
		if !errors.Is(err, io.EOF) {
			err = io.EOF // the writer is gone or will be: the exit status tells more
		}
	}
	return n, err
}

// tail keeps the first maxStderr bytes.
type tail struct {
	b bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	if room := maxStderr - t.b.Len(); room > 0 {
		t.b.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *tail) String() string { return t.b.String() }
