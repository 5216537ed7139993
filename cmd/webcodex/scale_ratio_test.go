package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/mcp/client"
)

// The size that starts and memory are measured at.
const (
	scaleSessions = 100_000
	scaleCommits  = 1_000_000
	// scaleRSS is what an idle server may hold, in bytes.
	scaleRSS = 400 << 20
)

// TestRatioScale measures starts on a log of 1,000,000 commits of 100,000 Sessions: after a
// clean stop and after kill -9 from the start of the process to the first answered call,
// against the start of a bare embedded JetStream on the same store, and the memory of the idle
// server. How long state.db takes from the whole log is printed too.
func TestRatioScale(t *testing.T) {
	bench.Skip(t)
	repo := scratchRepo(t)
	dir := filepath.Join(t.TempDir(), "data")
	clean := func(c *child) {
		if err := c.stop(); err != nil {
			t.Fatal(err)
		}
	}
	ours := func(stop func(*child)) time.Duration {
		took, c := firstAnswer(t, dir, repo)
		stop(c)
		return took
	}
	ours(clean) // makes the directory's owner
	began := time.Now()
	seedScale(t, dir)
	t.Logf("seeded in %s", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	fold(t, dir)
	t.Logf("made state.db from the whole log in %s", time.Since(began).Round(time.Millisecond))
	ours(clean)
	_, c := firstAnswer(t, dir, repo)
	// The collector gives memory back within its own rhythm.
	time.Sleep(10 * time.Second)
	rss := residentBytes(t, c)
	clean(c)
	bench.Figure(t, "4 resident bytes of an idle server, 100,000 Sessions, 1,000,000 commits", float64(rss), scaleRSS, 1)
	bench.Run(t, bench.Comparison{Name: "4 clean start to the first answered call vs a bare JetStream, 1,000,000 commits", Bar: 2, AtMost: true,
		Ours: func() time.Duration { return ours(clean) }, Yardstick: func() time.Duration { return bareStart(t, dir, false) }})
	bench.Run(t, bench.Comparison{Name: "4 start after kill -9 vs 1.5 bare starts and a read of the blocks, 1,000,000 commits", Bar: 1, AtMost: true,
		Ours: func() time.Duration {
			_, c := firstAnswer(t, dir, repo)
			c.kill()
			dropIndex(t, filepath.Join(dir, "log"))
			return ours(clean)
		},
		Yardstick: func() time.Duration { return bareStart(t, dir, true)*3/2 + readBlocks(t, dir) }})
}

// fold makes state.db from the log, as a start without it does.
func fold(t *testing.T, dir string) {
	t.Helper()
	m := newModels(dir, 0, slog.New(slog.DiscardHandler))
	l, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Durability: eventlog.Process, Server: event.NewInstanceID(), Base: m.keeper})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// firstAnswer starts a server and asks it one thing; the time is from the start of the process.
func firstAnswer(t *testing.T, dir, repo string) (time.Duration, *child) {
	t.Helper()
	began := time.Now()
	c, err := startChild(t.Context(), program(t), nil, "--data", dir, "--durability", "process", "--listen", "127.0.0.1:0", "--", repo)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := client.Connect(context.Background(), client.Options{URL: c.ready.MCPURL, Token: c.ready.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r, err := conn.CallTool(context.Background(), "get_runtime_status", args{})
	if err != nil || r.IsError {
		t.Fatalf("%v %s", err, r.Text)
	}
	return time.Since(began), c
}

// bareStart is a process that starts nothing but JetStream on a copy of the log's store:
// without its index, as kill -9 leaves it, or with.
func bareStart(t *testing.T, dir string, killed bool) time.Duration {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store")
	if out, err := exec.Command("cp", "-a", filepath.Join(dir, "log"), store).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if killed {
		dropIndex(t, store)
	}
	exe, err := exec.LookPath("bare-jetstream")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, store)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := time.Since(began)
	if err != nil || line != "ready\n" {
		t.Fatalf("%v %q", err, line)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	return took
}

// dropIndex leaves a store as a killed server of some hours does: JetStream's index is of an
// earlier time, so it reads every block.
func dropIndex(t *testing.T, store string) {
	t.Helper()
	for _, f := range glob(t, store, "index.db") {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
}

// bareJetStream is the process of bareStart.
func bareJetStream() {
	if err := bench.BareJetStream(os.Args[1], func() { fmt.Println("ready") }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// readBlocks reads every block file once from its beginning to its end.
func readBlocks(t *testing.T, dir string) time.Duration {
	t.Helper()
	files := glob(t, filepath.Join(dir, "log"), "*.blk")
	buf := make([]byte, 1<<20)
	began := time.Now()
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = f.Read(buf)
		}
		_ = f.Close()
		if err != io.EOF {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

func glob(t *testing.T, root, pattern string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func residentBytes(t *testing.T, c *child) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		t.Skip("the memory of a process cannot be read here")
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func scratchRepo(t *testing.T) string {
	t.Helper()
	repo := t.TempDir()
	if out, err := exec.Command("git", "-C", repo, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return repo
}

// seedScale writes the log: every Session is begun and then used in turn, so that the commits
// of one lie all over it.
func seedScale(t *testing.T, dir string) {
	t.Helper()
	l, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Durability: eventlog.Process, MaxBytes: 8 << 30, Server: event.NewInstanceID()})
	if err != nil {
		t.Fatal(err)
	}
	const writers = 64
	ids := make([]event.SessionID, scaleSessions)
	for i := range ids {
		ids[i] = event.NewSessionID()
	}
	for round := range scaleCommits / scaleSessions {
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := w; i < len(ids); i += writers {
					if err := seedCommit(l, ids[i], round); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func seedCommit(l *eventlog.Log, id event.SessionID, round int) error {
	actor := event.Actor{Authority: strings.Repeat("a", 64), Principal: strings.Repeat("b", 64), Credential: "owner"}
	project := event.ProjectRef{Client: "seed", Project: "seed-00000000"}
	agg := event.SessionAggregate(id)
	head, err := l.Head(agg)
	if err != nil {
		return err
	}
	call := event.NewCallID()
	events := []event.Event{
		event.ToolCallStarted{Call: call, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp",
			Input: event.Input{Paths: []string{"go.mod"}, PathCount: 1}},
		event.ToolCallFinished{Call: call, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp", Status: event.StatusSucceeded,
			DurationMS: 3, Observed: []string{"go.mod"}, Effect: event.Effect{State: event.Completed}},
	}
	if round == 0 {
		events = []event.Event{
			event.SessionCreated{Nonce: event.NewNonce(), Authority: actor.Authority, Principal: actor.Principal, Project: project,
				Root: strings.Repeat("c", 64), Title: "seeded", Mode: event.ModeNormal},
			event.InstructionAccepted{Text: "go on", Continuation: "created", Mode: event.ModeNormal, Transport: "mcp"},
		}
	}
	_, err = l.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: agg, Expect: head, At: time.Now(),
		Actor: actor, Invocation: event.NewInvocationID(), Events: events})
	return err
}
