package session

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// three is a world with three Sessions that the file has whole, each with calls, a Job that
// goes on, one that has ended, and a board.
func three(t testing.TB) *world {
	w := newWorld(t, 0)
	for i := range 3 {
		h := began(fmt.Sprint("session ", i))
		id := event.SessionID(fmt.Sprintf("wc_sess_%032x", i))
		for range 20 {
			h.edit("a.go")
		}
		h.job(2*i, testServer)
		x := h.job(2*i+1, testServer)
		h.commit(event.ExecutionFinished{Execution: x, Tool: "run_process"})
		h.commit(post(1, event.MessageTodo), post(2, event.MessageNote), post(3, event.MessageNote))
		h.commit(completion(1, 4, "k"))
		for _, s := range logged(t, h.commits) {
			s.Commit.Aggregate = event.SessionAggregate(id)
			w.commit(s)
		}
	}
	w.restart()
	return w
}

// exec changes the file behind the Store's back.
func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.path)
	if err == nil {
		_, err = db.Exec(query, args...)
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// A damaged row spoils its own Session alone, and that one is read again from the log and
// written again; without the log it is refused, never shown as it is not.
//
// Covers: SES-30, RES-05, RES-07
func TestDamagedRowIsReadAgain(t *testing.T) {
	const bad = event.SessionID("wc_sess_00000000000000000000000000000001")
	for name, harm := range map[string]string{
		"core":           `UPDATE session SET core = replace(core, 'session 1', 'session 7') WHERE id = ?`,
		"mode":           `UPDATE session SET core = replace(core, '"mode":"normal"', '"mode":"inspect"') WHERE id = ?`,
		"unknown member": `UPDATE session SET core = replace(core, '"mode":', '"context_revision":1,"mode":') WHERE id = ?`,
		"lifecycle":      `UPDATE session SET lifecycle = 'closed' WHERE id = ?`,
		"authority":      `UPDATE session SET authority = 'bb' WHERE id = ?`,
		"time":           `UPDATE session SET updated = updated + 1 WHERE id = ?`,
		"not busy":       `UPDATE session SET hash = hash + 1 WHERE id = ?`,
		"event":          `UPDATE session_tail SET event = replace(event, 'a.go', 'b.go') WHERE slot = 9 AND session = (SELECT num FROM session WHERE id = ?)`,
		"event gone":     `DELETE FROM session_tail WHERE slot = 9 AND session = (SELECT num FROM session WHERE id = ?)`,
		"last gone":      `DELETE FROM session_tail WHERE slot > 40 AND session = (SELECT num FROM session WHERE id = ?)`,
		"message":        `UPDATE session_message SET message = replace(message, 'text 2', 'text 7') WHERE place = 2 AND session = (SELECT num FROM session WHERE id = ?)`,
		"message gone":   `DELETE FROM session_message WHERE place = 2 AND session = (SELECT num FROM session WHERE id = ?)`,
		"newest gone":    `DELETE FROM session_message WHERE place > 3 AND session = (SELECT num FROM session WHERE id = ?)`,
		"board gone":     `DELETE FROM session_message WHERE session = (SELECT num FROM session WHERE id = ?)`,
		"other place":    `UPDATE session_message SET place = 99 WHERE place = 2 AND session = (SELECT num FROM session WHERE id = ?)`,
		"one too many":   `INSERT INTO session_message SELECT session, 99, message, hash FROM session_message WHERE place = 2 AND session = (SELECT num FROM session WHERE id = ?)`,
		"other's board":  `UPDATE session_message SET session = session + 10 WHERE session = (SELECT num FROM session WHERE id = ?)`,
		"another's":      `UPDATE session_tail SET session = (SELECT num FROM session WHERE id = ?) + 10 WHERE session = 1 AND slot = 9`,
	} {
		t.Run(name, func(t *testing.T) {
			w := three(t)
			w.exec(harm, string(bad))
			if name == "another's" {
				w.exec(`UPDATE OR REPLACE session_tail SET session = 1, slot = 9 WHERE session = 2 AND slot = 9`)
			}
			if name == "other's board" {
				w.exec(`UPDATE OR REPLACE session_message SET session = session - 1 WHERE session = (SELECT num FROM session WHERE id = ?) + 1`, string(bad))
			}
			if diff := w.check(); diff != "" {
				t.Fatal(diff)
			}
			if w.reread == 0 {
				t.Fatal("nothing was read again")
			}
			w.restart()
			w.reread = 0
			if diff := w.check(); diff != "" || w.reread > 0 {
				t.Fatalf("it was not written again: %d read again %s", w.reread, diff)
			}
		})
	}
}

// Covers: SES-30
func TestDamagedRowOfADamagedLogIsRefused(t *testing.T) {
	const bad = event.SessionID("wc_sess_00000000000000000000000000000001")
	w := three(t)
	w.exec(`UPDATE session SET core = replace(core, 'session 1', 'session 7') WHERE id = ?`, string(bad))
	w.damaged = fault.New(fault.LogDamaged, "damaged")
	for range 2 {
		if _, err := w.store.Load(bad); fault.KindOf(err) != fault.LogDamaged {
			t.Fatal(err)
		}
		if _, err := w.store.Target(bad); fault.KindOf(err) != fault.LogDamaged {
			t.Fatal(err)
		}
		for _, c := range w.store.List(Filter{AnyAuthority: true}) {
			if c.ID == bad {
				t.Fatal("it is listed")
			}
		}
		for id, v := range w.truth {
			if id != bad {
				if diff := w.checkOne(id, v); diff != "" {
					t.Fatal(diff)
				}
			}
		}
		// Its commits go on being taken in, and the others are written.
		v := w.truth[bad]
		w.commit(Stored{Commit: event.Commit{Aggregate: event.SessionAggregate(bad), Version: v.Core.Version + 1, At: v.Core.UpdatedAt,
			Events: []event.Event{event.ContextUpdated{}}}})
		w.flush()
	}
	w.store.SetSource(nil)
	if _, err := w.store.Load(bad); fault.KindOf(err) != fault.LogDamaged {
		t.Fatal(err)
	}
	w.damaged = nil
	w.restart()
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
}

// Whatever byte of the file flips, what is shown is what was written, or an error; what is not
// shown is told of.
func TestFlippedBytesAreNeverShown(t *testing.T) {
	flips := 30
	if os.Getenv("WEBCODEX_SOAK") != "" {
		flips = 2000
	}
	w := three(t)
	_ = w.keeper.Close()
	whole, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range flips {
		at, bit := random.IntN(len(whole)), byte(1)<<random.IntN(8)
		if n%2 == 0 { // in a live row
			at = bytes.LastIndex(whole, []byte(`"session.tool_call_finished"`)) + random.IntN(100)
		}
		spoilt := bytes.Clone(whole)
		spoilt[at] ^= bit
		w.path = filepath.Join(t.TempDir(), "state.db")
		if err := os.WriteFile(w.path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		w.open()
		for id, want := range w.truth {
			if v, err := w.store.Load(id); err == nil {
				if diff := cmp.Diff(stateOf(want), stateOf(v), empty); diff != "" {
					t.Fatalf("bit %#x of byte %d: %s", bit, at, diff)
				}
			} else if kind := fault.KindOf(err); kind != fault.LogDamaged {
				t.Fatalf("bit %#x of byte %d: %v", bit, at, err)
			}
		}
		if why := w.listed(); why != "" {
			t.Fatalf("bit %#x of byte %d: %s", bit, at, why)
		}
		_ = w.keeper.Close()
	}
}

// listed compares what the lists show with the truth; what they lack must be told of.
func (w *world) listed() string {
	list := w.store.List(Filter{AnyAuthority: true})
	for _, c := range list {
		if diff := cmp.Diff(w.truth[c.ID].Core, c, empty); diff != "" {
			return diff
		}
	}
	if _, err := os.Stat(w.path + "-spoiled"); len(list) < len(w.truth) && err != nil {
		return fmt.Sprintf("%d of %d are listed, and nothing tells of it", len(list), len(w.truth))
	}
	return ""
}

// An id is in rows and in indexes. Where an index lost it SQLite finds no row; the Session is
// given from the log all the same, and the next start makes the file again. The scrub finds
// what nobody asked for.
//
// Covers: SES-30, RES-05
func TestLostIndexEntryIsNoAbsence(t *testing.T) {
	const bad = event.SessionID("wc_sess_00000000000000000000000000000001")
	w := three(t)
	_ = w.keeper.Close()
	whole, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}
	told, places := 0, 0
	for from := 0; ; places++ {
		i := bytes.Index(whole[from:], []byte(bad))
		if i < 0 {
			break
		}
		at := from + i + len(bad) - 10
		from = at
		spoilt := bytes.Clone(whole)
		spoilt[at] ^= 2 // the digit becomes 2
		w.path = filepath.Join(t.TempDir(), "state.db")
		for i, look := range []func() error{ // each is the first in a life of its own
			func() error { _, _, err := w.store.LoadBoard(bad); return err },
			func() error { _, err := w.store.LoadCore(bad); return err },
			func() error { _, err := w.store.Load(bad); return err },
			func() error { _, err := w.store.Target(bad); return err },
		} {
			if i > 0 {
				_ = w.keeper.Close()
				w.path = filepath.Join(t.TempDir(), "state.db")
			}
			if err := os.WriteFile(w.path, spoilt, 0o600); err != nil {
				t.Fatal(err)
			}
			w.open()
			if err := look(); err != nil {
				t.Fatalf("byte %d, look %d: %v", at, i, err)
			}
		}
		if why := w.listed(); why != "" {
			t.Fatalf("byte %d: %s", at, why)
		}
		if err := w.keeper.Scrub(context.Background()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(w.path + "-spoiled"); err == nil {
			told++
		}
		w.restart()
		if diff := w.check(); diff != "" {
			t.Fatal(diff)
		}
	}
	if places < 4 || told == 0 {
		t.Fatalf("the id stood in %d places, %d changes were told of", places, told)
	}
}

// The file is disposable: without it, and from another version of it, every answer is the
// same.
//
// Covers: RES-18
func TestWithoutTheFileAnswersAreEqual(t *testing.T) {
	w := three(t)
	before := map[event.SessionID][]string{}
	for id := range w.truth {
		before[id] = views(must(w.store.View(id))(t))
	}
	for _, harm := range []func(){
		func() { _ = os.Remove(w.path) },
		func() { _ = os.Truncate(w.path, 20_000) },
		func() { w.exec(`UPDATE state_checkpoint SET fold = 'other'`) },
		func() { w.exec(`DROP TABLE session_tail`) },
		func() { w.exec(`DROP TABLE session_message`) },
	} {
		if err := w.keeper.Close(); err != nil {
			t.Fatal(err)
		}
		harm()
		w.open()
		for range 2 { // from memory, and from rows
			for id := range w.truth {
				if diff := cmp.Diff(before[id], views(must(w.store.View(id))(t))); diff != "" {
					t.Fatal(diff)
				}
			}
			if diff := w.check(); diff != "" {
				t.Fatal(diff)
			}
			w.restart()
		}
	}
}

// A batch that fails harms nothing: what it held is written with the next one.
//
// Covers: RES-23
func TestFailedBatchIsHeldAndTriedAgain(t *testing.T) {
	w := three(t)
	w.exec(`CREATE TRIGGER stop BEFORE INSERT ON session_tail BEGIN SELECT raise(ABORT, 'no'); END`)
	id := event.SessionID("wc_sess_00000000000000000000000000000001")
	v := w.truth[id]
	for i := range 3 {
		w.commit(Stored{Commit: event.Commit{Aggregate: event.SessionAggregate(id), Version: v.Core.Version + 1 + uint64(i), At: v.Core.UpdatedAt,
			Events: []event.Event{event.ContextUpdated{}}}})
		if err := w.keeper.Flush(context.Background()); err == nil {
			t.Fatal("the batch did not fail")
		}
	}
	if s := w.keeper.Status(); s.LastPersistError == "" || s.Seq == s.Applied {
		t.Fatalf("%+v", s)
	}
	if why := w.store.Totals().LastPersistError; why == nil || *why == "" {
		t.Fatal("the counters do not tell of it")
	}
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
	w.exec(`DROP TRIGGER stop`)
	w.flush()
	if s := w.keeper.Status(); s.LastPersistError != "" || s.Seq != s.Applied || w.store.Totals().LastPersistError != nil {
		t.Fatalf("%+v", s)
	}
	w.crash()
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
}
