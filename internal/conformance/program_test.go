package conformance_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ready is the line of `webcodex up --json`.
type ready struct {
	MCPURL  string `json:"mcp_url"`
	Token   string `json:"token"`
	Project string `json:"project"`
	DataDir string `json:"data_dir"`
	PID     int    `json:"pid"`
}

// built is a program of this repository, built once for all tests.
type built struct {
	once sync.Once
	path string
	err  error
}

var (
	binDir   = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "webcodex-conformance-") })
	webcodex built
	fixtures built
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := binDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// program builds the package below the module's root and gives the binary.
func (b *built) program(t *testing.T, pkg string) string {
	t.Helper()
	b.once.Do(func() {
		dir, err := binDir()
		if err != nil {
			b.err = err
			return
		}
		b.path = filepath.Join(dir, filepath.Base(pkg))
		if out, err := exec.Command("go", "build", "-o", b.path, "webcodex/"+pkg).CombinedOutput(); err != nil {
			b.err = errors.New("go build " + pkg + ": " + string(out))
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// up starts the program on a scratch repository with a data directory of its own.
func up(t *testing.T, repo string) ready {
	t.Helper()
	return upOn(t, repo, filepath.Join(t.TempDir(), "data"), "127.0.0.1:0").ready
}

// upOn starts the program on a repository, a data directory and an address.
func upOn(t *testing.T, repo, data, listen string) *server {
	t.Helper()
	bin := webcodex.program(t, "cmd/webcodex")
	return serve(t, bin, "up", repo, "--json", "--data", data, "--listen", listen, "--durability", "process")
}

// server is a program that serves.
type server struct {
	ready
	cmd    *exec.Cmd
	done   chan error // what the program ended with
	log    tailBuffer
	killed bool
}

// serve starts a server that prints its ready line, and ends it with the test.
func serve(t *testing.T, bin string, args ...string) *server {
	t.Helper()
	s := &server{cmd: exec.Command(bin, args...), done: make(chan error, 1)}
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan []byte, 1)
	go func() {
		r := bufio.NewReader(out)
		line, _ := r.ReadBytes('\n')
		lines <- line
		for { // a full pipe would stop the server
			if _, err := r.Discard(4096); err != nil {
				break
			}
		}
		s.done <- s.cmd.Wait()
	}()
	t.Cleanup(func() { s.stop(t) })
	select {
	case line := <-lines:
		if err := json.Unmarshal(line, &s.ready); err != nil || s.MCPURL == "" {
			t.Fatalf("the ready line is %q (%v)\n%s", line, err, s.log.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("not ready\n%s", s.log.String())
	}
	return s
}

// kill ends the server without a word to it, by SIGKILL.
func (s *server) kill(t *testing.T) {
	t.Helper()
	s.killed = true
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatalf("the server has ended by itself: %v\n%s", err, s.log.String())
	}
	<-s.done
}

func (s *server) stop(t *testing.T) {
	if s.killed {
		return
	}
	if t.Failed() {
		t.Logf("the server's last words:\n%s", s.log.String())
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("the server has ended by itself: %v", err)
	}
	select {
	case err := <-s.done:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the server does not end on SIGTERM")
		s.cmd.Process.Kill()
		<-s.done
	}
}

// tailBuffer keeps the end of what a process writes.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if len(b.buf) > 64<<10 {
		b.buf = append(b.buf[:0], b.buf[len(b.buf)-32<<10:]...)
	}
	return len(p), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return tail(string(b.buf))
}

// repository is a small Go module with a failing test, committed.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{
		"go.mod":      "module example.com/sum\n\ngo 1.24\n",
		"sum.go":      "package sum\n\n// Sum adds.\nfunc Sum(a, b int) int { return a - b }\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif got := Sum(2, 3); got != 5 {\n\t\tt.Errorf(\"Sum(2, 3) = %d\", got)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "start"}} {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}
