package eventlog

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"webcodex/internal/fault"
)

// A process in another pid namespace is another process all the same: the lock is the
// kernel's, no pid is compared.
func TestSecondProcessInAnotherPidNamespaceIsRefused(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Getuid() != 0 {
		t.Skip("another pid namespace needs unshare, and root")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	l := open(t, dir)
	play, err := json.Marshal(part{Play: "open", Dir: dir, Mode: Process})
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		cmd := exec.Command(unshare, "-p", "-f", exe)
		cmd.Env = append(os.Environ(), envPart+"="+string(play))
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("unshare: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	var s said
	if err := json.Unmarshal([]byte(ask()), &s); err != nil || s.Kind != fault.Conflict {
		t.Errorf("beside the first process: %+v, %v", s, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s = said{}
	if line, _, _ := strings.Cut(ask(), "\n"); json.Unmarshal([]byte(line), &s) != nil || s.Kind != "" {
		t.Errorf("after it: %s", line)
	}
}
