package eventlog

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/bench"
	"webcodex/internal/fault"
)

// modes are all durability modes.
var modes = []Durability{Always, Group, Process}

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
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			var acked []said
			lives := rounds(4, 100)
			for range lives {
				acked = append(acked, playUntil(t, part{Play: "write", Dir: dir, Mode: mode}, 50+rand.IntN(400), nil)...)
			}
			l := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = mode, 1<<30 })
			lost := lostOf(t, l, acked)
			if s := l.Status(); len(s.Damaged) > 0 || s.TailLost {
				t.Errorf("status %+v", s)
			}
			bench.Figure(t, fmt.Sprintf("2 kill -9 of a log's process, %s, %d lives: acknowledged commits that were lost", mode, lives),
				float64(lost), 0, len(acked))
		})
	}
}

// Whatever the step at which the process dies, a commit stands with all its events or not
// at all, once, what was acknowledged before stands, and the log goes on.
//
// Covers: STA-10, EVT-30, RES-20
func TestDeathAtEachStepKeepsCommitsWhole(t *testing.T) {
	for _, point := range []string{"before_publish", "after_publish", "after_ack", "after_sync", "after_apply"} {
		for _, mode := range modes {
			t.Run(point+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				var acked []said
				for life := range rounds(2, 10) {
					acked = append(acked, play(t, part{Play: "write", Dir: dir, Mode: mode, Die: point, After: uint64(7 + 40*life)})...)
				}
				l := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = mode, 1<<30 })
				checkWhole(t, l, acked)
				mustAppend(t, l, event.SessionAggregate("writer-0"))
			})
		}
	}
}

// One process per data directory: a second one is told so and reads nothing.
func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir)
	if got := play(t, part{Play: "open", Dir: dir, Mode: Process}); len(got) != 1 || got[0].Kind != fault.Conflict {
		t.Errorf("while the log is open the second process said %+v", got)
	}
	if _, err := Open(t.Context(), Options{Dir: dir, ReadOnly: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a reader beside the writer: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := play(t, part{Play: "open", Dir: dir, Mode: Process}); len(got) != 1 || got[0].Kind != "" {
		t.Errorf("after Close the second process said %+v", got)
	}
}

// When the store cannot write, nobody waits for ever and nothing is called good; the next
// start has every acknowledged commit.
func TestFullDiskEndsWriting(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lines := play(t, part{Play: "full", Dir: dir, Mode: mode})
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

// With hardly any file to open the log works or says clearly what is in its way; what it
// acknowledged is there.
func TestFewOpenFiles(t *testing.T) {
	for _, mode := range modes {
		for _, files := range []uint64{64, 16, 9} {
			t.Run(fmt.Sprintf("%d %s", files, mode), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				lines := play(t, part{Play: "few", Dir: dir, Mode: mode, Files: files})
				if len(lines) == 0 {
					t.Fatal("it said nothing")
				}
				for _, s := range lines {
					if s.Kind == fault.Internal || s.Kind == fault.LogDamaged {
						t.Errorf("it said %s", s.Kind)
					}
				}
				if end := lines[len(lines)-1]; files == 64 && !end.End {
					t.Errorf("64 files are enough for the log, it said %+v", end)
				}
				acked := acknowledged(lines)
				l := open(t, dir, func(o *Options) { o.Durability, o.MaxBytes = mode, 1<<30 })
				checkWhole(t, l, acked)
				t.Logf("%d acknowledged, the last it said: %+v", len(acked), lines[len(lines)-1])
			})
		}
	}
}
