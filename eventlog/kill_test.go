package eventlog

import (
	"math/rand/v2"
	"os"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// rounds is how often a kill is repeated.
func rounds(few, many int) int {
	if os.Getenv("WEBCODEX_SOAK") != "" {
		return many
	}
	return few
}

// A process killed in mid-write loses nothing it acknowledged and leaves no half commit,
// life after life on the same directory.
func TestKilledWriterLosesNothing(t *testing.T) {
	for _, mode := range []Durability{Always, Process} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var acked []said
			for range rounds(4, 100) {
				acked = append(acked, child(t, "write", dir, mode, "", 50+rand.IntN(400))...)
			}
			l := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = mode, 1<<30 })
			checkWhole(t, l, acked)
			if s := l.Status(); len(s.Damaged) > 0 || s.TailLost {
				t.Errorf("status %+v", s)
			}
			t.Logf("%d acknowledged, 0 lost", len(acked))
		})
	}
}

// Whatever the step at which the process dies, a commit stands with all its events or not
// at all, and what was acknowledged before stands.
//
// Covers: STA-10
func TestDeathAtEachStepKeepsCommitsWhole(t *testing.T) {
	for _, point := range []string{"before_publish", "after_publish", "after_ack", "after_sync", "after_apply"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			acked := child(t, "die", dir, Always, point, 0)
			checkWhole(t, open(t, dir, func(o *Options) { o.Durability = Always }), acked)
		})
	}
}

// One process per data directory: a second one is told so and reads nothing.
func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	if got := child(t, "open", dir, Process, "", 0); len(got) != 1 || got[0].Kind != fault.Conflict {
		t.Errorf("while the log is open the second process said %+v", got)
	}
	if _, err := Open(t.Context(), Options{Dir: dir, ReadOnly: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a reader beside the writer: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := child(t, "open", dir, Process, "", 0); len(got) != 1 || got[0].Kind != "" {
		t.Errorf("after Close the second process said %+v", got)
	}
}

// When the store cannot write, nobody waits for ever and nothing is called good; the next
// start has every acknowledged commit.
func TestFullDiskEndsWriting(t *testing.T) {
	for _, mode := range []Durability{Always, Process} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lines := child(t, "full", dir, mode, "", 0)
			var acked, refused []said
			for _, s := range lines {
				if s.ID != "" {
					acked = append(acked, s)
				} else if s.Kind != "" {
					refused = append(refused, s)
				}
			}
			if len(refused) != 2 || refused[0].Kind != fault.PersistenceUncertain || refused[1].Kind != fault.PersistenceUncertain || !lines[len(lines)-1].End {
				t.Errorf("after %d commits: %+v", len(acked), refused)
			}
			l := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = mode, 1<<30 })
			checkWhole(t, l, acked)
			mustAppend(t, l, event.SessionAggregate("writer-0"))
		})
	}
}
