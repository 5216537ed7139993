package proc_test

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"

	"webcodex/internal/proc"
)

// A child gets further descriptors from 3 on, and is signalled only until it was collected.
func TestAChildGetsFurtherDescriptors(t *testing.T) {
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p, err := proc.Start(proc.Command{Mark: "wc_test_files", Executable: "sh", Args: []string{"-c", "trap 'exit 5' USR1; read x <&3; echo got $x >&4; read y <&3"}, Dir: dir,
		Env: os.Environ(), Stdout: proc.NewTail(1024), Stderr: proc.NewTail(1024), Files: []*os.File{in, out}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close()
	_, _ = to.WriteString("word\n")
	line := make([]byte, 9)
	if _, err := io.ReadFull(from, line); err != nil || string(line) != "got word\n" {
		t.Errorf("%q %v", line, err)
	}
	if !p.Signal(syscall.SIGUSR1) {
		t.Error("a living child was not signalled")
	}
	if e := p.Wait(context.Background()); e.Code == nil || *e.Code != 5 {
		t.Errorf("%+v", e)
	}
	if p.Signal(syscall.SIGUSR1) {
		t.Error("a collected child was signalled")
	}
}
