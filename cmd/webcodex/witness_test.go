package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog"
)

// goneLog is a copy of a running server's files, as a kill leaves them, without what a test
// takes away.
func goneLog(t *testing.T, without ...string) string {
	t.Helper()
	w := newWorld(t, "always")
	w.work(args{"project": w.project, "instruction": "look"})
	deadline := time.Now().Add(10 * time.Second)
	for st := w.srv.log.Status(); w.srv.models.keeper.Status().Seq < st.Seq; st = w.srv.log.Status() {
		if time.Now().After(deadline) {
			t.Fatal("state.db does not follow")
		}
		w.srv.models.keeper.Mark()
	}
	dir := filepath.Join(t.TempDir(), "data")
	copyFiles(t, w.dir, dir)
	for _, name := range without {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// copyFiles copies the plain files of a data directory.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		rest, _ := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rest), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rest), b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A log that is gone is no empty one: state.db has seen it, or the owner file, and verify,
// doctor and a start say so. What proves it stays as it was.
func TestVerifyAndDoctorMissALogThatIsGone(t *testing.T) {
	for name, without := range map[string][]string{
		"state.db tells":       {"log", "checkpoint.json", "ledger"},
		"the owner tells":      {"log", "checkpoint.json", "ledger", "state.db", "state.db-wal", "state.db-shm"},
		"not even a format":    {"log", "checkpoint.json", "ledger", "format"},
		"the checkpoint tells": {"log"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := goneLog(t, without...)
			db, _ := os.ReadFile(filepath.Join(dir, stateFile))
			wal, _ := os.ReadFile(filepath.Join(dir, stateFile+"-wal"))
			code, text := told(t, "verify", "--data", dir, "--json")
			var v verified
			if err := json.Unmarshal([]byte(text), &v); err != nil || code != exitFailed || v.OK || len(v.Damaged) != 1 || v.Damaged[0].Reason != "log_missing" {
				t.Errorf("verify: %d %s", code, text)
			}
			if _, text := told(t, "verify", "--data", dir); !strings.Contains(text, "no commit's chain was followed") || strings.Contains(text, "chain of 0") {
				t.Errorf("verify says %s", text)
			}
			code, text = told(t, "doctor", "--data", dir, "--json")
			if c := checksOf(t, text)["log"]; code != exitFailed || len(c) != 1 || c[0].Status != statusFail || !strings.Contains(c[0].Detail, "log_missing") {
				t.Errorf("doctor: %d %+v", code, c)
			}
			if l, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Witness: witness(t.Context(), dir)}); err == nil {
				_ = l.Close()
				t.Error("an empty log was begun")
			}
			now, _ := os.ReadFile(filepath.Join(dir, stateFile))
			nowWAL, _ := os.ReadFile(filepath.Join(dir, stateFile+"-wal"))
			if !bytes.Equal(now, db) || !bytes.Equal(nowWAL, wal) {
				t.Error("state.db was changed")
			}
		})
	}
}

// Blocks without a format file are named as damage that doctor mends.
func TestDoctorWritesALostFormatAgain(t *testing.T) {
	dir := goneLog(t, "format")
	for _, command := range []string{"verify", "doctor"} {
		if code, text := told(t, command, "--data", dir); code != exitFailed || !strings.Contains(text, "format_missing") {
			t.Errorf("%s: %d %s", command, code, text)
		}
	}
	if c := checksOf(t, mustTell(t, "doctor", "--repair", "--data", dir, "--json"))["repair"]; len(c) == 0 || c[0].Status != statusOK || !strings.Contains(c[0].Detail, "format file") {
		t.Errorf("repair: %+v", c)
	}
	if code, text := told(t, "verify", "--data", dir); code != exitOK || !strings.Contains(text, "all is as it was written") {
		t.Errorf("verify: %d %s", code, text)
	}
}
