package history_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"webcodex/commands/history"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// killEnv names the data directory and the point at which the child ends itself.
const killEnv = "WEBCODEX_HISTORY_KILL"

// deadly is a log that ends the process before or after it announces a prune.
type deadly struct {
	*eventlog.Log
	at string
}

func (d deadly) Prune(ctx context.Context, first uint64, reason string) error {
	if d.at == "announce" {
		die()
	}
	return d.Log.Prune(ctx, first, reason)
}

func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }

// TestKilledChild is the process that is killed: it fills a log and lets its beginning leave.
func TestKilledChild(t *testing.T) {
	dir, at, ok := strings.Cut(os.Getenv(killEnv), "|")
	if !ok {
		t.Skip("not a child")
	}
	var w *world
	pruning := false
	faults := &eventlog.Faults{AfterPurge: func(uint64) error {
		if at == "purge" {
			die()
		}
		return nil
	}}
	// The prune's own commit is the first one of the log's aggregate after the carries.
	faults.AfterApply = func(uint64) error {
		if at == "announced" && pruning && w.ledger.Facts().LastPrune != nil {
			die()
		}
		return nil
	}
	w = newWorld(t, tiny, func(x *world) {
		x.dir, x.faults = dir, faults
		x.change = func(o *history.Options) { o.Log = deadly{x.log, at} }
	})
	var ids []event.SessionID
	for range 6 {
		ids = append(ids, w.begin(t, "killed"))
	}
	for _, id := range ids {
		for range 5 {
			w.call(t, id, "a/path.go")
		}
	}
	w.fill(t, ids[0], 3)
	for _, id := range ids {
		head, err := w.log.Head(event.SessionAggregate(id))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("acked %s %d\n", id, head.Version)
	}
	if at == "carry" {
		n := 0
		w.change = func(o *history.Options) {
			sessions := w.sessions
			o.Carrier = history.NewCarrier(w.writer, func(ctx context.Context, a event.Aggregate) (int, []byte, bool, error) {
				if n++; n == 3 {
					die()
				}
				return sessions.Carry(ctx, a)
			})
		}
		w.reopen(t, false)
	}
	blocks, err := w.log.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	pruning = true
	err = w.pruner.Cut(context.Background(), blocks[len(blocks)-1].First)
	t.Fatalf("it lives on: %v", err)
}

// Killed in the middle of the carries, before log.pruned, between log.pruned and the purge, or
// within it: the next life has every acknowledged commit, goes on, and finishes what was
// announced.
//
// Covers: RES-19, RES-20
func TestKilledRoundsGoOn(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"carry", "announce", "announced", "purge"} {
		t.Run(at, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.v")
			cmd.Env = append(os.Environ(), killEnv+"="+dir+"|"+at)
			out, err := cmd.CombinedOutput()
			if x, ok := err.(*exec.ExitError); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v\n%s", err, out)
			}
			acked := map[event.SessionID]uint64{}
			for sc := bufio.NewScanner(strings.NewReader(string(out))); sc.Scan(); {
				var id event.SessionID
				var version uint64
				if n, _ := fmt.Sscanf(sc.Text(), "acked %s %d", &id, &version); n == 2 {
					acked[id] = version
				}
			}
			if len(acked) != 6 {
				t.Fatalf("%s", out)
			}
			for _, forget := range []bool{false, true} {
				w := newWorld(t, tiny, func(w *world) { w.dir = dir })
				check := func() {
					t.Helper()
					for id, version := range acked {
						v, err := w.sessions.Load(id)
						if err != nil || v.Core.Version < version || v.Core.Observed != uint64(v.Tail.Len()) {
							t.Fatalf("%s at version %d of %d: %v", id, v.Core.Version, version, err)
						}
					}
				}
				check()
				if forget {
					w.reopen(t, true)
					check()
				}
				if _, err := w.pruner.Once(context.Background()); err != nil {
					t.Fatal(err)
				}
				if st := w.log.Status(); st.PrunedTo > st.FirstSeq || (at == "announced" || at == "purge") && st.FirstSeq == 1 {
					t.Fatalf("announced %d, begins at %d", st.PrunedTo, st.FirstSeq)
				}
				check()
				w.whole(t)
				if err := w.close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
