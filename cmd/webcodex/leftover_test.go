package main

import (
	"runtime"
	"strings"
	"testing"

	"webcodex/commands/run"
	"webcodex/internal/leak"
)

// Commands that leave something behind, flood, fail and wait are answered in time with what is
// known, and when the server has ended nothing of them or of it is left.
func TestNothingIsLeftOfASession(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what sheds its mark cannot be found there")
	}
	leak.Check(t)
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	for _, command := range []string{
		"(sleep 600 &) ; echo done",
		"sleep 600 | sleep 601 & echo done",
		"setsid sh -c 'sh -c \"exec sleep 600\" & exit' & sleep 0.1; echo done",
		"env -i setsid sh -c 'exec >/dev/null 2>&1 </dev/null; exec sleep 600' & sleep 0.1; echo done",
		"env -i setsid sh -c 'trap \"\" TERM HUP; exec >/dev/null 2>&1 </dev/null; while :; do sleep 600; done' & sleep 0.1; echo done",
		"nohup sleep 600 >/dev/null 2>&1 & echo done",
	} {
		r := must[run.ShellOut](w, "run_shell", with(p, args{"command": command}))
		if r.Stdout != "done\n" || *r.ExitCode != 0 || !r.LeftoverKilled || len(r.LeftoverAlive) != 0 || r.DurationMS > 8000 {
			t.Errorf("%s: %+v", command, r.Output)
		}
	}
	// What would ask finds no one to ask.
	for _, command := range []string{"read -r x; echo \"[$x]\"; exit 1", "cat; exit 1", "read -r x </dev/tty", "stty sane", "git commit --allow-empty", "git rebase -i HEAD~1", "ssh -o BatchMode=yes nobody@127.0.0.1 -p 1"} {
		r := must[run.ShellOut](w, "run_shell", with(p, args{"command": command, "timeout_secs": 20}))
		if r.TimedOut || r.ExitCode == nil || !strings.HasPrefix(command, "git commit") && *r.ExitCode == 0 || r.DurationMS > 10_000 {
			t.Errorf("%s: %+v", command, r.Output)
		}
	}
	r := must[run.Output](w, "run_process", with(p, args{"executable": "yes", "timeout_secs": 1}))
	if !r.TimedOut || !r.StdoutTruncated || r.StdoutBytes < 1<<20 || len([]rune(r.Stdout)) != 12_000 {
		t.Errorf("%d bytes, %d kept: %v", r.StdoutBytes, len(r.Stdout), r.TimedOut)
	}
	// A Job that runs when the server ends goes with it.
	job := must[run.ShellOut](w, "run_shell", with(p, args{"command": "env -i setsid sleep 600 >/dev/null 2>&1 </dev/null & sleep 600", "sync_wait_secs": 0}))
	if !job.Promoted {
		t.Errorf("%+v", job.Output)
	}
}
