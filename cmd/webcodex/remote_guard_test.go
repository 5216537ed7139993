package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What runs in a Runner that is killed ends with it, whatever it shed, and without another start:
// a command in a session of its own, one that has cleared its environment too, and what a persistent
// shell left in the background.
//
// Covers: EXE-39, SHL-27
func TestAKilledRunnerLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	r := newRemote(t, "tls")
	var session struct {
		ID string `json:"session_id"`
	}
	if err := r.call("work_on_project", args{"project": r.project, "instruction": "go"}).Decode(&session); err != nil {
		t.Fatal(err)
	}
	on := args{"project": r.project, "session_id": session.ID}
	left := "setsid sleep 300 & echo $! >> ../marks; env -i setsid sleep 301 & echo $! >> ../marks; "
	var shell struct {
		ID string `json:"shell_id"`
	}
	if res := r.call("open_session_shell", on); res.Decode(&shell) != nil || shell.ID == "" {
		t.Fatal(res.Text)
	}
	if res := r.call("execute_session_shell", with(on, args{"shell_id": shell.ID, "command": left + "echo in the shell"})); res.IsError {
		t.Fatal(res.Text)
	}
	if res := r.call("run_shell", with(on, args{"command": left + "echo $$ >> ../marks; sleep 302", "sync_wait_secs": 0, "timeout_secs": 100})); res.IsError {
		t.Fatal(res.Text)
	}
	var pids []int
	for end := time.Now().Add(20 * time.Second); len(pids) < 5; time.Sleep(20 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(r.dir, "marks"))
		pids = nil
		for _, word := range strings.Fields(string(raw)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("only %v run", pids)
		}
	}
	time.Sleep(500 * time.Millisecond) // what is over in a moment is no matter of the guard
	r.runner.kill()
	for end := time.Now().Add(20 * time.Second); len(pids) > 0; time.Sleep(20 * time.Millisecond) {
		var alive []int
		for _, pid := range pids {
			if syscall.Kill(pid, 0) == nil && !zombie(pid) {
				alive = append(alive, pid)
			}
		}
		if pids = alive; time.Now().After(end) {
			t.Fatalf("%v still run", pids)
		}
	}
	r.startRunner() // it puts away what the dead one had in the directory for temporary files
}

// zombie reports a process that has ended and that nobody has collected.
func zombie(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	return strings.HasPrefix(rest, "Z")
}
