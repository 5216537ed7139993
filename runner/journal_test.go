package runner

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/internal/leak"
	"webcodex/runner/supervise"
	"webcodex/runner/wire"
)

func reopen(t testing.TB, dir string) *journal {
	t.Helper()
	j, err := openJournal(dir, false, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return j
}

func logFile(dir string) string { return filepath.Join(dir, "journal", "log") }

func execID(i int) event.ExecutionID {
	return event.ExecutionID(event.ExecutionPrefix + fmt.Sprintf("%032x", i))
}

// Whatever steps are asked for, an id moves only along the protocol's ways, and another life
// reads back what this one knew.
func TestJournalMovesForwardAndRemembers(t *testing.T) {
	t.Parallel()
	all := []wire.JournalState{wire.JRefused, wire.JAccepted, wire.JNever, wire.JStarting, wire.JStartFailed, wire.JRunning, wire.JTerminal, wire.JSettled, wire.JLost}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "journal-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		j, err := openJournal(dir, false, time.Now)
		if err != nil {
			rt.Fatal(err)
		}
		states := map[event.ExecutionID]wire.JournalState{}
		starts := map[event.ExecutionID]int{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if rapid.IntRange(0, 15).Draw(rt, "restart") == 0 {
				generation := j.life.Generation
				_ = j.close()
				if j, err = openJournal(dir, false, time.Now); err != nil {
					rt.Fatal(err)
				}
				if j.life.Generation != generation {
					rt.Fatal("a sound journal lost its generation")
				}
			}
			id, to := execID(rapid.IntRange(0, 3).Draw(rt, "id")), rapid.SampledFrom(all).Draw(rt, "to")
			r := record{ID: id, State: to, Digest: "d"}
			if to == wire.JTerminal {
				r.Result = &wire.Result{ID: id, State: to, Process: &wire.ProcessOutcome{Stdout: wire.Stream{Text: "secret", Bytes: 6}}}
			}
			err := j.step(r, false)
			if err == nil {
				if to == wire.JStarting {
					starts[id]++
				}
				states[id] = to
			} else if !errors.Is(err, errState) {
				rt.Fatal(err)
			}
			for id, s := range states {
				if e, ok := j.find(id); !ok || e.state != s {
					rt.Fatalf("%s is %q, not %q", id, e.state, s)
				}
			}
		}
		for id, n := range starts {
			if n > 1 {
				rt.Fatalf("%s may start %d times", id, n)
			}
		}
		_ = j.close()
		if raw, _ := os.ReadFile(logFile(dir)); bytes.Contains(raw, []byte("secret")) {
			rt.Fatal("output lies on the disk")
		}
	})
}

// What a killed writer leaves is cut off; the rest still proves.
func TestJournalTornLastLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := reopen(t, dir)
	for i := range 3 {
		if err := j.step(record{ID: execID(i), State: wire.JAccepted, Digest: "d"}, false); err != nil {
			t.Fatal(err)
		}
	}
	generation := j.life.Generation
	_ = j.close()
	whole, err := os.ReadFile(logFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(bytes.TrimSuffix(whole, []byte("\n")), '\n') + 1
	for cut := last + 1; cut < len(whole); cut++ {
		if err := os.WriteFile(logFile(dir), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j := reopen(t, dir)
		if _, two := j.find(execID(1)); !two || j.life.Generation != generation {
			t.Fatalf("cut at %d: the sound part is lost", cut)
		}
		if _, three := j.find(execID(2)); three {
			t.Fatalf("cut at %d: a torn line was read", cut)
		}
		if err := j.step(record{ID: execID(9), State: wire.JAccepted, Digest: "d"}, false); err != nil {
			t.Fatal(err)
		}
		_ = j.close()
		again := reopen(t, dir)
		if len(again.entries) != 3 {
			t.Fatalf("cut at %d: %d entries afterwards", cut, len(again.entries))
		}
		_ = again.close()
	}
}

// Damage, deletion, and a copy put in place end the generation: absence proves nothing then.
func TestJournalGenerations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(t *testing.T, path string){
		"flipped byte": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[bytes.IndexByte(b, '\n')+30] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"restored": func(t *testing.T, path string) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".copy", b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".copy", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := reopen(t, dir)
			for i := range 3 {
				if err := j.step(record{ID: execID(i), State: wire.JNever, Digest: "d"}, false); err != nil {
					t.Fatal(err)
				}
			}
			generation := j.life.Generation
			_ = j.close()
			c(t, logFile(dir))
			if again := reopen(t, dir); again.life.Generation == generation {
				t.Error("the generation is the same")
			}
		})
	}
}

// After the first sync error nothing is accepted any more.
func TestJournalSyncError(t *testing.T) {
	t.Parallel()
	j, err := openJournal(t.TempDir(), true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	_ = j.file.Close()
	if j.file, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil { // cannot be synced
		t.Fatal(err)
	}
	defer j.close()
	if err := j.step(record{ID: execID(1), State: wire.JNever}, true); err == nil {
		t.Fatal("a failed sync was called good")
	}
	if err := j.step(record{ID: execID(2), State: wire.JAccepted}, false); err == nil {
		t.Fatal("the journal goes on after a failed sync")
	}
}

// The helper process of TestKilledRunner: it runs a command that leaves the session, says
// that it runs, and waits to be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervise.Main())
	}
	if dir := os.Getenv("RUNNER_TEST_DETACH"); dir != "" {
		detachVictim(dir, os.Getenv("RUNNER_TEST_ROOT"))
	}
	if dir := os.Getenv("RUNNER_TEST_JOURNAL"); dir != "" {
		journalVictim(dir, os.Getenv("RUNNER_TEST_STEP"))
	}
	if dir := os.Getenv("RUNNER_TEST_DIR"); dir != "" {
		victim(dir, os.Getenv("RUNNER_TEST_ROOT"))
	}
	flag.Parse()
	// Most of them wait for limits and processes much more than they work.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(leak.Main(m))
}

func victim(dir, root string) {
	r, err := New(Options{Dir: dir, Client: "c1"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p, err := r.AddProject(root)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	r.link = newUpstream()
	id := event.ExecutionID(os.Getenv("RUNNER_TEST_ID"))
	o := wire.Offer{ID: id, Digest: "d", Op: wire.OpShell, Bounds: wire.Bounds{TimeoutMS: 600_000},
		Body:  []byte(`{"shell":"sh","command":"echo ran >>marker; echo $$ >pid1; setsid sh -c 'echo $$ >pid2; exec sleep 600' & env -i setsid sh -c 'exec >/dev/null 2>&1 </dev/null; echo $$ >pid3; exec sleep 600' & exec sleep 600"}`),
		Fence: wire.Fence{Client: "c1", Instance: r.instance, Project: p.ID, Root: p.Fingerprint}}
	fmt.Println(r.offer(context.Background(), o).Accepted)
	select {}
}

// A Runner that is killed in the middle of a command: its processes are ended before the next
// life serves anything, the outcome is told as lost, and nothing is started again.
//
// Covers: EXE-38, EXE-39
func TestKilledRunner(t *testing.T) {
	t.Parallel()
	dir, root, id := t.TempDir(), t.TempDir(), event.NewExecutionID()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUNNER_TEST_DIR="+dir, "RUNNER_TEST_ROOT="+root, "RUNNER_TEST_ID="+string(id))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, name := range []string{"pid1", "pid2", "pid3"} {
		pids = append(pids, waitPid(t, filepath.Join(root, name)))
	}
	// What has shed its mark too is found by its control group alone.
	if shed := pids[2]; !strings.Contains(groupsOf(shed), "webcodex-") {
		_ = syscall.Kill(shed, syscall.SIGKILL)
		pids = pids[:2]
	}
	waitState(t, dir, "running")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, pid := range pids {
		if !processLives(pid) {
			t.Fatal("the command did not outlive its Runner; the test shows nothing")
		}
	}
	g := openRig(t, dir, root)
	for _, pid := range pids {
		if processLives(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
	g.tellOwed(t.Context())
	if r := g.end(); r.ID != id || r.State != wire.JLost || r.Digest != "d" || r.Instance == g.instance {
		t.Errorf("told %+v", r)
	}
	o := g.make(wire.OpShell, appendMark("marker"))
	o.ID, o.Digest = id, "d"
	if reply := g.offer(g.link, o); reply.Known == nil || reply.Known.State != wire.JLost {
		t.Errorf("offered again: %+v", reply)
	}
	if q := g.query(wire.Query{ID: id}); q.State != wire.JLost {
		t.Errorf("asked for: %+v", q)
	}
	if n := g.marks("marker"); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// groupsOf are the control groups of a process.
func groupsOf(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return string(b)
}

func waitPid(t *testing.T, file string) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && strings.HasSuffix(string(b), "\n") {
			return pid
		}
		if time.Now().After(deadline) {
			t.Fatal("the command did not start")
		}
	}
}

func waitState(t *testing.T, dir, state string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if b, _ := os.ReadFile(logFile(dir)); bytes.Contains(b, []byte(`"s":"`+state+`"`)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the journal does not say " + state)
		}
	}
}

func processLives(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, _ := strings.Cut(string(b), ") ")
	return err != nil || !strings.HasPrefix(rest, "Z")
}

// Each state a dead life may leave is turned into what it proves.
func TestRecoveryOfEachState(t *testing.T) {
	t.Parallel()
	exit := 3
	terminal := &wire.Result{State: wire.JTerminal, Digest: "d", Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &exit}}
	for name, c := range map[string]struct {
		steps    []record
		sameBoot bool
		synced   bool
		want     wire.JournalState
	}{
		"accepted, same boot":             {[]record{{State: wire.JAccepted}}, true, false, wire.JNever},
		"accepted, power cut, synced":     {[]record{{State: wire.JAccepted}}, false, true, wire.JNever},
		"accepted, power cut, not synced": {[]record{{State: wire.JAccepted}}, false, false, wire.JLost},
		"starting":                        {[]record{{State: wire.JAccepted}, {State: wire.JStarting}}, true, false, wire.JLost},
		"running, power cut":              {[]record{{State: wire.JAccepted}, {State: wire.JStarting}, {State: wire.JRunning}}, false, true, wire.JLost},
		"terminal":                        {[]record{{State: wire.JAccepted}, {State: wire.JStarting}, {State: wire.JRunning}, {State: wire.JTerminal, Result: terminal}}, true, false, wire.JTerminal},
		"refused":                         {[]record{{State: wire.JRefused}}, true, false, wire.JRefused},
		"start failed":                    {[]record{{State: wire.JAccepted}, {State: wire.JStartFailed}}, true, false, wire.JStartFailed},
	} {
		t.Run(name, func(t *testing.T) {
			dir, id := t.TempDir(), event.NewExecutionID()
			j, err := openJournal(dir, c.synced, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if !c.sameBoot {
				other := j.life
				other.Boot = "another boot"
				if err := j.append(record{Life: &other}); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range c.steps {
				r.ID, r.Digest = id, "d"
				if err := j.step(r, false); err != nil {
					t.Fatal(err)
				}
			}
			_ = j.close()
			g := openRig(t, dir, t.TempDir())
			if s := g.state(id); s != c.want {
				t.Fatalf("it is %q, want %q", s, c.want)
			}
			q := g.query(wire.Query{ID: id})
			if q.State != c.want {
				t.Errorf("asked for: %+v", q)
			}
			if c.want == wire.JTerminal {
				g.tellOwed(t.Context())
				if r := g.end(); r.State != wire.JTerminal || *r.Process.ExitCode != 3 {
					t.Errorf("told %+v", r)
				}
				g.until(id, wire.JSettled)
			}
		})
	}
}

// A journal that cannot be written starts nothing.
func TestAFullDiskStartsNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.journal.mu.Lock()
	g.journal.broken = errors.New("no space left")
	g.journal.mu.Unlock()
	reply := g.offer(g.link, g.make(wire.OpShell, appendMark("marker")))
	if reply.Accepted || fault.KindOf(reply.Fault) != fault.StorageFull {
		t.Errorf("%+v", reply)
	}
	if len(g.up.claims) != 0 || g.marks("marker") != 0 {
		t.Error("it was claimed or ran")
	}
}
