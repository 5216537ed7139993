package proc_test

import (
	"encoding/json"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
)

// stray starts a process that leads a session and belongs to no execution of this life.
func stray(t *testing.T, mark string) (cmd *osexec.Cmd, start uint64) {
	t.Helper()
	cmd = osexec.Command("sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if mark != "" {
		cmd.Env = append(cmd.Env, proc.MarkVariable+"="+mark)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, proc.StartOf(cmd.Process.Pid)
}

// Leftovers of a dead life go by mark or by a leader that is still the same process; a pid
// that was taken by another process since is spared.
func TestLeftoversAreEndedAndInnocentsSpared(t *testing.T) {
	id := string(event.NewExecutionID())
	marked, _ := stray(t, id)
	bare, start := stray(t, "")
	innocent, other := stray(t, "")
	foreign, _ := stray(t, string(event.NewExecutionID()))
	alive, killed := proc.EndLeftovers([]proc.Leftover{
		{Mark: id},
		{Mark: "wc_exec_none", Leader: proc.Identity{PID: bare.Process.Pid, Start: start}},
		{Mark: "wc_exec_none", Leader: proc.Identity{PID: innocent.Process.Pid, Start: other - 1}},
	})
	if len(alive) > 0 || !killed {
		t.Fatalf("alive %v, killed %v", alive, killed)
	}
	for name, c := range map[string]struct {
		cmd   *osexec.Cmd
		lives bool
	}{"marked": {marked, false}, "bare": {bare, false}, "innocent": {innocent, true}, "foreign": {foreign, true}} {
		if living(c.cmd.Process.Pid) != c.lives {
			t.Errorf("%s: alive %v", name, !c.lives)
		}
	}
}

// What may not be ended is named. It takes another uid's process to show it.
func TestWhatCannotBeEndedIsNamed(t *testing.T) {
	if os.Getenv("PROC_TEST_AS_NOBODY") != "" {
		var l proc.Leftover
		if err := json.Unmarshal([]byte(os.Getenv("PROC_TEST_AS_NOBODY")), &l); err != nil {
			t.Fatal(err)
		}
		alive, killed := proc.EndLeftovers([]proc.Leftover{l})
		if killed || len(alive) != 1 || !strings.HasSuffix(alive[0], " sleep") {
			t.Fatalf("alive %v, killed %v", alive, killed)
		}
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	cmd, start := stray(t, "")
	who, err := json.Marshal(proc.Leftover{Mark: "wc_exec_none", Leader: proc.Identity{PID: cmd.Process.Pid, Start: start}})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(dir+"/test", exe, 0o755); err != nil {
		t.Fatal(err)
	}
	again := osexec.Command(dir+"/test", "-test.run=^TestWhatCannotBeEndedIsNamed$")
	again.Dir, again.Env = "/", append(os.Environ(), "PROC_TEST_AS_NOBODY="+string(who))
	again.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !living(cmd.Process.Pid) {
		t.Fatal("it was ended after all")
	}
}

func living(pid int) bool {
	time.Sleep(20 * time.Millisecond)
	return alive(pid)
}
