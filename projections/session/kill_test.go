package session

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// killDir is set in the child that writes until it is killed.
const killDir = "WEBCODEX_TEST_KILL_DIR"

// load is the same log in every process: some Sessions, their commits in turn.
func load(n int) []Stored {
	var list []Stored
	hs := make([]*history, 7)
	for i := range hs {
		hs[i] = began(fmt.Sprint("session ", i))
	}
	done := make([]int, len(hs))
	for len(list) < n {
		for i, h := range hs {
			if done[i] == len(h.commits) {
				h.edit(fmt.Sprintf("dir/%d.go", len(list)))
				h.commit(post(len(list)+1, event.MessageTodo))
				h.commit(completion(len(list)+1, len(list)+1_000_000, fmt.Sprint(len(list))))
			}
			s := h.commits[done[i]]
			done[i]++
			s.Commit.Aggregate = event.SessionAggregate(event.SessionID(fmt.Sprintf("wc_sess_%032x", i)))
			s.Seq = uint64(len(list) + 1)
			s.Hash = fmt.Sprintf("%064x", s.Seq)
			list = append(list, s)
		}
	}
	return list[:n]
}

const loadCommits = 2_000

func horizon(dir string) string { return filepath.Join(dir, "synced") }

// TestKillChild is no test: it is the process that is killed.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("only as a child")
	}
	w := &world{t: t, path: filepath.Join(dir, "state.db"), log: load(loadCommits)}
	file, err := os.OpenFile(horizon(dir), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	var synced atomic.Uint64
	all := w.log
	w.log = nil
	w.open()
	w.keeper.Serve(synced.Load)
	fmt.Println("begun")
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	for i, s := range all {
		w.feed(s)
		if random.IntN(20) == 0 { // the log makes durable what it has, in groups
			var b [8]byte
			binary.BigEndian.PutUint64(b[:], uint64(i+1))
			if _, err := file.WriteAt(b[:], 0); err != nil {
				t.Fatal(err)
			}
			synced.Store(uint64(i + 1))
			time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond)
		}
	}
	select {}
}

// A process killed at any moment of its batches leaves a file that is not ahead of the log and
// from which, with the commits after it, everything follows.
//
// Covers: SES-30
func TestKilledInABatch(t *testing.T) {
	rounds := 4
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds = 50
	}
	all := load(loadCommits)
	written := 0
	for range rounds {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
		cmd.Env = append(os.Environ(), killDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if s := bufio.NewScanner(out); !s.Scan() || s.Text() != "begun" {
			t.Fatalf("the child said %q", s.Text())
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // the moment is what varies
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if cmd.ProcessState.Exited() {
			t.Fatalf("the child ended by itself: %v", cmd.ProcessState)
		}
		written += afterKill(t, dir, all)
	}
	if written == 0 {
		t.Fatal("no round had anything in the file")
	}
}

// afterKill opens what the child left, and gives how far its file was.
func afterKill(t *testing.T, dir string, all []Stored) int {
	t.Helper()
	var synced uint64
	if b, err := os.ReadFile(horizon(dir)); err == nil && len(b) == 8 {
		synced = binary.BigEndian.Uint64(b)
	}
	w := &world{t: t, path: filepath.Join(dir, "state.db"), log: all[:synced], truth: map[event.SessionID]View{}, gone: map[event.SessionID]bool{}}
	for _, s := range w.log {
		id := event.SessionID(s.Commit.Aggregate.ID)
		w.truth[id] = w.truth[id].Apply(s.Seq, s.Hash, s.Commit)
	}
	defer func() { _ = w.keeper.Close() }()
	w.openAt(func(cp uint64) {
		if cp > synced {
			t.Fatalf("the file is at %d, the log at %d", cp, synced)
		}
	})
	at := int(w.keeper.Status().Seq)
	for range 2 { // as it is, and with the rest written
		if diff := w.check(); diff != "" {
			t.Fatal(diff)
		}
		w.flush()
	}
	if w.reread > 0 || fault.KindOf(w.damaged) != "" {
		t.Fatalf("%d rows were damaged", w.reread)
	}
	return at
}
