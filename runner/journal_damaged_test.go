package runner

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// Ids of usedJournal, by how far they came.
const (
	idAccepted = iota
	idStarting
	idTerminal
	idNever
	usedIDs
)

// usedJournal is a closed journal of this boot, and its generation. In it one id was accepted,
// one started, one ended, and one never started.
func usedJournal(t *testing.T) (dir, generation string) {
	t.Helper()
	dir = t.TempDir()
	j, err := openJournal(dir, false, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	generation = j.life.Generation
	exit := 0
	for _, r := range []record{
		{ID: execID(idTerminal), State: wire.JAccepted, Digest: "d"},
		{ID: execID(idTerminal), State: wire.JStarting},
		{ID: execID(idTerminal), State: wire.JRunning},
		{ID: execID(idTerminal), State: wire.JTerminal, Result: &wire.Result{State: wire.JTerminal, Digest: "d",
			Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &exit}}},
		{ID: execID(idNever), State: wire.JNever, Digest: "d"},
		{ID: execID(idAccepted), State: wire.JAccepted, Digest: "d"},
		{ID: execID(idStarting), State: wire.JAccepted, Digest: "d"},
		{ID: execID(idStarting), State: wire.JStarting},
	} {
		if err := j.step(r, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	return dir, generation
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A journal that cannot be read is told of, kept as it was under another name, and proves of
// nothing that it did not start; what can be read of it still counts.
//
// Covers: EXE-38
func TestADamagedJournalIsSetAside(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"garbage":                func([]byte) []byte { return []byte("this is no journal") },
		"lines of garbage":       func([]byte) []byte { return []byte("this is\nno journal\n") },
		"a flipped byte":         func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"one in the last line":   func(b []byte) []byte { b[len(b)-10] ^= 4; return b },
		"one in the last ending": func(b []byte) []byte { b[len(b)-1] ^= 4; return b },
		"zeros inside":           func(b []byte) []byte { clear(b[len(b)/2 : len(b)/2+30]); return b },
		"a long tail":            func(b []byte) []byte { return append(b, bytes.Repeat([]byte("x"), maxLine+1)...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, generation := usedJournal(t)
			bad := damage(readFile(t, logFile(dir)))
			if err := os.WriteFile(logFile(dir), bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := CheckJournal(dir); fault.KindOf(err) != fault.LogDamaged {
				t.Errorf("the check says %v", err)
			}
			if !bytes.Equal(readFile(t, logFile(dir)), bad) {
				t.Error("the check changed the file")
			}
			var said bytes.Buffer
			g := openRig(t, dir, t.TempDir(), func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&said, nil)) })
			aside := "runner/journal/log.damaged.1"
			if !strings.Contains(said.String(), aside) || strings.Contains(said.String(), dir) {
				t.Errorf("the log says %q", said.String())
			}
			if !bytes.Equal(readFile(t, filepath.Join(dir, "journal", filepath.Base(aside))), bad) {
				t.Error("the damaged file was not kept as it was")
			}
			for id := range usedIDs {
				q := g.query(wire.Query{ID: execID(id)})
				if id != idNever && q.State == wire.JNever || q.State == wire.JAbsent && q.Generation == generation {
					t.Errorf("id %d: %+v proves that it did not start", id, q)
				}
			}
			_ = g.Close()
			if err := CheckJournal(dir); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			said.Reset()
			_ = openRig(t, dir, t.TempDir(), func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&said, nil)) }).Close()
			if said.Len() > 0 || !slices.Equal(DamagedJournals(dir), []string{aside}) {
				t.Errorf("the next start says %q, aside are %v", said.String(), DamagedJournals(dir))
			}
		})
	}
}

// Wherever one byte is flipped: nothing that was started is ever proved not to have been, and a
// file in which a line is lost is kept.
func TestAFlippedByteInAJournalProvesNothingFalse(t *testing.T) {
	t.Parallel()
	from, _ := usedJournal(t)
	whole := readFile(t, logFile(from))
	at, step := rand.IntN(4), 4 // another quarter of them each time
	if os.Getenv("WEBCODEX_SOAK") != "" {
		at, step = 0, 1
	}
	for ; at < len(whole); at += step {
		bad := bytes.Clone(whole)
		bad[at] ^= 4
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(logFile(dir)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(logFile(dir), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(dir, false, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []int{idStarting, idTerminal} {
			if e, ok := j.find(execID(id)); ok && (e.state == wire.JNever || e.state == wire.JAccepted) {
				t.Errorf("byte %d: id %d is %q", at, id, e.state)
			}
		}
		if j.aside == "" || !bytes.Equal(readFile(t, filepath.Join(dir, "journal", j.aside)), bad) {
			t.Errorf("byte %d: the file was not kept", at)
		}
		_ = j.close()
	}
}

// A killed Runner whose journal lost every line but that a command was accepted: its processes
// are ended all the same, and the outcome is told as lost, not as never started.
func TestAKilledRunnerWithADamagedJournal(t *testing.T) {
	t.Parallel()
	dir, root, id := t.TempDir(), t.TempDir(), event.NewExecutionID()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "RUNNER_TEST_DIR="+dir, "RUNNER_TEST_ROOT="+root, "RUNNER_TEST_ID="+string(id))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := waitPid(t, filepath.Join(root, "pid2"))
	waitState(t, dir, "running")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	lines := bytes.SplitAfter(readFile(t, logFile(dir)), []byte("\n"))
	for i, line := range lines {
		if bytes.Contains(line, []byte(`"s":"starting"`)) || bytes.Contains(line, []byte(`"s":"running"`)) {
			lines[i][len(line)/2] ^= 4
		}
	}
	if err := os.WriteFile(logFile(dir), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	g := openRig(t, dir, root)
	if processLives(pid) {
		t.Errorf("process %d lives on", pid)
	}
	g.tellOwed(t.Context())
	if r := g.end(); r.ID != id || r.State != wire.JLost || r.Digest != "d" {
		t.Errorf("told %+v", r)
	}
	if q := g.query(wire.Query{ID: id}); q.State != wire.JLost {
		t.Errorf("asked for: %+v", q)
	}
}

// A start that ended between setting aside and writing anew is gone on with; what was set aside
// before is never overwritten, and at the bound the Runner does not start.
func TestDamagedJournalsAreNeverOverwritten(t *testing.T) {
	t.Parallel()
	dir, _ := usedJournal(t)
	var kept [][]byte
	for n := range maxAside {
		bad := bytes.Repeat([]byte("garbage\n"), n+1)
		if err := os.WriteFile(logFile(dir), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			if err := os.Link(logFile(dir), filepath.Join(dir, "journal", asideName(n+1))); err != nil {
				t.Fatal(err)
			}
		}
		_ = reopen(t, dir).close()
		kept = append(kept, bad)
	}
	bad := []byte("one too many\n")
	if err := os.WriteFile(logFile(dir), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Dir: dir, Client: "c1"}); fault.KindOf(err) != fault.Unavailable || fault.As(err).Next == "" {
		t.Errorf("at the bound: %v", err)
	}
	if !bytes.Equal(readFile(t, logFile(dir)), bad) || len(DamagedJournals(dir)) != maxAside {
		t.Errorf("a refused start changed something: %v", DamagedJournals(dir))
	}
	for n, want := range kept {
		if !bytes.Equal(readFile(t, filepath.Join(dir, "journal", asideName(n+1))), want) {
			t.Errorf("%s was overwritten", asideName(n+1))
		}
	}
}

// What a power cut leaves of the last line is no damage: the line counts as not written.
func TestAPowerCutInAJournalIsNoDamage(t *testing.T) {
	t.Parallel()
	dir, _ := usedJournal(t)
	j := reopen(t, dir)
	other := j.life
	other.Boot = "another boot"
	if err := j.append(record{Life: &other}); err != nil {
		t.Fatal(err)
	}
	_ = j.close()
	whole := readFile(t, logFile(dir))
	for name, cut := range map[string][]byte{
		"zeros":             make([]byte, 4096),
		"a line with zeros": append(append([]byte(`1234abcd {"id":`), make([]byte, 90)...), '\n'),
		"half a line":       []byte(`1234abcd {"id":"wc_`),
	} {
		if err := os.WriteFile(logFile(dir), append(bytes.Clone(whole), cut...), 0o600); err != nil {
			t.Fatal(err)
		}
		j := reopen(t, dir)
		if e, ok := j.find(execID(idNever)); j.aside != "" || !ok || e.state != wire.JNever {
			t.Errorf("%s: set aside as %q", name, j.aside)
		}
		_ = j.close()
	}
}

func FuzzParseJournal(f *testing.F) {
	line, _ := encodeLine(record{ID: execID(1), State: wire.JAccepted})
	f.Add(line)
	f.Add(append(bytes.Clone(line), "1234abcd {"...))
	f.Add([]byte("\x00\x00\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := parseJournal(raw, "boot")
		if c.end < 0 || c.end > int64(len(raw)) || c.end == 0 && len(c.records) > 0 {
			t.Fatalf("%d records up to %d of %d", len(c.records), c.end, len(raw))
		}
		if again := parseJournal(raw[:c.end], "boot"); c.sound && (!again.sound || again.end != c.end) {
			t.Fatal("what was kept of a sound file reads otherwise")
		}
	})
}
