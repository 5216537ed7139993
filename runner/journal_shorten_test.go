package runner

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

var wholeLife = []wire.JournalState{wire.JAccepted, wire.JStarting, wire.JRunning, wire.JTerminal, wire.JSettled}

// lead takes an id through the first n states of an acknowledged execution.
func lead(j *journal, id event.ExecutionID, n int, durable bool) error {
	for _, s := range wholeLife[:n] {
		if err := j.step(record{ID: id, State: s, Digest: "d"}, durable); err != nil {
			return err
		}
	}
	return nil
}

func mustLead(t testing.TB, j *journal, id event.ExecutionID, n int) {
	t.Helper()
	if err := lead(j, id, n, false); err != nil {
		t.Fatal(err)
	}
}

func states(j *journal) map[event.ExecutionID]wire.JournalState {
	out := map[event.ExecutionID]wire.JournalState{}
	for id, e := range j.entries {
		out[id] = e.state
	}
	return out
}

// However long a Runner lives, its journal keeps what is owed and a bounded number of ends, in
// memory and in the file, and what it forgets ends the generation.
func TestAJournalIsBoundedWhileItLives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := reopen(t, dir)
	j.onShorten = func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	const n = 3*keptEnds + 10
	var owed []event.ExecutionID
	generation, largest, entries := j.life.Generation, int64(0), 0
	for i := range n {
		if i%3000 == 0 {
			id := execID(1_000_000 + i)
			mustLead(t, j, id, 1+i/3000%4)
			owed = append(owed, id)
		}
		mustLead(t, j, execID(i), len(wholeLife))
		largest, entries = max(largest, j.size), max(entries, len(j.entries))
	}
	if entries > 2*keptEnds+len(owed)+1 || largest > compactBytes {
		t.Errorf("%d entries and %d bytes at the most", entries, largest)
	}
	if j.life.Generation == generation {
		t.Error("ends were forgotten, and absence still proves")
	}
	if _, known := j.find(execID(0)); known {
		t.Error("the oldest end is still known")
	}
	for i := n - keptEnds; i < n; i++ {
		if e, known := j.find(execID(i)); !known || e.state != wire.JSettled || e.digest != "d" {
			t.Fatalf("of the newest ends %d is %+v", i, e)
		}
	}
	var listed []event.ExecutionID
	for _, s := range j.unsettled(math.MaxInt) {
		listed = append(listed, s.ID)
	}
	if !slices.Equal(listed, owed) {
		t.Errorf("owed is %v, want %v", listed, owed)
	}
	if newest := j.unsettled(2); len(newest) != 2 || newest[1].ID != owed[len(owed)-1] || newest[1].State != j.entries[newest[1].ID].state {
		t.Errorf("the newest are %+v", newest)
	}
	before, now := states(j), j.life
	_ = j.close()
	again := reopen(t, dir)
	if again.life.Generation != now.Generation {
		t.Error("a sound journal lost its generation")
	}
	if after := states(again); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%d entries became %d", len(before), len(after))
	}
}

// A long file, with few but large entries, is shortened too, at a start and in life.
func TestAJournalIsLockedAndShortenedAtAStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := reopen(t, dir)
	if _, err := openJournal(dir, false, time.Now); !errors.Is(err, errJournalBusy) {
		t.Fatalf("a second opener got %v", err)
	}
	j.keep, j.shortenAt = math.MaxInt/2, math.MaxInt64
	text := make([]byte, 6000)
	for i := range text {
		text[i] = 'd'
	}
	open, n := execID(1_000_000), 3000
	mustLead(t, j, open, 1)
	for i := range n {
		if err := j.step(record{ID: execID(i), State: wire.JRefused, Digest: string(text)}, false); err != nil {
			t.Fatal(err)
		}
	}
	generation, size := j.life.Generation, j.size
	_ = j.close()
	again := reopen(t, dir)
	if size < compactBytes || again.size > keptBytes+10_000 || again.size < keptBytes/2 || again.life.Generation == generation {
		t.Errorf("%d bytes became %d, same generation %v", size, again.size, again.life.Generation == generation)
	}
	if e, ok := again.find(open); !ok || e.state != wire.JAccepted || e.digest != "d" {
		t.Errorf("an open id became %+v", e)
	}
	if _, ok := again.find(execID(n - 1)); !ok {
		t.Error("the newest end is forgotten")
	}
}

// Whatever happens to a journal that forgets: what is owed stays known, and an id that was
// started is never absent in the generation its offer was made in.
func TestForgettingNeverProvesWhatIsFalse(t *testing.T) {
	t.Parallel()
	all := []wire.JournalState{wire.JRefused, wire.JAccepted, wire.JNever, wire.JStarting, wire.JStartFailed, wire.JRunning, wire.JTerminal, wire.JSettled, wire.JLost}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "journal-")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		open := func() *journal {
			j, err := openJournal(dir, false, time.Now)
			if err != nil {
				rt.Fatal(err)
			}
			j.keep = 1
			return j
		}
		j := open()
		defer func() { _ = j.close() }()
		type known struct {
			offered string
			state   wire.JournalState
			started bool
		}
		ids := map[event.ExecutionID]*known{}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			if rapid.IntRange(0, 15).Draw(rt, "restart") == 0 {
				_ = j.close()
				j = open()
			}
			id := execID(rapid.IntRange(0, 7).Draw(rt, "id"))
			k := ids[id]
			if _, there := j.find(id); k != nil && k.state != "" && !there {
				continue // forgotten: the server gives no second grant
			}
			if k == nil {
				k = &known{offered: j.current().Generation}
				ids[id] = k
			}
			to := rapid.SampledFrom(all).Draw(rt, "to")
			if next := steps[k.state]; len(next) > 0 && rapid.Bool().Draw(rt, "forward") {
				to = next[len(next)-1]
			}
			if err := j.step(record{ID: id, State: to, Digest: "d"}, false); err == nil {
				k.state, k.started = to, k.started || to == wire.JStarting
			} else if !errors.Is(err, errState) {
				rt.Fatal(err)
			}
			for id, k := range ids {
				e, there := j.find(id)
				switch {
				case there && e.state != k.state:
					rt.Fatalf("%s is %q, not %q", id, e.state, k.state)
				case !there && k.state != "" && !final(k.state):
					rt.Fatalf("%s is owed and forgotten", id)
				case !there && k.started && e.life.Generation == k.offered:
					rt.Fatalf("%s was started, and its absence proves that it was not", id)
				}
			}
			if n := len(j.entries) - len(j.open); n > 2 {
				rt.Fatalf("%d ends are kept", n)
			}
		}
	})
}

const victimEnds, victimKeeps = 250, 100

// journalVictim kills itself at one step of a shortening.
func journalVictim(dir, step string) {
	die := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	j, err := openJournal(dir, true, time.Now)
	if err != nil {
		die(err)
	}
	for i := range victimEnds {
		err = errors.Join(err, lead(j, execID(i), len(wholeLife), false))
	}
	for n := 1; n <= 4; n++ {
		err = errors.Join(err, lead(j, execID(1000+n), n, false))
	}
	fmt.Println(j.life.Generation)
	j.keep = victimKeeps
	next := j.life
	next.Generation = event.NewNonce()
	d, derr := j.draft(next)
	if err = errors.Join(err, derr); err != nil {
		die(err)
	}
	switch step {
	case "half a draft":
		die(d.file.Truncate(d.size / 2))
	case "a draft":
		die(nil)
	case "renamed":
		die(os.Rename(d.file.Name(), logFile(dir)))
	case "adopted":
		die(j.adopt(d))
	case "gone on":
		err = j.adopt(d)
		die(errors.Join(err, lead(j, execID(2000), 3, true)))
	}
}

// A Runner killed at any step of a shortening has, in its next life, all that is owed and its
// newest ends, and absence proves only where nothing was forgotten.
func TestKilledWhileShortening(t *testing.T) {
	t.Parallel()
	for step, forgets := range map[string]bool{"half a draft": false, "a draft": false, "renamed": true, "adopted": true, "gone on": true} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "RUNNER_TEST_JOURNAL="+dir, "RUNNER_TEST_STEP="+step)
			out, err := cmd.Output()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || len(out) < 10 {
				t.Fatalf("the victim was not killed: %v %s", err, out)
			}
			generation := string(out[:len(out)-1])
			j := reopen(t, dir)
			for n := 1; n <= 4; n++ {
				if e, ok := j.find(execID(1000 + n)); !ok || e.state != wholeLife[n-1] {
					t.Errorf("owed %s became %+v", wholeLife[n-1], e)
				}
			}
			known := 0
			for i := range victimEnds {
				if e, ok := j.find(execID(i)); ok && e.state == wire.JSettled {
					known++
				} else if i >= victimEnds-victimKeeps {
					t.Errorf("the end %d is forgotten", i)
				}
			}
			if forgotten := known < victimEnds; forgotten != forgets || forgotten == (j.life.Generation == generation) {
				t.Errorf("%d ends are known, same generation %v", known, j.life.Generation == generation)
			}
			if e, ok := j.find(execID(2000)); step == "gone on" && (!ok || e.state != wire.JRunning) {
				t.Errorf("what came after became %+v", e)
			}
			if _, err := os.Stat(filepath.Join(dir, "journal", draftName)); err == nil {
				t.Error("a draft is left")
			}
			mustLead(t, j, execID(3000), 2)
			_ = j.close()
			if e, ok := reopen(t, dir).find(execID(3000)); !ok || e.state != wire.JStarting {
				t.Errorf("a later step became %+v", e)
			}
		})
	}
}

// Shortening among many writers, syncs and other openers loses nothing and lets nobody in.
func TestShorteningIsExclusive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := openJournal(dir, true, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	j.keep = 5
	var shortened atomic.Int32
	j.onShorten = func(err error) {
		if shortened.Add(1); err != nil {
			t.Error(err)
		}
	}
	done := make(chan struct{})
	var writers, others sync.WaitGroup
	others.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if other, err := openJournal(dir, false, time.Now); !errors.Is(err, errJournalBusy) {
				t.Errorf("another opener got %v", err)
				if err == nil {
					_ = other.close()
				}
				return
			}
			_, _, _ = j.unsettled(3), j.current(), j.owing()
		}
	})
	for w := range 4 {
		writers.Go(func() {
			for i := range 12 {
				id := execID(1000*w + i)
				if err := lead(j, id, len(wholeLife), true); err != nil {
					t.Error(err)
				}
			}
			if err := lead(j, execID(1000*w+999), 3, true); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	close(done)
	others.Wait()
	if shortened.Load() == 0 || j.owing() != 4 {
		t.Errorf("shortened %d times, %d are owed", shortened.Load(), j.owing())
	}
	stale, err := os.OpenFile(logFile(dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stale.Close()
	j.keep = 1
	mustLead(t, j, execID(5000), len(wholeLife))
	if err := lockAs(stale, logFile(dir)); !errors.Is(err, errJournalBusy) {
		t.Errorf("who opened it before the last shortening got %v", err)
	}
	before := states(j)
	_ = j.close()
	if after := states(reopen(t, dir)); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v became %v", before, after)
	}
}
