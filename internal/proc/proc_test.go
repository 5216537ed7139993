package proc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
)

// ran is everything about one finished execution.
type ran struct {
	proc.Exit
	out, err *proc.Tail
}

func (r ran) stdout() string { s, _ := r.out.Text(proc.KeptChars); return s }
func (r ran) stderr() string { s, _ := r.err.Text(proc.KeptChars); return s }

func command(t testing.TB, timeout time.Duration, executable string, args ...string) proc.Command {
	t.Helper()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return proc.Command{Mark: string(event.NewExecutionID()), Executable: executable, Args: args, Dir: dir,
		Env: proc.Environment(os.Environ(), nil), Timeout: timeout, Stdout: proc.NewTail(proc.KeptBytes), Stderr: proc.NewTail(proc.KeptBytes)}
}

func run(t testing.TB, c proc.Command) ran {
	t.Helper()
	p, err := proc.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return ran{p.Wait(context.Background()), c.Stdout, c.Stderr}
}

func sh(t testing.TB, timeout time.Duration, script string) ran {
	t.Helper()
	return run(t, command(t, timeout, "sh", "-c", script))
}

// alive reports whether a pid is a living process.
func alive(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil && runtime.GOOS != "linux"
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestExitAndOutput(t *testing.T) {
	r := sh(t, 10*time.Second, "echo out; echo err >&2; exit 7")
	if r.Code == nil || *r.Code != 7 || !r.Reaped || r.stdout() != "out\n" || r.stderr() != "err\n" || r.LeftoverKilled {
		t.Fatalf("%+v %q %q", r.Exit, r.stdout(), r.stderr())
	}
	if r = sh(t, 10*time.Second, "kill -9 $$"); r.Signal != "SIGKILL" || r.Code != nil {
		t.Fatalf("%+v", r.Exit)
	}
	c := command(t, 10*time.Second, "cat")
	c.Stdin = []byte(strings.Repeat("x", 64<<10))
	if r = run(t, c); r.out.Total() != 64<<10 {
		t.Fatalf("cat gave %d bytes", r.out.Total())
	}
	c = command(t, 10*time.Second, "true")
	c.Stdin = []byte(strings.Repeat("x", 64<<10)) // never read
	if r = run(t, c); r.Code == nil || *r.Code != 0 {
		t.Fatalf("%+v", r.Exit)
	}
}

// What asks on a terminal must fail at once: there is none, and nothing to read.
func TestQuestionsFailAtOnce(t *testing.T) {
	begun := time.Now()
	for _, script := range []string{
		"read x",
		"read x </dev/tty",
		"git init -q . && echo a >f && git add f && git -c user.name=a -c user.email=a@b commit",
		"git ls-remote http://127.0.0.1:9/x",
	} {
		if r := sh(t, 20*time.Second, script); r.Code == nil || *r.Code == 0 || r.TimedOut {
			t.Errorf("%s: %+v %s", script, r.Exit, r.stderr())
		}
	}
	if time.Since(begun) > 15*time.Second {
		t.Error("something waited for an answer")
	}
}

func TestEndsAtItsLimit(t *testing.T) {
	begun := time.Now()
	r := run(t, command(t, 2*time.Second, "yes"))
	if took := time.Since(begun); !r.TimedOut || took < 2*time.Second || took > 4*time.Second {
		t.Fatalf("yes ended after %v: %+v", took, r.Exit)
	}
	if text, dropped := r.out.Text(proc.KeptChars); int64(len(text))+dropped != r.out.Total() || len(text) != proc.KeptChars {
		t.Fatalf("%d kept, %d dropped, %d in all", len(text), dropped, r.out.Total())
	}
	begun = time.Now()
	r = sh(t, time.Second, "trap '' TERM; while :; do sleep 0.1; done")
	if took := time.Since(begun); !r.TimedOut || r.Signal != "SIGKILL" || took > 4*time.Second {
		t.Fatalf("a process that ignores SIGTERM ended after %v: %+v", took, r.Exit)
	}
}

func TestCancelEndsIt(t *testing.T) {
	c := command(t, time.Minute, "sleep", "50")
	p, err := proc.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e := p.Wait(ctx); !e.Cancelled || e.TimedOut || e.Signal != "SIGTERM" {
		t.Fatalf("%+v", e)
	}
}

// A grandchild that keeps the output open, leaves the session, sheds its environment, or
// forks away must neither hold the call nor outlive it.
func TestNothingOutlivesTheExecution(t *testing.T) {
	for name, script := range map[string]string{
		"keeps stdout":                  "sleep 300 & echo $! >pid",
		"own session":                   "setsid sh -c 'echo $$ >pid; exec sleep 300' & sleep 0.3",
		"own session, no output":        "setsid sh -c 'echo $$ >pid; exec sleep 300' >/dev/null 2>&1 </dev/null & sleep 0.3",
		"own session, no environment":   "env -i setsid sh -c 'echo $$ >pid; exec sleep 300' & sleep 0.3",
		"ignores SIGTERM":               "(trap '' TERM; sh -c 'echo $PPID >pid; trap \"\" TERM; while :; do sleep 0.1; done') & sleep 0.3",
		"a tree of daemons":             "setsid sh -c 'setsid sh -c \"setsid sleep 301 & sleep 302 & echo \\$\\$ >pid; exec sleep 300\" &' & sleep 0.4",
		"forks while it is being ended": "setsid sh -c 'echo $$ >pid; trap \"\" TERM; while :; do sleep 0.02 & wait; done' >/dev/null 2>&1 & sleep 0.3",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && strings.Contains(name, "no environment") {
				t.Skip("cannot be found there")
			}
			c := command(t, 20*time.Second, "sh", "-c", script)
			begun := time.Now()
			r := run(t, c)
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("it took %v", took)
			}
			if r.Code == nil || *r.Code != 0 || r.TimedOut {
				t.Errorf("%+v %s", r.Exit, r.stderr())
			}
			if !r.LeftoverKilled || len(r.LeftoverAlive) > 0 {
				t.Errorf("not told, or not ended: %+v", r.Exit)
			}
			if pid := pidIn(t, filepath.Join(c.Dir.Name(), "pid")); alive(pid) {
				t.Errorf("process %d lives on", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// A neighbour's processes are not touched.
func TestExecutionsDoNotEndEachOther(t *testing.T) {
	slow := command(t, 20*time.Second, "sh", "-c", "setsid sleep 1.5; echo whole")
	p, err := proc.Start(slow)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if r := sh(t, 10*time.Second, "setsid sleep 300 & sleep 0.05"); !r.LeftoverKilled {
			t.Errorf("%+v", r.Exit)
		}
	}
	e := p.Wait(context.Background())
	if text, _ := slow.Stdout.Text(100); text != "whole\n" || e.LeftoverKilled {
		t.Fatalf("%q %+v", text, e)
	}
}

func TestOutputIsBoundedInMemory(t *testing.T) {
	const size = 200 << 20
	c := command(t, time.Minute, "sh", "-c", "head -c 209715200 /dev/zero | tr '\\0' e >&2 & head -c 209715200 /dev/zero; wait")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := run(t, c)
	runtime.ReadMemStats(&after)
	if r.out.Total() != size || r.err.Total() != size {
		t.Fatalf("%d and %d bytes were counted, not %d", r.out.Total(), r.err.Total(), size)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Fatalf("%d bytes were allocated for it", grown)
	}
	text, dropped := r.err.Text(proc.KeptChars)
	if text != strings.Repeat("e", proc.KeptChars) || dropped != size-proc.KeptChars {
		t.Fatalf("%d kept, %d dropped", len(text), dropped)
	}
}

func TestSpawnFailuresStartNothing(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("plain", "echo hi\n", 0o600)
	write("noformat", "\x00\x01\x02garbage", 0o700)
	write("lost", "#!/nowhere/interpreter\n", 0o700)
	for _, c := range []struct {
		executable, reason string
		args               []string
	}{
		{"no-such-program-here", proc.NotFound, nil},
		{"./no-such-program-here", proc.NotFound, nil},
		{"/nowhere/program", proc.NotFound, nil},
		{"./plain", proc.NotExecutable, nil},
		{"./noformat", proc.NoFormat, nil},
		{"./lost", proc.NotFound, nil},
		{".", proc.NotFound, nil}, // a bare name is looked for in PATH only
		{"./", proc.IsDirectory, nil},
		{"true", proc.LaunchEnvelope, []string{strings.Repeat("x", 300<<10)}},
	} {
		cmd := command(t, time.Second, c.executable, c.args...)
		cmd.Dir = open(t, dir)
		_, err := proc.Start(cmd)
		var se *proc.SpawnError
		if !errors.As(err, &se) || se.Reason != c.reason {
			t.Errorf("%q: %v, want %s", c.executable, err, c.reason)
		}
	}
}

func open(t *testing.T, dir string) *os.File {
	t.Helper()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// A file that some other fork still has open for writing is tried again.
func TestFreshlyWrittenFilesStart(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = exec("true")
			}
		}
	}()
	defer close(stop)
	for i := range 50 {
		name := "s" + strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho fresh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		c := command(t, 10*time.Second, "./"+name)
		c.Dir = open(t, dir)
		if r := run(t, c); r.stdout() != "fresh\n" {
			t.Fatalf("%+v %q", r.Exit, r.stderr())
		}
	}
}

func exec(name string) error {
	p, err := os.StartProcess("/bin/"+name, []string{name}, &os.ProcAttr{})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// The child works in the opened directory, whatever its path leads to by then.
func TestDirectoryIsTheOpenedOne(t *testing.T) {
	base := t.TempDir()
	inside := filepath.Join(base, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	c := command(t, 10*time.Second, "touch", "here")
	c.Dir = open(t, inside)
	if err := os.Rename(inside, inside+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", inside); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/self/fd")
	}
	run(t, c)
	if _, err := os.Stat(filepath.Join(inside+"-moved", "here")); err != nil {
		t.Fatal(err)
	}
}

func TestEnvironmentHoldsNoRights(t *testing.T) {
	from := []string{"PATH=/usr/bin:/bin", "HOME=/h", "GITHUB_TOKEN=ghp_x", "AWS_SECRET_ACCESS_KEY=s", "SSH_AUTH_SOCK=/s",
		"GOPROXY=https://u:p@proxy,direct", "HTTPS_PROXY=http://user:pass@host:1", "LC_ALL=C", "WEBCODEX_TOKEN=t", "GIT_EDITOR=vi"}
	env := strings.Join(proc.Environment(from, []string{"EXTRA=1"}), "\n") + "\n"
	for _, want := range []string{"PATH=/usr/bin:/bin\n", "HOME=/h\n", "LC_ALL=C\n", "EXTRA=1\n", "GIT_TERMINAL_PROMPT=0\n", "GIT_EDITOR=true\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, not := range []string{"ghp_x", "AWS", "SSH_AUTH", "u:p", "pass", "WEBCODEX", "=vi"} {
		if strings.Contains(env, not) {
			t.Errorf("%q is passed on", not)
		}
	}
}
