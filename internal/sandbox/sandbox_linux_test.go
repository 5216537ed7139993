package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/internal/leak"
	"webcodex/internal/sandbox"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// helper runs a shell command as a helper and gives what it printed.
func helper(t *testing.T, dir, script string, o sandbox.Options) string {
	t.Helper()
	var out strings.Builder
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	if err := sandbox.StartWith(cmd, o); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return out.String()
}

func needs(t *testing.T, files, network bool) {
	t.Helper()
	if e := sandbox.Enforced(); files && e.Landlock == 0 || network && !e.Seccomp {
		t.Skipf("this kernel does not enforce it: %+v", e)
	}
}

// A helper reads what is there, before and after the rules were made, and nothing that is
// protected, by whatever name; and it changes nothing.
func TestAHelperReadsAndNothingElse(t *testing.T) {
	needs(t, true, true)
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(top, "state", "data")
	for _, d := range []string{data, filepath.Join(top, "project"), filepath.Join(top, "state", "beside")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(top, name), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("state/data/token")
	put("state/beside/f")
	put("project/f")
	put("plain")
	if err := os.Symlink(data, filepath.Join(top, "project", "way")); err != nil {
		t.Fatal(err)
	}
	if got := helper(t, top, "cat state/data/token", sandbox.Options{}); got != "secret" {
		t.Fatalf("before it is protected: %q", got)
	}
	sandbox.Protect(data)
	read := "for f in plain project/f state/beside/f late/f project/late; do cat $f; done"
	_ = helper(t, top, read, sandbox.Options{})
	if err := os.Mkdir(filepath.Join(top, "late"), 0o755); err != nil {
		t.Fatal(err)
	}
	put("late/f")
	put("project/late")
	// What it needs it can read at once, anything else a moment later.
	if got := helper(t, filepath.Join(top, "late"), "cat f", sandbox.Options{}); got != "secret" {
		t.Errorf("%q", got)
	}
	put("later")
	if got := helper(t, top, "cat later", sandbox.Options{Reads: []string{filepath.Join(top, "later")}}); got != "secret" {
		t.Errorf("%q", got)
	}
	put("last")
	for until := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if got := helper(t, top, read+"; cat last", sandbox.Options{}); got == strings.Repeat("secret", 6) {
			break
		} else if time.Now().After(until) {
			t.Fatalf("%q", got)
		}
	}
	for _, script := range []string{
		"cat state/data/token", "cat project/way/token", "ls state/data", "cd state/data && cat token",
		"ls /proc/" + fmt.Sprint(os.Getpid()) + "/root/", "readlink /proc/" + fmt.Sprint(os.Getpid()) + "/fd/0",
		"echo x >project/f", "echo x >>project/f", "echo x >project/new", "rm project/f", "mv project/f project/g", "mkdir project/d",
		"ln project/f project/h", "ln -s f project/s", "truncate -s 0 project/f", "chmod 777 project/f", "chown 1 project/f",
		"touch -d yesterday project/f", "mkfifo project/p", "bash -c 'echo x >project/new'", "setsid bash -c 'echo x >project/new'",
	} {
		got := helper(t, top, "("+script+") 2>&1 && echo DONE", sandbox.Options{})
		if strings.Contains(got, "DONE") || strings.Contains(got, "secret") {
			t.Errorf("%s: %q", script, got)
		}
	}
	if got := helper(t, top, "echo x >/dev/null && cat project/f", sandbox.Options{}); got != "secret" {
		t.Errorf("%q", got)
	}
	// This process is as free as before.
	put("project/new")
	if raw, err := os.ReadFile(filepath.Join(data, "token")); err != nil || string(raw) != "secret" {
		t.Errorf("%v", err)
	}
}

// A helper that may write in a directory writes there, and nowhere else.
func TestAHelperMayHaveADirectoryToWriteIn(t *testing.T) {
	needs(t, true, false)
	mine, other := t.TempDir(), t.TempDir()
	o := sandbox.Options{Write: []string{mine}}
	if got := helper(t, mine, "mkdir d && echo x >d/f && mv d/f g && cat g && echo y >"+other+"/f", o); !strings.HasPrefix(got, "x\n") ||
		!strings.Contains(got, "denied") {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(other + "/f"); err == nil {
		t.Error("it wrote elsewhere")
	}
}

// A helper reaches no socket, of whatever kind.
func TestAHelperHasNoNetwork(t *testing.T) {
	needs(t, false, true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, kind := range []string{"tcp", "udp"} {
		script := "exec 3<>/dev/" + kind + "/127.0.0.1/" + port + " && echo DONE"
		if got := helper(t, "/", script, sandbox.Options{}); strings.Contains(got, "DONE") {
			t.Errorf("%s: %q", kind, got)
		}
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err != nil {
		t.Errorf("this process is cut off too: %v", err)
	} else {
		_ = c.Close()
	}
}

// Many helpers at once, while directories that are protected come and go.
func TestManyHelpersAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			sandbox.Protect(filepath.Join(t.TempDir(), fmt.Sprint(i)))
			if got := helper(t, "/", "echo x", sandbox.Options{}); got != "x\n" {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
}

func BenchmarkStart(b *testing.B) {
	sandbox.Protect(b.TempDir())
	for name, start := range map[string]func(*exec.Cmd) error{"free": (*exec.Cmd).Start, "sandboxed": sandbox.Start} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command("/bin/true")
				if err := start(cmd); err != nil {
					b.Fatal(err)
				}
				_ = cmd.Wait()
			}
		})
	}
}
