package proc_test

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
)

// ways are the ways in which an execution can be held together: each is tested where the system
// and the rights of the test have it.
var ways = []string{proc.Unified, proc.Freezer, ""}

// eachWay runs a test in each; held tells whether there is a control group.
func eachWay(t *testing.T, test func(t *testing.T, held bool)) {
	t.Helper()
	for _, way := range ways {
		name := way
		if name == "" {
			name = "subreaper and group"
		}
		t.Run(name, func(t *testing.T) {
			restore, ok := proc.UseCells(way)
			if !ok {
				t.Skipf("%s cannot be used here", way)
			}
			defer restore()
			before := len(proc.Cells())
			test(t, way != "")
			for until := time.Now().Add(3 * time.Second); len(proc.Cells()) > before && time.Now().Before(until); {
				time.Sleep(5 * time.Millisecond)
			}
			if left := proc.Cells(); len(left) > before {
				t.Errorf("control groups stay: %v", left)
			}
			if way != "" && proc.CellsOff() {
				t.Error("a child could not be started in its control group")
			}
		})
	}
}

// escapes are programs that leave something behind which writes its pid into the file pid.
var escapes = map[string]string{
	"in the background":  "(sleep 600 & echo $! >pid); echo done",
	"a pipeline":         "sleep 600 | sleep 601 & echo $! >pid; echo done",
	"double fork":        "setsid sh -c 'sh -c \"echo \\$\\$ >pid; exec sleep 600\" & exit' & sleep 0.2; echo done",
	"sheds all":          "env -i setsid sh -c 'exec >/dev/null 2>&1 </dev/null; echo $$ >pid; exec sleep 600' & sleep 0.2; echo done",
	"a daemon":           "env -i setsid sh -c 'exec >/dev/null 2>&1 </dev/null; (setsid sh -c \"cd /; echo \\$\\$ >'$PWD'/pid; exec sleep 600\" &) ; exit' & sleep 0.3; echo done",
	"a group of its own": "bash -c 'set -m; env -i sleep 600 >/dev/null 2>&1 </dev/null & echo $! >pid'; echo done",
	"ignores its end":    "env -i setsid sh -c 'trap \"\" TERM HUP INT; exec >/dev/null 2>&1 </dev/null; echo $$ >pid; while :; do sleep 600; done' & sleep 0.2; echo done",
}

// Whatever a child does to get away, nothing of it is alive afterwards, and its end is the one it
// had: with control groups of either version, and without.
func TestNothingGetsAway(t *testing.T) {
	eachWay(t, func(t *testing.T, held bool) {
		t.Run("all", func(t *testing.T) {
			for name, script := range escapes {
				t.Run(name, func(t *testing.T) {
					if held {
						t.Parallel()
					}
					escape(t, script)
				})
			}
		})
	})
}

func escape(t *testing.T, script string) {
	c := command(t, 20*time.Second, "sh", "-c", script)
	r := run(t, c)
	if r.Code == nil || *r.Code != 0 || r.stdout() != "done\n" || !r.LeftoverKilled || len(r.LeftoverAlive) != 0 || r.Duration > 8*time.Second {
		t.Errorf("%+v %q %s", r.Exit, r.stdout(), r.stderr())
	}
	if pid := pidIn(t, filepath.Join(c.Dir.Name(), "pid")); alive(pid) {
		t.Errorf("process %d lives on", pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// At the limit and when it is cancelled the same holds for all that was started.
func TestNothingGetsAwayFromItsLimit(t *testing.T) {
	script := "env -i setsid sh -c 'trap \"\" TERM; exec >/dev/null 2>&1 </dev/null; echo $$ >pid; while :; do sleep 600; done' & sleep 600 | cat"
	eachWay(t, func(t *testing.T, _ bool) {
		c := command(t, 400*time.Millisecond, "sh", "-c", script)
		if r := run(t, c); !r.TimedOut || !r.LeftoverKilled || len(r.LeftoverAlive) != 0 || r.Duration > 6*time.Second || alive(pidIn(t, filepath.Join(c.Dir.Name(), "pid"))) {
			t.Errorf("at the limit: %+v", r.Exit)
		}
		c = command(t, time.Minute, "sh", "-c", script)
		p, err := proc.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		if e := p.Wait(ctx); !e.Cancelled || e.TimedOut || !e.LeftoverKilled || len(e.LeftoverAlive) != 0 || alive(pidIn(t, filepath.Join(c.Dir.Name(), "pid"))) {
			t.Errorf("cancelled: %+v", e)
		}
	})
}

// Something that forks faster than it can be listed ends all the same.
func TestAForkBombEnds(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool) {
		c := command(t, 400*time.Millisecond, "sh", "-c", `trap "" TERM; spawn() { while :; do (sleep 0.01; sleep 600) & sleep 0.005; done; }; setsid sh -c 'trap "" TERM; while :; do sleep 0.01 & wait; done' & spawn`)
		r := run(t, c)
		if !r.TimedOut || len(r.LeftoverAlive) != 0 {
			t.Errorf("%+v", r.Exit)
		}
		if n := marked(t, c.Mark); n != 0 {
			t.Errorf("%d processes live on", n)
		}
	})
}

// marked counts living processes with a mark.
func marked(t *testing.T, mark string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if env, err := os.ReadFile(file); err == nil && strings.Contains(string(env), mark) {
			n++
		}
	}
	return n
}

// Executions side by side end their own and nothing else. Without control groups, one that shed
// everything is named where it may be of either.
func TestEachEndsItsOwn(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				c := command(t, 20*time.Second, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & setsid sh -c 'sleep 0.5; echo whole'")
				if r := run(t, c); r.stdout() != "whole\n" || !r.LeftoverKilled || len(r.LeftoverAlive) != 0 {
					t.Errorf("%+v %q %s", r.Exit, r.stdout(), r.stderr())
				}
			})
		}
		group.Wait()
	})
	restore, _ := proc.UseCells("")
	defer restore()
	slow := command(t, 20*time.Second, "sleep", "1")
	p, err := proc.Start(slow)
	if err != nil {
		t.Fatal(err)
	}
	c := command(t, 20*time.Second, "sh", "-c", escapes["sheds all"])
	r := run(t, c)
	pid := pidIn(t, filepath.Join(c.Dir.Name(), "pid"))
	if len(r.LeftoverAlive) != 1 || !strings.HasSuffix(r.LeftoverAlive[0], " sleep") || !alive(pid) {
		t.Errorf("%+v", r.Exit)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if e := p.Wait(context.Background()); e.Code == nil || *e.Code != 0 {
		t.Errorf("%+v", e)
	}
}

// What a killed life left in a control group is found in it by the next one.
func TestLeftoversAreFoundInTheirGroup(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool) {
		c := command(t, time.Minute, "sh", "-c", "exec env -i sh -c 'exec >/dev/null 2>&1 </dev/null; echo $$ >pid; exec sleep 600'")
		p, err := proc.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
		pid := pidIn(t, filepath.Join(c.Dir.Name(), "pid"))
		alive, killed := proc.EndLeftovers([]proc.Leftover{{Mark: c.Mark, Leader: p.Identity()}})
		if len(alive) != 0 || !killed || living(pid) {
			t.Errorf("alive %v, killed %v", alive, killed)
		}
		p.Wait(t.Context())
	})
}

// Every start has a terminal's absence, a session and a closed input, whichever way it is held.
func TestEveryStartIsApart(t *testing.T) {
	eachWay(t, func(t *testing.T, _ bool) {
		r := sh(t, 10*time.Second, `read -r pid comm state parent group session tty rest </proc/self/stat
			set -- $(cat /proc/$$/stat); [ "$5" = "$$" ] && [ "$6" = "$$" ] && [ "$7" = 0 ] && readlink /proc/$$/fd/0
			n=0; for f in /proc/$$/fd/*; do [ -e $f ] && n=$((n+1)); done; echo $n`)
		if got := strings.Fields(r.stdout()); len(got) != 2 || got[0] != "/dev/null" || got[1] != "3" {
			t.Errorf("%q %s", r.stdout(), r.stderr())
		}
	})
}

// A control group that was taken away costs the execution its group and nothing else; where none
// takes a process, no more are made.
func TestACellThatFails(t *testing.T) {
	for _, gone := range []bool{true, false} {
		restore, ok := proc.UseCells(proc.Unified)
		if !ok {
			t.Skip("no control groups of version 2 here")
		}
		if !gone {
			// Below a threaded group none is valid until it is threaded too.
			dir := filepath.Join(proc.Nest(), "webcodex-threaded-"+string(event.NewExecutionID()))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(dir) })
			if err := os.WriteFile(filepath.Join(dir, "cgroup.type"), []byte("threaded"), 0); err != nil {
				t.Skipf("no threaded groups: %v", err)
			}
			restore()
			restore = proc.UseNest(dir)
		}
		before := proc.Cells()
		c := command(t, 20*time.Second, "sh", "-c", escapes["double fork"])
		p, err := proc.Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		made := slices.DeleteFunc(proc.Cells(), func(dir string) bool { return slices.Contains(before, dir) })
		if len(made) != 1 {
			t.Fatalf("%v were made", made)
		}
		if gone {
			if err := os.Remove(made[0]); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Launch(20 * time.Second); err != nil {
			t.Fatal(err)
		}
		if e := p.Wait(t.Context()); e.Code == nil || *e.Code != 0 || !e.LeftoverKilled || len(e.LeftoverAlive) != 0 {
			t.Errorf("%+v", e)
		}
		if proc.CellsOff() == gone {
			t.Errorf("gone %v, and more are made %v", gone, !proc.CellsOff())
		}
		if left := proc.Cells(); len(left) > len(before) {
			t.Errorf("%v stay", left)
		}
		restore()
	}
}

// The kernel's texts are read as they come: with the hierarchy mounted whole or in part, in a
// place with a space in its name, beside others, or not at all.
func TestOwnControlGroup(t *testing.T) {
	const groups = "9:name=systemd:/\n6:cpu,freezer:/box/a b\n5:freezer2:/wrong\n0::/user.slice/x.scope\n"
	for name, c := range map[string]struct{ kind, mounts, want string }{
		"whole":     {proc.Unified, "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/user.slice/x.scope"},
		"in part":   {proc.Unified, "30 23 0:26 /user.slice /cg rw - cgroup2 none rw\n", "/cg/x.scope"},
		"the very":  {proc.Unified, "30 23 0:26 /user.slice/x.scope /cg rw - cgroup2 none rw\n", "/cg"},
		"elsewhere": {proc.Unified, "30 23 0:26 /user /cg rw - cgroup2 none rw\n", ""},
		"a space":   {proc.Unified, "30 23 0:26 / /c\\040g rw - cgroup2 none rw\n", "/c g/user.slice/x.scope"},
		"freezer":   {proc.Freezer, "30 23 0:26 / /f rw - cgroup cgroup rw,cpu\n31 23 0:27 / /g rw a:1 b:2 - cgroup cgroup rw,freezer\n", "/g/box/a b"},
		"none":      {proc.Freezer, "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", ""},
		"cut":       {proc.Unified, "30 23 0:26 /\nx - y\n - cgroup2 a b\n", ""},
		"no mounts": {proc.Unified, "", ""},
	} {
		if got := proc.GroupDir(c.kind, groups, c.mounts); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := proc.GroupDir(proc.Unified, "", "30 23 0:26 / /c rw - cgroup2 a b\n"); got != "" {
		t.Errorf("without a group: %q", got)
	}
}

// A group that an execution made within its own is part of it, and goes with it.
func TestGroupsWithinACell(t *testing.T) {
	for _, way := range []string{proc.Unified, proc.Freezer} {
		restore, ok := proc.UseCells(way)
		if !ok {
			t.Logf("%s cannot be used here", way)
			continue
		}
		before := len(proc.Cells())
		mark := string(event.NewExecutionID())
		c := command(t, 20*time.Second, "sh", "-c", `mkdir -p "$1/a/b" && env -i setsid sh -c 'echo $$ >"$1/a/b/cgroup.procs"; exec >/dev/null 2>&1 </dev/null; echo $$ >pid; exec sleep 600' - "$1" & sleep 0.3`, "-",
			proc.CellOf(mark))
		c.Mark = mark
		r := run(t, c)
		if !r.LeftoverKilled || len(r.LeftoverAlive) != 0 || r.stderr() != "" || alive(pidIn(t, filepath.Join(c.Dir.Name(), "pid"))) {
			t.Errorf("%s: %+v %s", way, r.Exit, r.stderr())
		}
		if left := proc.Cells(); len(left) > before {
			t.Errorf("%s: %v stay", way, left)
		}
		restore()
	}
}

// Empty groups of processes that are gone are removed at the start; those of the living are not,
// nor what another made.
func TestEmptyGroupsAreSweptUp(t *testing.T) {
	gone := osexec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{proc.Unified, proc.Freezer} {
		restore, ok := proc.UseCells(way)
		if !ok {
			t.Logf("%s cannot be used here", way)
			continue
		}
		id := string(event.NewExecutionID())
		stays := map[string]bool{
			fmt.Sprintf("webcodex-%d-%s", gone.Process.Pid, id): false, fmt.Sprintf("webcodex-%d-%s", os.Getpid(), id): true,
			"webcodex-" + id: true, "other-" + id: true,
		}
		for name := range stays {
			dir := filepath.Join(proc.Nest(), name)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(dir) })
		}
		proc.Sweep()
		for name, stay := range stays {
			if _, err := os.Stat(filepath.Join(proc.Nest(), name)); (err == nil) != stay {
				t.Errorf("%s: %s: %v", way, name, err)
			}
		}
		restore()
	}
}
