package proc_test

import (
	"context"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"webcodex/internal/bench"
	"webcodex/internal/leak"
	"webcodex/internal/proc"
)

// session is an interactive execution as a caller sees it.
type session struct {
	*proc.Process
	out     *proc.Tail
	waiting chan bool
	ended   chan proc.Exit
	stop    context.CancelFunc
}

func interactive(t testing.TB, dir string, executable string, args ...string) *session {
	t.Helper()
	c := command(t, time.Minute, executable, args...)
	if dir != "" {
		d, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		c.Dir = d
	}
	s := &session{out: c.Stdout, waiting: make(chan bool, 64), ended: make(chan proc.Exit, 1)}
	c.Interactive, c.OnWaiting, c.Env = true, func(w bool) { s.waiting <- w }, proc.InteractiveEnvironment(os.Environ(), nil)
	var err error
	if s.Process, err = proc.Start(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.ended <- s.Wait(ctx) }()
	t.Cleanup(func() {
		stop()
		if e, ok := <-s.ended; ok {
			s.ended <- e
		}
	})
	return s
}

func (s *session) text() string { text, _ := s.out.Text(proc.KeptChars); return text }

// asks waits until the execution waits for input.
func (s *session) asks(t testing.TB) {
	t.Helper()
	for until := time.After(20 * time.Second); ; {
		select {
		case now := <-s.waiting:
			if now {
				return
			}
		case <-until:
			t.Fatalf("it never waited for input: %q", s.text())
		}
	}
}

func (s *session) types(t testing.TB, text string, eof bool) {
	t.Helper()
	if n, err := s.Input([]byte(text), eof); err != nil || n != len(text) {
		t.Fatalf("%d %v", n, err)
	}
}

func (s *session) end(t testing.TB) proc.Exit {
	t.Helper()
	select {
	case e := <-s.ended:
		close(s.ended)
		return e
	case <-time.After(20 * time.Second):
		t.Fatalf("it does not end: %q", s.text())
	}
	panic("unreachable")
}

// A question is answered, the input is ended, and what came out is one text without the terminal's
// line ends.
func TestATerminalAsksAndIsAnswered(t *testing.T) {
	s := interactive(t, "", "sh", "-c", `test -t 0 && test -t 1 && test -t 2 && printf "name? " && read n && echo "hello $n" >&2 && stty size && cat`)
	s.asks(t)
	s.types(t, "you\n", false)
	s.asks(t)
	s.types(t, "half", true)
	e := s.end(t)
	if want := "name? you\nhello you\n24 80\nhalfhalf"; e.Code == nil || *e.Code != 0 || s.text() != want {
		t.Fatalf("%+v %q", e, s.text())
	}
	if _, err := s.Input([]byte("x"), false); err != proc.ErrEnded {
		t.Fatal(err)
	}
}

// prompts are programs that ask, each in its own way: what must be there for it, and what it shows
// when it asks.
var prompts = []struct{ name, needs, script, shows string }{
	{"read", "bash", `read -s -p "secret: " x`, "secret: "},
	{"a pipeline", "bash", `cat | tr a b`, ""},
	{"python", "python3", `exec python3 -q`, ">>> "},
	{"python asks", "python3", `python3 -c 'import getpass; getpass.getpass()'`, "Password: "},
	{"node", "node", `exec node`, "> "},
	{"node asks", "node", `node -e 'process.stdin.on("data", () => {})'`, ""},
	{"npm init", "npm", `npm init`, "package name: "},
	{"less", "less", `seq 1000 >f; less f`, "RETURN"},
	{"vim", "vi", `exec vi f`, ""},
	{"ssh-keygen", "ssh-keygen", `ssh-keygen -t ed25519 -f "$PWD/key"`, "passphrase"},
	{"git rebase -i", "git", `git init -q . && git config user.email a@b && git config user.name a && git config core.editor vi &&
		git commit -q --allow-empty -m 1 && git commit -q --allow-empty -m 2 && git rebase -i --root`, "pick "},
	{"bash", "bash", `exec bash --norc -i`, "bash-"},
	{"select", "python3", `python3 -c 'import select, sys; select.select([sys.stdin], [], [])'`, ""},
	{"poll", "python3", `python3 -c 'import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()'`, ""},
	{"through a terminal of its own", "script", `script -qc 'read x' /dev/null`, ""},
}

// Each program that asks is seen to wait, and nothing of it stays when it is ended.
func TestWhoAsksIsSeenToWait(t *testing.T) {
	leak.Check(t)
	var ran, seen atomic.Int32
	t.Run("all", func(t *testing.T) {
		for _, p := range prompts {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				if _, err := osexec.LookPath(p.needs); err != nil {
					t.Skipf("there is no %s here", p.needs)
				}
				ran.Add(1)
				s := interactive(t, t.TempDir(), "bash", "-c", p.script)
				s.asks(t)
				seen.Add(1)
				if !strings.Contains(s.text(), p.shows) {
					t.Errorf("it asks %q", s.text())
				}
				s.stop()
				if e := s.end(t); !e.Cancelled || len(e.LeftoverAlive) > 0 {
					t.Errorf("%+v", e)
				}
			})
		}
	})
	bench.Figure(t, "waiting_for_input: prompts that were not seen", float64(ran.Load()-seen.Load()), 0, int(ran.Load()))
}

// quiet computes or waits for something else than its terminal.
var quiet = []string{
	`sleep 100`,
	`while :; do :; done`,
	`read x </dev/zero`,
	`stty -echo -icanon; sleep 100`,
	`exec 3<>/dev/tcp/127.0.0.1/%[1]s; read -u 3 x`,
	`sleep 100 | cat`,
	`mkfifo f; cat f`,
	`sleep 100 & wait`,
	`while sleep 0.05; do echo .; done`,
	`python3 -c 'import time; time.sleep(100)'`,
	`python3 -c 'import threading; threading.Event().wait()'`,
	`node -e 'setInterval(() => {}, 100000)'`,
	`printf 'package main\nfunc main() {}\n' >m.go; while :; do GOCACHE=$PWD/c go build -a m.go; done`,
	`script -qc 'sleep 100' /dev/null`,
	`timeout --foreground 100 sleep 100`,
	`git -c core.editor='sleep 100;:' commit --allow-empty`,
}

// Who computes, sleeps or waits for anything else is never said to wait for input.
func TestWhoWorksIsNotSeenToWait(t *testing.T) {
	t.Parallel()
	peer := quietPeer(t)
	rounds, each := 1, 1500*time.Millisecond
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds, each = (100+len(quiet)-1)/len(quiet), 10*time.Second
	}
	alarms := 0
	for range rounds {
		var all []*session
		for _, script := range quiet {
			dir := t.TempDir()
			if err := osexec.Command("git", "init", "-q", dir).Run(); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(script, "%[1]s") {
				script = fmt.Sprintf(script, peer)
			}
			all = append(all, interactive(t, dir, "bash", "-c", script))
		}
		time.Sleep(each)
		for i, s := range all {
			select {
			case e := <-s.ended:
				t.Errorf("%s ended: %+v %q", quiet[i], e, s.text())
				close(s.ended)
				continue
			default:
			}
			if len(s.waiting) > 0 {
				alarms++
				t.Errorf("%s is said to wait for input: %q", quiet[i], s.text())
			}
			s.stop()
			s.end(t)
		}
	}
	bench.Figure(t, "waiting_for_input: quiet computations that it was said of", float64(alarms), 0, rounds*len(quiet))
}

// Where the kernel does not let us see what a program waits for, that it took the terminal over
// tells, and nothing else does. It takes another uid to show it, and sudo for a program whose uid
// is not ours.
func TestWhatMayNotBeLookedAtIsToldByTheTerminal(t *testing.T) {
	if os.Getenv("PROC_TEST_AS_NOBODY") != "" {
		asks := interactive(t, "/", "sudo", "-k", "true")
		asks.asks(t)
		if !strings.Contains(asks.text(), "assword") {
			t.Fatalf("%q", asks.text())
		}
		quiet := interactive(t, "/", os.Getenv("PROC_TEST_AS_NOBODY"), "100")
		time.Sleep(1500 * time.Millisecond)
		if len(quiet.waiting) > 0 {
			t.Errorf("who sleeps is said to wait: %q", quiet.text())
		}
		return
	}
	if _, err := osexec.LookPath("sudo"); err != nil || os.Getuid() != 0 {
		t.Skip("there is no sudo here, or this is not root")
	}
	t.Run("seen by root", func(t *testing.T) {
		s := interactive(t, "/", "setpriv", "--reuid=65534", "--clear-groups", "sudo", "-k", "true")
		s.asks(t)
	})
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "proc-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "test"), exe, 0o755); err != nil {
		t.Fatal(err)
	}
	sleep, err := osexec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	// It runs as root, so it may not be looked at.
	foreign := filepath.Join(dir, "sleep")
	if out, err := osexec.Command("cp", sleep, foreign).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Chmod(foreign, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	again := osexec.Command(filepath.Join(dir, "test"), "-test.run=^TestWhatMayNotBeLookedAtIsToldByTheTerminal$")
	again.Dir, again.Env = "/", append(os.Environ(), "PROC_TEST_AS_NOBODY="+foreign, "TMPDIR=/tmp", "HOME=/")
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// quietPeer is a port on which nobody ever says anything.
func quietPeer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
