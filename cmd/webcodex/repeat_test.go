package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// A call that is repeated under its idempotency_key, at once, later, and by another life of server
// and Runner, is answered with the first execution; the command ran once.
//
// Covers: EXE-38
func TestACallIsRepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var first event.ExecutionID
	var project, session string
	once := args{"command": "echo ran >> marker; echo said; exit 3", "idempotency_key": "one"}
	call := func(t *testing.T, w *world) run.Output {
		t.Helper()
		a := args{"project": project, "session_id": session}
		for k, v := range once {
			a[k] = v
		}
		var out run.Output
		if err := w.call("run_shell", a).Decode(&out); err != nil {
			t.Error(err)
		}
		return out
	}
	marks := func(w *world) int {
		b, _ := os.ReadFile(filepath.Join(w.repo, "marker"))
		return strings.Count(string(b), "ran")
	}
	t.Run("one life", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		project, session = w.project, string(w.work(args{}).SessionID)
		var group sync.WaitGroup
		var mu sync.Mutex
		replayed, ids := 0, map[event.ExecutionID]bool{}
		for range 4 {
			group.Go(func() {
				out := call(t, w)
				mu.Lock()
				defer mu.Unlock()
				if out.Replayed {
					replayed++
				}
				ids[out.ExecutionID] = true
				if first = out.ExecutionID; out.ExitCode == nil || *out.ExitCode != 3 || out.Stdout != "said\n" {
					t.Errorf("%+v", out)
				}
			})
		}
		group.Wait()
		if replayed != 3 || len(ids) != 1 || marks(w) != 1 {
			t.Errorf("%d of 4 were repeats of %v, and it ran %d times", replayed, ids, marks(w))
		}
	})
	t.Run("another life", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		out := call(t, w)
		if !out.Replayed || out.ExecutionID != first || *out.ExitCode != 3 || out.Stdout != "" || out.StdoutDropped != 5 {
			t.Errorf("%+v", out)
		}
		w.refused("run_shell", args{"project": project, "command": "echo ran >> marker", "idempotency_key": "one"}, string(fault.IdempotencyConflict), "idempotency_key")
		if marks(w) != 1 {
			t.Errorf("it ran %d times", marks(w))
		}
	})
}
