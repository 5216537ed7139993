package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/proc"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// bySelf starts supervisors from the test's own program.
func detaching(o *Options) { o.Supervisor = []string{os.Args[0], "webcodex", "supervise"} }

func (g *rig) detached(command string, limit time.Duration) wire.Offer {
	o := g.make(wire.OpDetached, wire.ProcessIn{Executable: "sh", Args: []string{"-c", command}})
	o.Bounds = wire.Bounds{TimeoutMS: limit.Milliseconds(), Job: true}
	o.Digest = wire.Digest([]byte("k"), o)
	return o
}

// another is the next life on the same directory.
func (g *rig) another() *rig {
	g.t.Helper()
	if err := g.Close(); err != nil {
		g.t.Fatal(err)
	}
	return openRig(g.t, g.dir, g.p.Path, detaching)
}

// pid waits for the pid that a command has written into a file.
func (g *rig) pid(name string) int {
	g.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var pid int
		if b, err := os.ReadFile(g.path(name)); err == nil && strings.HasSuffix(string(b), "\n") {
			if _, err := fmt.Sscan(string(b), &pid); err == nil {
				return pid
			}
		}
	}
	g.t.Fatal("the command wrote no pid")
	return 0
}

// dead tells of a process that has ended and that nobody has asked how yet.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
		if dead(pid) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("process %d lives", pid)
			return
		}
	}
}

// A detached Job goes on while its Runner is away; the next life follows it under the same id, with
// the tokens of before, and tells its end once.
//
// Covers: EXE-38
func TestADetachedJobOutlivesItsRunner(t *testing.T) {
	t.Parallel()
	g := newRig(t, detaching)
	o := g.detached("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 3", time.Minute)
	if reply := g.offer(g.link, o); !reply.Accepted {
		t.Fatalf("%+v", reply)
	}
	g.until(o.ID, wire.JRunning)
	var v wire.JobView
	for deadline := time.Now().Add(10 * time.Second); v.StdoutDelta != "one\n"; {
		if v, _ = g.observe(o.ID, "", 2, 0); time.Now().After(deadline) {
			t.Fatalf("%+v", v)
		}
	}
	g = g.another()
	if s := g.state(o.ID); s != wire.JRunning {
		t.Fatalf("in the next life it is %s", s)
	}
	if q := g.query(wire.Query{ID: o.ID}); q.State != wire.JRunning || q.Result != nil {
		t.Errorf("%+v", q)
	}
	if running := g.slots().Running; running != 1 {
		t.Errorf("%d slots are taken", running)
	}
	g.followAdopted(g.link)
	if same, outcome := g.observe(o.ID, v.Token, 2, 50*time.Millisecond); outcome != "timeout" || same.Reset || same.Terminal {
		t.Errorf("the token of before: %s %+v", outcome, same)
	}
	if err := os.WriteFile(g.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	end := g.end()
	if p := end.Process; end.ID != o.ID || end.Digest != o.Digest || end.Instance != o.Fence.Instance || end.State != wire.JTerminal ||
		*p.ExitCode != 3 || p.Stdout.Text != "one\ntwo\n" || p.Stdout.Bytes != 8 {
		t.Errorf("%+v %+v", end, end.Process)
	}
	g.until(o.ID, wire.JSettled)
	if last, _ := g.observe(o.ID, v.Token, 2, 0); last.Reset || last.StdoutDelta != "two\n" || !last.Terminal {
		t.Errorf("%+v", last)
	}
	g = g.another()
	if last, _ := g.observe(o.ID, v.Token, 2, 0); last.Reset || last.StdoutDelta != "two\n" || !last.Terminal || *last.Outcome.ExitCode != 3 {
		t.Errorf("in a third life: %+v", last)
	}
}

// What ended while no Runner lived is told by the next one.
func TestADetachedJobEndsWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	g := newRig(t, detaching)
	o := g.detached("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done; echo said", time.Minute)
	g.offer(g.link, o)
	g.until(o.ID, wire.JRunning)
	pid := g.pid("pid")
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(g.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone(t, pid)
	job, _ := supervise.Open(filepath.Join(jobsDir(g.dir), string(o.ID)))
	for deadline := time.Now().Add(10 * time.Second); job.Look() == supervise.Held && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	g = openRig(t, g.dir, g.p.Path, detaching)
	go g.tellOwed(g.link)
	if end := g.end(); end.ID != o.ID || end.Process == nil || *end.Process.ExitCode != 0 || end.Process.Stdout.Text != "said\n" {
		t.Errorf("%+v", end)
	}
}

// A Job is ended when it is asked for, in the life that started it and in the next, and at its
// limit; nothing of it is left.
func TestADetachedJobIsEnded(t *testing.T) {
	t.Parallel()
	for name, adopt := range map[string]bool{"its life": false, "the next": true} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, detaching)
			o := g.detached("echo $$ >pid; (setsid sleep 600 & echo $! >other); exec sleep 600", time.Minute)
			g.offer(g.link, o)
			g.until(o.ID, wire.JRunning)
			pid, other := g.pid("pid"), g.pid("other")
			if adopt {
				g = g.another()
				g.followAdopted(g.link)
			}
			if ack := g.cancel(wire.Cancel{ID: o.ID}); !ack.OK {
				t.Fatalf("%+v", ack)
			}
			if end := g.end(); end.State != wire.JTerminal || !end.Process.Cancelled || end.Process.TimedOut || end.Process.ExitCode != nil {
				t.Errorf("%+v %+v", end, end.Process)
			}
			gone(t, pid)
			gone(t, other)
		})
	}
	t.Run("at its limit", func(t *testing.T) {
		g := newRig(t, detaching)
		o := g.detached("echo $$ >pid; exec sleep 600", time.Second)
		if end := g.do(o); !end.Process.TimedOut || end.Process.Cancelled || end.DurationMS < 900 {
			t.Errorf("%+v %+v", end, end.Process)
		}
		gone(t, g.pid("pid"))
	})
}

// Where the supervisor itself is killed the Job is lost, and what it left behind is ended: by the
// life that sees it, or by the next.
//
// Covers: EXE-39
func TestAKilledSupervisorLosesItsJob(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]bool{"a Runner looks": false, "nobody looks": true} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, detaching)
			o := g.detached("echo $$ >pid; exec sleep 600", time.Minute)
			g.offer(g.link, o)
			g.until(o.ID, wire.JRunning)
			pid := g.pid("pid")
			job, _ := supervise.Open(filepath.Join(jobsDir(g.dir), string(o.ID)))
			if away {
				if err := g.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(job.Record.Supervisor.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if away {
				// Its threads end one after the other; with the last one the lock goes.
				for deadline := time.Now().Add(10 * time.Second); job.Look() == supervise.Held && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
				}
				g = openRig(t, g.dir, g.p.Path, detaching)
				go g.tellOwed(g.link)
			}
			if end := g.end(); end.ID != o.ID || end.State != wire.JLost {
				t.Errorf("%+v", end)
			}
			gone(t, pid)
			if s := g.state(o.ID); s != wire.JLost {
				t.Errorf("the journal says %s", s)
			}
		})
	}
}

// Nothing was started where nothing could be, and the id proves it.
func TestADetachedJobThatCannotStart(t *testing.T) {
	t.Parallel()
	g := newRig(t, detaching)
	o := g.make(wire.OpDetached, wire.ProcessIn{Executable: "no-such-program"})
	o.Bounds.Job = true
	if end := g.do(o); end.State != wire.JStartFailed || end.Fault.Kind != fault.CommandSpawnFailed || end.Fault.Reason != proc.NotFound {
		t.Errorf("%+v %+v", end, end.Fault)
	}
	plain := newRig(t)
	if reply := plain.offer(plain.link, plain.detached("true", time.Minute)); fault.KindOf(reply.Fault) != fault.RunnerRefused || reply.Fault.Reason != "no_capability" {
		t.Errorf("%+v", reply)
	}
	broken := newRig(t, func(o *Options) { o.Supervisor = []string{"/nowhere/webcodex", "webcodex"} })
	if end := broken.do(broken.detached("true", time.Minute)); end.State != wire.JStartFailed {
		t.Errorf("%+v", end)
	}
}

// Directories of Jobs are bounded by number and age; one of a Job that lives, or whose end nobody
// has acknowledged, stays.
func TestDirectoriesOfJobsAreBounded(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	g := newRig(t, detaching, func(o *Options) { o.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) } })
	first := g.detached("true", time.Minute)
	g.do(first)
	g.until(first.ID, wire.JSettled)
	living := g.detached("while [ ! -e go ]; do sleep 0.02; done", time.Minute)
	g.offer(g.link, living)
	g.until(living.ID, wire.JRunning)
	there := func(id event.ExecutionID) bool {
		_, err := os.Stat(filepath.Join(jobsDir(g.dir), string(id)))
		return err == nil
	}
	g.tidyJobs()
	if !there(first.ID) || !there(living.ID) {
		t.Fatal("a young directory was removed")
	}
	later.Store(int64(keptJobAge + time.Hour))
	g.tidyJobs()
	if there(first.ID) || !there(living.ID) {
		t.Errorf("the old one is there: %v, the living one: %v", there(first.ID), there(living.ID))
	}
	_ = os.WriteFile(g.path("go"), nil, 0o600)
	g.end()
}
