package proc_test

import (
	"bytes"
	"io"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// On a terminal too, a child has none: it neither asks there nor gets what is typed.
func TestATerminalIsNotPassedOn(t *testing.T) {
	if os.Getenv("PROC_TEST_ON_TERMINAL") != "" {
		if f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			t.Fatalf("the test has no terminal itself: %v", err)
		} else {
			_ = f.Close()
		}
		if r := sh(t, 10*time.Second, "read x </dev/tty"); r.Code == nil || *r.Code == 0 || r.TimedOut {
			t.Errorf("%+v %s", r.Exit, r.stderr())
		}
		if r := sh(t, 10*time.Second, "setsid sleep 300 & sleep 0.1"); !r.LeftoverKilled {
			t.Errorf("%+v", r.Exit)
		}
		return
	}
	cmd := osexec.Command(os.Args[0], "-test.run=^TestATerminalIsNotPassedOn$")
	cmd.Env = append(os.Environ(), "PROC_TEST_ON_TERMINAL=1")
	terminal, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var out bytes.Buffer
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(&out, terminal) }()
	_, _ = terminal.WriteString("typed\n")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	<-done
	if !strings.Contains(out.String(), "PASS") {
		t.Errorf("%s", out.String())
	}
}
