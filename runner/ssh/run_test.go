package ssh

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"webcodex/internal/fault"
)

// A command's text arrives as it is, in the shell that was asked for; its streams, its status
// and its signal come back apart.
func TestCommandRunsOnTheResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	texts := []string{"", "a b", `it's`, `\`, `\\n`, "!", `$HOME "x" ` + "`id`", "a\nb", "-n", "ü€𝄞", "'\"'\"'", "#", "%s%n", "\t", "~", "*"}
	for _, text := range texts {
		if got := w.prints("printf '%s|' " + shellQuote(text)); got != text+"|" {
			t.Errorf("%q came as %q", text, got)
		}
	}
	if got := w.prints("-e; echo on"); got != "on\n" {
		t.Errorf("a text that begins with a dash: %q", got)
	}
	long := "true '" + strings.Repeat("!", 16_000-len("true ''")) + "'"
	if out, f := w.run(long); f != nil || *out.ExitCode != 0 {
		t.Errorf("the longest command: %+v %v", out, f)
	}
	out, f := w.run("echo out; echo err >&2; exit 7")
	if f != nil || !out.Completed || *out.ExitCode != 7 || out.Stdout.Text != "out\n" || out.Stderr.Text != "err\n" || out.RemoteProcess != "" {
		t.Errorf("%+v %v", out, f)
	}
	out, f = w.run("kill -KILL $$")
	if f != nil || !out.Completed || out.ExitCode != nil || out.Signal != "SIGKILL" {
		t.Errorf("%+v %v", out, f)
	}
	c, f := w.r.Open(context.Background(), sessionA, "build")
	if f != nil {
		t.Fatal(f)
	}
	cmd := command("", "echo $BASH_VERSION; printf %s: \"$PAGER\" \"$GIT_TERMINAL_PROMPT\"; cat; test -t 0; echo $?")
	cmd.Shell = "bash"
	out, f = c.Run(context.Background(), cmd, 10*time.Second)
	if f != nil || strings.HasPrefix(out.Stdout.Text, "\n") || !strings.HasSuffix(out.Stdout.Text, "cat:0:1\n") {
		t.Errorf("bash, its environment, no input, no terminal: %q %v", out.Stdout.Text, f)
	}
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// bothWays runs a test with connections that are kept, and with one for each command.
func bothWays(t *testing.T, test func(t *testing.T, w *world)) {
	for name, single := range map[string]bool{"kept": false, "single": true} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, Options{Single: single})) })
	}
}

// Two commands share a connection and nothing else: each has a channel and a shell of its own.
// Covers: SSH-01, SSH-04, SSH-05, EXE-16
func TestNothingOfAShellSurvives(t *testing.T) {
	t.Parallel()
	for _, single := range []bool{false, true} {
		w := newWorld(t, Options{Single: single})
		before := w.prints("pwd; umask; echo $$")
		w.prints("cd /; export LEFT=1; PLAIN=1; left() { :; }; alias left_alias=true; umask 0777; set -f")
		after := w.prints("pwd; umask; echo $$")
		if b, a := strings.Fields(before), strings.Fields(after); b[0] != a[0] || b[1] != a[1] || b[2] == a[2] {
			t.Errorf("single %v: before %q, after %q", single, before, after)
		}
		if got := w.prints(`echo "$LEFT$PLAIN"; command -v left left_alias; echo /et*`); got != "\n/etc\n" {
			t.Errorf("single %v: left behind: %q", single, got)
		}
		if n := w.Commands(); n != 4 {
			t.Errorf("single %v: the host ran %d commands of 4", single, n)
		}
		if want := map[bool]int{false: 1, true: 4}[single]; w.Connections() != want {
			t.Errorf("single %v: %d connections, want %d", single, w.Connections(), want)
		}
	}
}

// A directory is entered before the command begins, or the command does not begin: the call's,
// else the resource's, else the login's.
// Covers: SSH-15, SSH-04, NEG-18
func TestRemoteDirectory(t *testing.T) { bothWays(t, remoteDirectory) }

func remoteDirectory(t *testing.T, w *world) {
	odd := filepath.Join(w.dir, `it's a "dir" !\ $x`)
	must(t, os.Mkdir(odd, 0o700))
	must(t, os.WriteFile(filepath.Join(w.dir, "file"), nil, 0o600))
	must(t, os.Symlink("/nonexistent", filepath.Join(w.dir, "dangling")))
	w.write(w.resource("build", ""), w.resource("there", "default_cwd = "+strconv.Quote(w.dir)))
	login, home := strings.TrimSpace(w.prints("pwd")), w.prints("printf %s \"$HOME\"")
	must(t, os.Mkdir(filepath.Join(home, "below"), 0o700))
	for _, c := range []struct{ resource, cwd, want string }{
		{"build", odd, odd}, {"there", "", w.dir}, {"there", odd, odd}, {"build", "", login}, {"build", "~", home}, {"build", "~/below", filepath.Join(home, "below")}, {"build", "/", "/"},
	} {
		out, f := w.runIn(c.resource, sessionA, c.cwd, "pwd", 10*time.Second)
		if f != nil || out.Stdout.Text != c.want+"\n" {
			t.Errorf("%s %q: %q %v", c.resource, c.cwd, out.Stdout.Text, f)
		}
	}
	for cwd, reason := range map[string]string{
		filepath.Join(w.dir, "none"): "not_found", filepath.Join(w.dir, "file"): "not_directory", "-": "not_found",
		filepath.Join(w.dir, "dangling"): "not_found", "~nobody-here": "not_found", "$HOME": "not_found",
	} {
		out, f := w.runIn("build", sessionA, cwd, "echo x >> "+shellQuote(w.marker()), 10*time.Second)
		if f == nil || f.Kind != fault.InvalidPath || f.Reason != reason || f.Field != "cwd" || f.ExecutionState != "not_started" || f.CommandStarted || out.Started {
			t.Errorf("%q: %+v %+v", cwd, out, f)
		}
	}
	if os.Geteuid() != 0 {
		must(t, os.Mkdir(filepath.Join(w.dir, "shut"), 0))
		if _, f := w.runIn("build", sessionA, filepath.Join(w.dir, "shut"), "true", 10*time.Second); f == nil || f.Reason != "unreadable" {
			t.Errorf("a directory that may not be entered: %v", f)
		}
	}
	if w.marks() != 0 {
		t.Error("a command ran though its directory could not be entered")
	}
}

// A shell that is not there is said before anything begins.
func TestRemoteShellIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	c, f := w.r.Open(context.Background(), sessionA, "build")
	if f != nil {
		t.Fatal(f)
	}
	cmd := command("", "true")
	cmd.Shell = "no-such-shell"
	if out, f := c.Run(context.Background(), cmd, 10*time.Second); f == nil || f.Kind != fault.CommandSpawnFailed || f.ExecutionState != "not_started" || out.Started {
		t.Errorf("%+v %+v", out, f)
	}
}

// A connection that breaks after the command was sent leaves the outcome unknown. Nothing is
// sent again, and the next command makes a connection of its own.
// Covers: SSH-09, SSH-04, NEG-19
func TestConnectionBreaksInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"link is cut":      "sleep 2",
		"single host dies": "sleep 0.5; kill -9 $PPID; sleep 2",
		"host dies":        "sleep 0.5; kill -9 $PPID; sleep 2",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Single: name == "single host dies"})
			started := make(chan struct{})
			c, f := w.r.Open(context.Background(), sessionA, "build")
			if f != nil {
				t.Fatal(f)
			}
			cmd := command("", "echo x >> "+shellQuote(w.marker())+"; echo so far; "+body)
			cmd.Started = func() { close(started) }
			if name == "link is cut" {
				go func() {
					<-started
					for w.marks() == 0 {
						time.Sleep(time.Millisecond)
					}
					time.Sleep(50 * time.Millisecond)
					w.Cut()
				}()
			}
			out, f := c.Run(context.Background(), cmd, 20*time.Second)
			if f == nil || f.Kind != fault.SSHTransportFailed || f.ExecutionState != "outcome_unknown" || !f.CommandStarted || f.Recovery == fault.RetrySame {
				t.Fatalf("%+v %+v", out, f)
			}
			if out.Completed || out.ExitCode != nil || out.RemoteProcess != RemoteUnknown || out.Stdout.Text != "so far\n" {
				t.Errorf("%+v", out)
			}
			if got := w.prints("echo again"); got != "again\n" {
				t.Errorf("the next command: %q", got)
			}
			if w.Connections() != 2 || w.marks() != 1 || w.Commands() != 2 {
				t.Errorf("%d connections, %d runs, %d commands at the host", w.Connections(), w.marks(), w.Commands())
			}
		})
	}
}

// A kept connection that died without a word is replaced before the command is sent.
func TestDeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for range 5 {
		w.prints("true")
		w.Cut()
	}
	if n := w.Commands(); n != 5 {
		t.Errorf("the host ran %d commands of 5", n)
	}
}

// At its limit, or when it is cancelled, a command is asked to end; nobody says that it did.
// A connection on which something may still run takes no further command.
// Covers: SSH-04
func TestLimitAndCancel(t *testing.T) { bothWays(t, limitAndCancel) }

func limitAndCancel(t *testing.T, w *world) {
	began := time.Now()
	out, f := w.runIn("build", sessionA, "", "echo $$; trap '' TERM; while :; do sleep 0.1; done", time.Second)
	if f != nil || !out.TimedOut || out.Completed || out.ExitCode != nil || out.RemoteProcess != RemoteUnknown || !out.Started {
		t.Fatalf("%+v %v", out, f)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("a limit of 1 s took %v", d)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.Stdout.Text))
	must(t, err)
	if os.Geteuid() == 0 { // sshd passes no signals on for root: the command lives on, as unknown allows
		must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	for i := 0; syscall.Kill(pid, 0) == nil; i++ {
		if i > 500 {
			t.Fatal("the command is still alive")
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c, f := w.r.Open(ctx, sessionA, "build")
	if f != nil {
		t.Fatal(f)
	}
	cmd := command("", "sleep 60")
	cmd.Started = cancel
	out, f = c.Run(ctx, cmd, 30*time.Second)
	if f != nil || !out.Cancelled || out.Completed || out.RemoteProcess != RemoteUnknown {
		t.Errorf("%+v %v", out, f)
	}
	if _, f := w.r.Open(ctx, sessionA, "build"); f == nil || f.Kind != fault.Cancelled || f.ExecutionState != "not_started" {
		t.Errorf("a call that was cancelled before: %v", f)
	}
	if got := w.prints("echo on"); got != "on\n" {
		t.Errorf("%q", got)
	}
	eventually(t, "a connection with a command that was given up stays", func() bool { return w.r.connectionsHeld() <= 1 })
}

// Output is bounded and counted whole, also what was on its way when the command ended; what
// looks like the starter's line is output.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	out, f := w.run("head -c 30000000 /dev/zero | tr '\\0' x; echo end; echo e >&2")
	if f != nil || out.Stdout.Bytes != 30_000_004 || !out.Stdout.Truncated || !strings.HasSuffix(out.Stdout.Text, "xend\n") ||
		out.Stdout.DroppedBytes != 30_000_004-int64(len(out.Stdout.Text)) || out.Stderr.Text != "e\n" || out.RemoteProcess != "" {
		t.Errorf("%d bytes, %d dropped, remote %q, %v", out.Stdout.Bytes, out.Stdout.DroppedBytes, out.RemoteProcess, f)
	}
	forged := "00000000000000000000000000000000 cwd not_found\n"
	if got := w.prints("printf %s " + shellQuote(forged)); got != forged {
		t.Errorf("%q", got)
	}
	if got := w.prints(`printf '\377\303\050'`); got != "\uFFFD\uFFFD(" {
		t.Errorf("%q", got)
	}
}

// What a command leaves in the background holds its output: the answer does not wait for it,
// and says that something may be alive.
func TestBackgroundIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	began := time.Now()
	out, f := w.run("sleep 60 & echo $!")
	if f != nil || !out.Completed || *out.ExitCode != 0 || out.RemoteProcess != RemoteUnknown {
		t.Errorf("%+v %v", out, f)
	}
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
	w.prints("kill " + strings.TrimSpace(out.Stdout.Text))
}
