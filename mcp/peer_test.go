package mcp

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be the client that runs under another uid.
func TestMain(m *testing.M) {
	if path := os.Getenv("WEBCODEX_TEST_DIAL"); path != "" {
		os.Exit(dialAsOther(path))
	}
	os.Exit(m.Run())
}

// dialAsOther reports by exit code: 0 refused, 3 served, 4 could not connect at all.
func dialAsOther(path string) int {
	c, err := net.Dial("unix", path)
	if err != nil {
		return 4
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "hello")
	b := make([]byte, 1)
	if n, err := c.Read(b); n == 0 && err != nil {
		return 0
	}
	return 3
}

// TestPeerUID: the own uid is served, another gets nothing although the file lets it in.
func TestPeerUID(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "peer")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l := listenSocket(t, path)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.ReadFull(c, make([]byte, 5))
				_, _ = io.WriteString(c, "served")
			}()
		}
	}()
	if code := dialAsOther(path); code != 3 {
		t.Fatalf("the own uid was not served: %d", code)
	}
	if os.Geteuid() != 0 {
		t.Skip("another uid needs root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := filepath.Join(dir, "client")
	bin, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(client, bin, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(client)
	cmd.Dir = dir
	cmd.Env = []string{"WEBCODEX_TEST_DIAL=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("another uid was not refused at the listener: %v %s", err, out)
	}
}
