package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
//
// Covers: EXE-38
func TestADetachedJobEndsWhileNobodyLooks(t *testing.T) {
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
// Covers: EXE-38
func TestAKilledSupervisorLosesItsJob(t *testing.T) {
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
				gone(t, job.Record.Supervisor.PID)
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

// A journal that was deleted, or restored from before the start, learns of the Job from its
// directory: it goes on, and nobody is told that it never was.
//
// Covers: EXE-38
func TestAJournalLearnsOfDetachedJobs(t *testing.T) {
	for name, restored := range map[string]bool{"deleted": false, "restored": true} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, detaching)
			o := g.detached("while [ ! -e go ]; do sleep 0.02; done; echo said", time.Minute)
			var before []byte
			g.up.onClaim = func() { before, _ = os.ReadFile(logFile(g.dir)) }
			g.offer(g.link, o)
			g.until(o.ID, wire.JRunning)
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(logFile(g.dir), logFile(g.dir)+".away"); err != nil {
				t.Fatal(err)
			}
			if restored {
				if err := os.WriteFile(logFile(g.dir), before, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			g = openRig(t, g.dir, g.p.Path, detaching)
			if s := g.state(o.ID); s != wire.JRunning {
				t.Errorf("the journal says %s", s)
			}
			g.followAdopted(g.link)
			if err := os.WriteFile(g.path("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if end := g.end(); end.ID != o.ID || end.Digest != o.Digest || end.Instance != o.Fence.Instance || end.Process.Stdout.Text != "said\n" {
				t.Errorf("%+v", end)
			}
		})
	}
}

// Directories of Jobs are bounded by number and age; one of a Job that lives, or whose end nobody
// has acknowledged, stays.
func TestDirectoriesOfJobsAreBounded(t *testing.T) {
	g := newRig(t, detaching)
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
	g.o.Now = func() time.Time { return time.Now().Add(keptJobAge + time.Hour) }
	g.tidyJobs()
	if there(first.ID) || !there(living.ID) {
		t.Errorf("the old one is there: %v, the living one: %v", there(first.ID), there(living.ID))
	}
	_ = os.WriteFile(g.path("go"), nil, 0o600)
	g.end()
}

// detachVictim starts detached Jobs until it is killed, and says which.
func detachVictim(dir, root string) {
	o := Options{Dir: dir, Client: "c1"}
	detaching(&o)
	r, err := New(o)
	if err != nil {
		os.Exit(1)
	}
	p, err := r.AddProject(root)
	if err != nil {
		os.Exit(1)
	}
	r.link = newUpstream()
	for {
		id := event.NewExecutionID()
		body, _ := json.Marshal(wire.ProcessIn{Executable: "sh", Args: []string{"-c", "echo ran >>" + string(id) + "; sleep 0.05"}})
		offer := wire.Offer{ID: id, Op: wire.OpDetached, Body: body, Bounds: wire.Bounds{TimeoutMS: 20_000, Job: true},
			Fence: wire.Fence{Client: "c1", Instance: r.instance, Project: p.ID, Root: p.Fingerprint}}
		offer.Digest = wire.Digest([]byte("k"), offer)
		fmt.Println(id)
		r.offer(context.Background(), offer)
		time.Sleep(3 * time.Millisecond)
	}
}

// A Runner killed anywhere starts nothing twice, and the next life's word about each Job agrees
// with the mark that it left.
//
// Covers: EXE-38
func TestAKilledRunnersDetachedJobs(t *testing.T) {
	rounds := 6
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds = 200
	}
	dir, root := t.TempDir(), t.TempDir()
	ids := map[event.ExecutionID]bool{}
	counts := map[wire.JournalState]int{}
	for range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "RUNNER_TEST_DETACH="+dir, "RUNNER_TEST_ROOT="+root)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, first := bufio.NewScanner(out), true
		for lines.Scan() {
			ids[event.ExecutionID(lines.Text())] = true
			if first {
				first = false
				time.AfterFunc(rand.N(120*time.Millisecond), func() { _ = cmd.Process.Kill() })
			}
		}
		_ = cmd.Wait()
		g := openRig(t, dir, root, detaching)
		g.followAdopted(g.link)
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if g.slots().Running == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("adopted Jobs do not end")
			}
		}
		g.tellOwed(g.link)
		for id := range ids {
			s, n := g.state(id), g.marks(string(id))
			counts[s]++
			switch {
			case n > 1:
				t.Errorf("%s ran %d times", id, n)
			case s == wire.JTerminal || s == wire.JSettled:
				if n != 1 {
					t.Errorf("%s is %s and left %d marks", id, s, n)
				}
			case s == wire.JLost: // nobody knows
			case s == wire.JAbsent || s == wire.JNever || s == wire.JStartFailed:
				if n != 0 {
					t.Errorf("%s is %s and ran", id, s)
				}
			default:
				t.Errorf("%s is %s at rest", id, s)
			}
		}
		clear(ids)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds: %v", rounds, counts)
}

// afterPowerCut makes a Runner's directory look as if the machine had started anew since.
func afterPowerCut(t *testing.T, dir string) {
	t.Helper()
	raw, err := os.ReadFile(logFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for _, r := range parseJournal(raw, proc.BootID()).records {
		if r.Life != nil {
			r.Life.Boot = "another"
		}
		line, err := encodeLine(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, line...)
	}
	if err := os.WriteFile(logFile(dir), out, 0o600); err != nil {
		t.Fatal(err)
	}
	for id, f := range findJobs(dir) {
		f.Record.Boot = "another"
		b, err := json.Marshal(f.Record)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(jobsDir(dir), string(id), "job.json"), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// After a power cut a record of the end is proof whatever the boot; without one the Job is lost,
// whether the journal still has it or not, and nobody who has its pids since is touched.
//
// Covers: EXE-38
func TestADetachedJobAfterAPowerCut(t *testing.T) {
	for name, c := range map[string]struct {
		ended, deleted bool
		want           wire.JournalState
	}{
		"in the middle":             {want: wire.JLost},
		"in the middle, no journal": {deleted: true, want: wire.JLost},
		"after the end":             {ended: true, want: wire.JTerminal},
		"after the end, no journal": {ended: true, deleted: true, want: wire.JTerminal},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, detaching)
			o := g.detached("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done", time.Minute)
			g.offer(g.link, o)
			g.until(o.ID, wire.JRunning)
			pid := g.pid("pid")
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(jobsDir(g.dir), string(o.ID))
			job, _ := supervise.Open(dir)
			if c.ended {
				if err := os.WriteFile(g.path("go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			} else {
				_ = syscall.Kill(job.Record.Supervisor.PID, syscall.SIGKILL)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			for deadline := time.Now().Add(10 * time.Second); job.Look() == supervise.Held && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			innocent := exec.Command("sleep", "60")
			if err := innocent.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = innocent.Process.Kill(); _ = innocent.Wait() }()
			job.Record.Child = &proc.Identity{PID: innocent.Process.Pid, Start: proc.StartOf(innocent.Process.Pid) + 1000}
			b, _ := json.Marshal(job.Record)
			if err := os.WriteFile(filepath.Join(dir, "job.json"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			afterPowerCut(t, g.dir)
			if c.deleted {
				if err := os.Remove(logFile(g.dir)); err != nil {
					t.Fatal(err)
				}
			}
			g = openRig(t, g.dir, g.p.Path, detaching)
			go g.tellOwed(g.link)
			if end := g.end(); end.ID != o.ID || end.State != c.want {
				t.Errorf("%+v", end)
			}
			if syscall.Kill(innocent.Process.Pid, 0) != nil || dead(innocent.Process.Pid) {
				t.Error("somebody else's process was ended")
			}
			again := g.offer(g.link, o)
			if again.Accepted && again.Known == nil {
				t.Errorf("the id is started again: %+v", again)
			}
		})
	}
}

// Another version of the program finds the Job: an older record that says more than it knows is
// understood, a later one is left alone, with all that lives, and the Job is called lost.
func TestARecordOfAnotherVersion(t *testing.T) {
	for version, want := range map[int]wire.JournalState{supervise.Version: wire.JRunning, supervise.Version + 1: wire.JLost} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			g := newRig(t, detaching)
			o := g.detached("echo $$ >pid; while [ ! -e go ]; do sleep 0.02; done", time.Minute)
			g.offer(g.link, o)
			g.until(o.ID, wire.JRunning)
			pid := g.pid("pid")
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(jobsDir(g.dir), string(o.ID), "job.json")
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var rec map[string]any
			if err := json.Unmarshal(raw, &rec); err != nil {
				t.Fatal(err)
			}
			rec["version"], rec["added_later"] = version, true
			raw, _ = json.Marshal(rec)
			if err := os.WriteFile(name, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			g = openRig(t, g.dir, g.p.Path, detaching)
			if s := g.state(o.ID); s != want {
				t.Errorf("it is %s", s)
			}
			if syscall.Kill(pid, 0) != nil || dead(pid) {
				t.Error("the Job was ended")
			}
			if _, err := os.Stat(name); err != nil {
				t.Error(err)
			}
			g.followAdopted(g.link)
			if err := os.WriteFile(g.path("go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			gone(t, pid)
			job := supervise.Job{Dir: filepath.Dir(name)}
			for deadline := time.Now().Add(10 * time.Second); job.Look() == supervise.Held && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
}
