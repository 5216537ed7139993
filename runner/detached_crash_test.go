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
	"syscall"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/proc"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

// A journal that was deleted, or restored from before the start, learns of the Job from its
// directory: it goes on, and nobody is told that it never was.
//
// Covers: EXE-38
func TestAJournalLearnsOfDetachedJobs(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
