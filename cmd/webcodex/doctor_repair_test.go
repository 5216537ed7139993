package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// closedLog is a data directory with a log of n commits that nobody has open. The log's
// blocks are small, so that some are sealed.
func closedLog(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "format"), `{"format":1,"log_max_bytes":125000}`)
	l, err := eventlog.Open(context.Background(), eventlog.Options{Dir: dir, Durability: eventlog.Process, Server: event.NewInstanceID()})
	if err != nil {
		t.Fatal(err)
	}
	a := event.SessionAggregate(event.NewSessionID())
	for range n {
		head, err := l.Head(a)
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(), Reserve: true,
			Events: []event.Event{event.InstructionAccepted{Text: strings.Repeat("x", 2<<10)}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func logFile(dir, name string) string {
	return filepath.Join(dir, "log", "jetstream", "WC", "streams", "LOG", name)
}

// told runs a command and gives its exit code and JSON.
func told(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := runProgram(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String() + errs.String()
}

func checksOf(t *testing.T, text string) map[string][]check {
	t.Helper()
	var r struct {
		OK     bool    `json:"ok"`
		Checks []check `json:"checks"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	by := map[string][]check{}
	for _, c := range r.Checks {
		by[c.Name] = append(by[c.Name], c)
	}
	return by
}

// Repair makes again what can be made again: the ledger, meta files, a state.db that cannot be
// read, what a stop left half written. Then verify finds everything as it was written.
func TestDoctorRepairsWhatLosesNothing(t *testing.T) {
	t.Parallel()
	dir := closedLog(t, 30)
	ledger, err := os.ReadFile(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "ledger"), "garbage")
	put(t, filepath.Join(dir, "state.db"), strings.Repeat("no database ", 1000))
	put(t, filepath.Join(dir, "checkpoint.json.tmp"), "{")
	put(t, logFile(dir, "msgs/index.db"), "garbage")
	for _, name := range []string{"meta.inf", "meta.sum"} {
		if err := os.Remove(logFile(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, text := told(t, "doctor", "--data", dir, "--json")
	if c := checksOf(t, text)["ledger"]; len(c) != 1 || c[0].Status != statusWarn || !strings.Contains(c[0].Detail, "ledger_damaged") || !strings.Contains(c[0].Fix, "--repair") {
		t.Errorf("doctor says of the ledger: %+v", c)
	}
	put(t, logFile(dir, "msgs/index.db"), "garbage")
	_, text = told(t, "doctor", "--repair", "--data", dir, "--json")
	all := ""
	for _, c := range checksOf(t, text)["repair"] {
		if c.Status != statusOK {
			t.Errorf("%+v", c)
		}
		all += c.Detail + "\n"
	}
	for _, want := range []string{"ledger was made again", "state.db", "checkpoint.json.tmp", "index of the log"} {
		if !strings.Contains(all, want) {
			t.Errorf("nothing is said of %q:\n%s", want, all)
		}
	}
	if now, err := os.ReadFile(filepath.Join(dir, "ledger")); err != nil || !bytes.Equal(now, ledger) {
		t.Errorf("the ledger is %q (%v), was %q", now, err, ledger)
	}
	for _, gone := range []string{"state.db", "checkpoint.json.tmp"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", gone, err)
		}
	}
	code, text := told(t, "verify", "--data", dir, "--json")
	var v verified
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != exitOK || !v.OK || v.Commits != 31 || v.Blocks < 2 || v.Unknown != 0 {
		t.Errorf("verify: %d %s", code, text)
	}
	if c := checksOf(t, mustTell(t, "doctor", "--repair", "--data", dir, "--json"))["repair"]; len(c) != 1 || c[0].Detail != "there was nothing to repair" {
		t.Errorf("a second repair: %+v", c)
	}
}

func mustTell(t *testing.T, args ...string) string {
	t.Helper()
	_, text := told(t, args...)
	return text
}

// What repair may not do it names, with the class and the only way out, and changes nothing of
// the log. Verify and doctor say the same.
func TestDoctorNamesWhatItCannotSave(t *testing.T) {
	t.Parallel()
	dir := closedLog(t, 30)
	block := logFile(dir, "msgs/1.blk")
	b, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	b[1000] ^= 1
	put(t, block, string(b))
	// Without JetStream's index every block is read at the start.
	if err := os.Remove(logFile(dir, "msgs/index.db")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--repair"}} {
		code, text := told(t, append(args, "--data", dir, "--json")...)
		for name, list := range checksOf(t, text) {
			if name != "log" && name != "repair" {
				continue
			}
			c := list[len(list)-1]
			if c.Status != statusFail || !strings.Contains(c.Detail, "flipped_byte") || !strings.Contains(c.Detail, "block 1") || !strings.Contains(c.Fix, "backup") {
				t.Errorf("%v says of %s: %+v", args, name, list)
			}
		}
		if code != exitFailed {
			t.Errorf("%v ends with %d", args, code)
		}
	}
	code, text := told(t, "verify", "--data", dir, "--json")
	var v verified
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != exitFailed || v.OK || len(v.Damaged) != 1 || v.Damaged[0].Block != 1 {
		t.Errorf("verify: %d %s", code, text)
	}
	if now, err := os.ReadFile(block); err != nil || !bytes.Equal(now, b) {
		t.Errorf("the damaged block was changed (%v)", err)
	}
}

// A running server verifies its own log.
func TestVerifyAsksTheRunningServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	code, text := told(t, "verify", "--data", w.dir, "--json")
	var v verified
	if err := json.Unmarshal([]byte(text), &v); err != nil || code != exitOK || !v.OK || v.Commits == 0 {
		t.Errorf("verify: %d %s", code, text)
	}
	if code, text := told(t, "doctor", "--repair", "--data", w.dir, "--json"); code != exitFailed || !strings.Contains(text, "end it first") {
		t.Errorf("repair beside a server: %d %s", code, text)
	}
}

// While another process has the data directory, every command that would read or write the
// files itself is refused and touches nothing (faults.md 5.8).
func TestOfflineCommandsAreRefusedBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := closedLog(t, 3)
	l, err := eventlog.Open(context.Background(), eventlog.Options{Dir: dir, Durability: eventlog.Process})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	id := string(event.NewSessionID())
	for _, args := range [][]string{{"verify"}, {"sessions"}, {"replay", id}, {"handoff", id}, {"history"}, {"doctor", "--repair"}} {
		if code, text := told(t, append(args, "--data", dir)...); code == exitOK {
			t.Errorf("%v worked beside another process: %s", args, text)
		} else if !strings.Contains(text, "another process") && !strings.Contains(text, "a server has the data directory open") && !strings.Contains(text, "no server runs") {
			t.Errorf("%v: %d %s", args, code, text)
		}
	}
}
