package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog"
	"webcodex/internal/fault"
)

// goneLog is a copy of a running server's files, as a kill leaves them, without what a test
// takes away.
func goneLog(t *testing.T, without ...string) string {
	t.Helper()
	dir := newWorld(t, "always").leftBehind(t)
	for _, name := range without {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// leftBehind works, waits for state.db, and copies the files.
func (w *world) leftBehind(t *testing.T) string {
	t.Helper()
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
		if errors.Is(err, os.ErrNotExist) && strings.HasSuffix(path, ".tmp") {
			return nil // the server that lives beside gave it its name
		}
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
	t.Parallel()
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

// tornLog is goneLog whose last commit, which state.db has seen and the checkpoint file has not,
// is cut short.
func tornLog(t *testing.T) string {
	t.Helper()
	w := newWorld(t, "always")
	early, err := os.ReadFile(filepath.Join(w.dir, "checkpoint.json"))
	if err != nil {
		t.Fatal(err)
	}
	dir := w.leftBehind(t)
	put(t, filepath.Join(dir, "checkpoint.json"), string(early))
	block := logFile(dir, "msgs/1.blk")
	b, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	put(t, block, string(b[:len(b)-20]))
	return dir
}

// damageIndexPage spoils a page of state.db that its checkpoint row does not lie on.
func damageIndexPage(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, stateFile)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	var busy, root, size int64
	if err := db.QueryRow(`PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &root, &size); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(db.QueryRow(`SELECT max(rootpage) FROM sqlite_master WHERE type = 'index'`).Scan(&root), db.QueryRow(`PRAGMA page_size`).Scan(&size), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(b[(root-1)*size:], "\xff\xff\xff\xff")
	put(t, path, string(b))
}

// A state.db that is damaged, or said to be, is still the witness of the log's lost end: no
// start and no repair goes on as if nothing were missing, however often they are tried.
func TestADamagedReadModelIsStillAWitness(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir string){
		"marked as spoiled":    func(dir string) { put(t, filepath.Join(dir, stateFile+"-spoiled"), "") },
		"one page is damaged":  func(dir string) { damageIndexPage(t, dir) },
		"damaged, and marked":  func(dir string) { damageIndexPage(t, dir); put(t, filepath.Join(dir, stateFile+"-spoiled"), "") },
		"nothing but its tail": func(string) {},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tornLog(t)
			spoil(dir)
			for range 2 {
				m := newModels(dir, 0, slog.New(slog.DiscardHandler))
				l, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Base: m.keeper, Witness: witness(t.Context(), dir)})
				if err == nil {
					_ = l.Close()
					t.Fatal("a log without its end was opened")
				}
				if f := fault.As(err); f.Reason != "tail_lost" {
					t.Errorf("the start says %v", err)
				}
				code, text := told(t, "doctor", "--repair", "--data", dir, "--json")
				if c := checksOf(t, text)["repair"]; code != exitFailed || len(c) == 0 || !strings.Contains(c[len(c)-1].Detail, "tail_lost") {
					t.Errorf("repair: %d %+v", code, c)
				}
				if _, err := os.Stat(filepath.Join(dir, stateFile)); err != nil {
					t.Fatalf("the witness is gone: %v", err)
				}
			}
		})
	}
}

// A state.db that cannot even say where it stood holds up nobody, but that the log's end is
// unproved is said, and the file is put aside, not removed.
func TestAWitnessThatCannotSpeakIsSaidToBeOne(t *testing.T) {
	t.Parallel()
	dir := newWorld(t, "always").leftBehind(t)
	put(t, filepath.Join(dir, stateFile), strings.Repeat("no database ", 1000))
	for _, suffix := range []string{"-wal", "-shm"} { // the log of its writes may have all of it
		if err := os.Remove(filepath.Join(dir, stateFile+suffix)); err != nil {
			t.Fatal(err)
		}
	}
	if code, text := told(t, "verify", "--data", dir); code != exitOK || !strings.Contains(text, "could not tell how far the log went") {
		t.Errorf("verify: %d %s", code, text)
	}
	all := ""
	for _, c := range checksOf(t, mustTell(t, "doctor", "--repair", "--data", dir, "--json"))["repair"] {
		all += c.Status + " " + c.Detail + "\n"
	}
	if !strings.Contains(all, "is unknown beyond sequence") || !strings.Contains(all, "put aside as state.db.damaged") || strings.Contains(all, statusFail) {
		t.Errorf("repair says:\n%s", all)
	}
	if b, err := os.ReadFile(filepath.Join(dir, stateFile+".damaged")); err != nil || !strings.HasPrefix(string(b), "no database ") {
		t.Errorf("%.20q %v", b, err)
	}
}

// Blocks without a format file are named as damage that doctor mends.
func TestDoctorWritesALostFormatAgain(t *testing.T) {
	t.Parallel()
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
