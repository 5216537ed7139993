package execution_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/runner/wire"
)

// detached starts a detached Job that leaves its marks beside the others' and waits in between for
// the file go.
func (n *network) detached(t call.Target) *told {
	d := n.launch(n.fleet, t, "", asJob)
	id := string(d.x.Offer.ID)
	d.x.Offer.Op, d.x.Offer.Bounds.Job = wire.OpDetached, true
	d.x.Offer.Body, _ = json.Marshal(wire.ProcessIn{Executable: "sh", Args: []string{"-c",
		"echo start >>" + id + "; while [ ! -e go ]; do sleep 0.02; done; echo end >>" + id + "; exit 5"}})
	d.x.Offer.Digest = n.fleet.Digest(d.x.Offer)
	d.out, d.err = n.fleet.Run(context.Background(), d.x)
	close(d.settled)
	return d
}

// The Runner's process is killed under running detached Jobs. They go on; its next life tells the
// server that it has them in hand, and their real ends, each once.
//
// Covers: EXE-38
func TestDetachedJobsOfAKilledRunner(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 0, false)
	to := n.aim()
	var all []*told
	for range 3 {
		all = append(all, n.detached(to))
	}
	for _, d := range all {
		for deadline := time.Now().Add(20 * time.Second); countLines(n.marker(d), "start") == 0 && time.Now().Before(deadline); {
			time.Sleep(2 * time.Millisecond)
		}
	}
	n.stop()
	n.start()
	n.aim()
	for _, d := range all {
		if q := n.query(d.x.Offer.ID); q.State != wire.JRunning || len(d.late) > 0 {
			t.Errorf("%s is %s in the next life", d.x.Offer.ID, q.State)
		}
	}
	if err := os.WriteFile(filepath.Join(n.dir, "root", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if tally := n.report(all); tally["terminal"] != 3 {
		t.Errorf("%v", tally)
	}
}

// The Runner's process is killed at any message while detached Jobs start: none starts twice, and
// what the server is told of each is true.
//
// Covers: EXE-38, EXE-39
func TestDetachedJobsOfARunnerKilledAnywhere(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 0, false)
	if err := os.WriteFile(filepath.Join(n.dir, "root", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	total := map[string]int{}
	for range soak(2, 60) {
		to := n.aim()
		left := rand.IntN(18)
		n.mu.Lock()
		n.kill = func(wire.Verb, bool) bool { left--; return left < 0 }
		n.mu.Unlock()
		var all []*told
		for range 4 {
			all = append(all, n.detached(to))
		}
		select {
		case <-n.life.dead:
		case <-time.After(500 * time.Millisecond):
		}
		n.mu.Lock()
		n.kill = nil
		n.mu.Unlock()
		n.stop()
		n.start()
		n.aim()
		for state, count := range n.report(all) {
			total[state] += count
		}
	}
	t.Log(total)
	if total["promoted, no end yet"] > 0 {
		t.Errorf("%v", total)
	}
}
