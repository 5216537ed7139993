package session

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// says commits to a Session of the world.
func (w *world) says(id event.SessionID, events ...event.Event) {
	w.commit(Stored{Commit: event.Commit{Aggregate: event.SessionAggregate(id), Version: w.truth[id].Core.Version + 1,
		At: newHistory().at.Add(time.Duration(len(w.log)) * time.Second), Events: events}})
}

// fullBoard is a world with one Session whose board is full.
func fullBoard(t testing.TB, target int) *world {
	w := newWorld(t, target)
	w.says(testID, created("a board"))
	p := post(1, event.MessageTodo)
	p.Key, p.Payload, p.RequiresAck = "delivery", "payload", true
	w.says(testID, p)
	for n := range MaxMessages - 1 {
		w.says(testID, post(n+2, event.MessageTodo))
	}
	w.flush()
	return w
}

// Lists, counts and cores are read without the messages, and so are commits that are not about
// them.
//
// Covers: SES-48
func TestOnlyReadersOfABoardReadIt(t *testing.T) {
	w := three(t)
	w.exec(`UPDATE session_message SET hash = hash + 1`)
	bad := sessionNo(1)
	if got, err := w.store.Page(Filter{AnyAuthority: true}, 0, nil); err != nil || got.Returned != 3 {
		t.Fatal(got, err)
	}
	if _, err := w.store.LoadCore(bad); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Open(); err != nil || w.store.Totals().Sessions != 3 {
		t.Fatal(err)
	}
	w.says(bad, event.ContextUpdated{})
	w.flush()
	w.restart()
	if w.reread > 0 {
		t.Fatalf("read again %d times", w.reread)
	}
	w.says(bad, post(50, event.MessageNote)) // folded over damaged rows, by the batch alone
	w.flush()
	if w.reread == 0 {
		t.Fatal("damaged messages were folded over")
	}
	w.reread = 0
	if diff := w.checkOne(bad, w.truth[bad]); diff != "" || w.reread > 0 {
		t.Fatal(diff, w.reread)
	}
	if diff := w.check(); diff != "" {
		t.Fatal(diff)
	}
}

// A reader of the board reads no event of the tail, and sees what any reader sees.
func TestLoadBoardReadsNoTail(t *testing.T) {
	w := three(t)
	id := sessionNo(2)
	w.exec(`UPDATE session_tail SET hash = hash + 1`)
	for range 2 { // as it lies there, and with a commit above
		c, b, err := w.store.LoadBoard(id)
		if err != nil || w.reread > 0 {
			t.Fatal(err, w.reread)
		}
		want := w.truth[id]
		if diff := cmp.Diff(want.Core, c, empty) + cmp.Diff(plainly(want.Board), plainly(b), empty); diff != "" {
			t.Fatal(diff)
		}
		w.says(id, post(60, event.MessageNote), event.ContextUpdated{})
	}
	w.exec(`UPDATE session_message SET hash = hash + 1`)
	w.store.SetHotTarget(0)
	if _, b, err := w.store.LoadBoard(id); err != nil || w.reread != 1 || b.Len() != w.truth[id].Board.Len() {
		t.Fatal(err, w.reread)
	}
	if _, _, err := w.store.LoadBoard("wc_sess_unknown"); err == nil {
		t.Fatal("a Session that is none was read")
	}
}

// touched counts the rows of messages that batches have written and taken away.
func (w *world) touched() (written, gone int) {
	w.t.Helper()
	db, err := sql.Open("sqlite", w.path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT count(*) FILTER (WHERE written = 1), count(*) FILTER (WHERE written = 0) FROM touched`).Scan(&written, &gone); err != nil {
		w.t.Fatal(err)
	}
	return written, gone
}

// A batch writes the messages that changed and takes away those that left.
func TestBoardIsWrittenByItsChanges(t *testing.T) {
	for _, target := range []int{0, 1} { // read for the batch, and held
		w := fullBoard(t, target)
		w.restart()
		w.exec(`CREATE TABLE touched (written INTEGER);
			CREATE TRIGGER wrote AFTER INSERT ON session_message BEGIN INSERT INTO touched VALUES (1); END;
			CREATE TRIGGER took AFTER DELETE ON session_message BEGIN INSERT INTO touched VALUES (0); END`)
		written, gone := 0, 0
		for i, c := range []struct {
			events        []event.Event
			written, gone int
		}{
			{[]event.Event{event.ContextUpdated{}}, 0, 0},
			{[]event.Event{event.MessageResolved{Message: messageNo(7)}}, 1, 0},
			{[]event.Event{event.MessageResolved{Message: messageNo(7)}}, 0, 0},
			{[]event.Event{event.MessagesAcknowledged{Messages: []event.MessageID{messageNo(1), messageNo(2)}}}, 1, 0},
			{[]event.Event{completion(1, 901, "k")}, 2, 1},
			{[]event.Event{post(902, event.MessageNote), post(903, event.MessageNote)}, 2, 2},
			{[]event.Event{event.MessageResolved{Message: messageNo(903)}, event.MessageResolved{Message: messageNo(902)}}, 2, 0},
		} {
			if target > 0 {
				if _, err := w.store.Target(testID); err != nil {
					t.Fatal(err)
				}
			}
			w.says(testID, c.events...)
			w.flush()
			written, gone = written+c.written, gone+c.gone
			if a, b := w.touched(); a != written || b != gone {
				t.Fatalf("target %d, step %d: %d written, %d gone, want %d and %d", target, i, a, b, written, gone)
			}
		}
		w.restart()
		if diff := w.check(); diff != "" || w.reread > 0 {
			t.Fatal(diff, w.reread)
		}
		_ = w.keeper.Close()
	}
}

// A Session that becomes hot while a batch writes it, without its messages, is written whole
// the next time.
func TestBoardOfAnEntryThatTheFileHasOvertaken(t *testing.T) {
	w := fullBoard(t, 0)
	w.restart()
	e, file := w.store.pin(testID)
	v, row, err := w.store.cold(file, testID)
	if err != nil {
		t.Fatal(err)
	}
	w.says(testID, event.ContextUpdated{})
	w.flush() // the file is ahead of v now
	w.store.mu.Lock()
	err = w.store.expand(e, v, row)
	w.store.keep(e)
	w.store.mu.Unlock()
	w.store.unpin(e)
	if err != nil {
		t.Fatal(err)
	}
	w.says(testID, post(901, event.MessageNote))
	w.flush()
	w.crash()
	if diff := w.check(); diff != "" || w.reread > 0 {
		t.Fatal(diff, w.reread)
	}
}

// What a caller may count on after a restart is there: the revision that a token was given for,
// what keys stand for, and what lost history is; from rows as from the log alone.
//
// Covers: RES-12, MSG-10, MSG-29
func TestBoardSurvives(t *testing.T) {
	w := fullBoard(t, 1)
	w.says(testID, completion(5, 901, "done")) // 1 leaves, and its key
	p := post(902, event.MessageNote)
	p.Key, p.Payload = "second", "payload"
	w.says(testID, p)
	want := w.truth[testID].Board
	body := EncodeView(must(w.store.View(testID))(t))
	drop := func() {
		if err := w.keeper.Close(); err != nil {
			t.Fatal(err)
		}
		w.exec(`UPDATE state_checkpoint SET fold = 'other'`)
		w.open()
	}
	for i, again := range []func(){w.restart, w.crash, drop, w.flush, w.crash} {
		again()
		v := must(w.store.View(testID))(t)
		b := v.Board
		if b.Revision != want.Revision || b.Low != want.Low || b.Low == 0 {
			t.Fatalf("life %d: revision %d, low %d", i, b.Revision, b.Low)
		}
		if _, ok := b.Delivered("delivery"); ok {
			t.Fatalf("life %d: the key of a message that has left", i)
		}
		if m, ok := b.Delivered("second"); !ok || m.ID != p.Message {
			t.Fatalf("life %d: a delivery key is forgotten", i)
		}
		if m, ok := b.CompletedUnder("done"); !ok || m.ResolvedBy != messageNo(901) || m.DonePayload != "payload done" {
			t.Fatalf("life %d: a completion is forgotten", i)
		}
		if len(b.Since(b.Revision)) != 0 || !slices.Equal(changed(b, want.Revision-1), []event.MessageID{p.Message}) {
			t.Fatalf("life %d: a delta differs", i)
		}
		if !bytes.Equal(body, EncodeView(v)) {
			t.Fatalf("life %d: the bytes differ", i)
		}
	}
	w.remove(testID)
	w.flush()
	db, err := sql.Open("sqlite", w.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := -1
	if err := db.QueryRowContext(context.Background(), `SELECT count(*) FROM session_message`).Scan(&n); err != nil || n != 0 {
		t.Fatal(fmt.Sprint(n, " messages of a removed Session are left"), err)
	}
}

// A row that is what was written, and was written without its tracking, is not admitted: the
// log has the message, or nobody.
//
// Covers: MSG-42, RES-08
func TestRowWithoutTrackingIsNotAdmitted(t *testing.T) {
	for _, strip := range []string{`"place":2,`, `"rev":2,`, `,"duty":2`} {
		w := three(t)
		id := sessionNo(0)
		m := must(w.truth[id].Board.Find(messageNo(2)))(t)
		row := string(appendMessage(nil, m))
		less := strings.Replace(row, strip, "", 1)
		if less == row {
			t.Fatalf("%s is not in %s", strip, row)
		}
		w.exec(`UPDATE session_message SET message = ?, hash = ? WHERE place = 2 AND session = (SELECT num FROM session WHERE id = ?)`,
			less, state.HashString(less)^ownHash(id), string(id))
		_, b, err := w.store.LoadBoard(id)
		if err != nil || w.reread != 1 {
			t.Fatalf("without %s: %v, %d read again", strip, err, w.reread)
		}
		if diff := cmp.Diff(plainly(w.truth[id].Board), plainly(b), empty); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The largest board there can be is carried, and comes back as it was.
func TestTheLargestBoardIsCarried(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := make([]rune, MaxMessageChars)
	h := began("a board")
	for n := range MaxMessages {
		for i := range text {
			text[i] = 0x20000 + rune(random.IntN(0xa6df)) // four bytes each
		}
		p := post(n+1, event.MessageNote)
		p.Text = string(text)
		h.commit(p)
	}
	v := h.view()
	if m := v.Board.list[7]; len(m.Text) != 4*MaxMessageChars {
		t.Fatalf("a message of %d bytes", len(m.Text))
	}
	form, body := Carry(v)
	parts, err := event.SplitState(form, body)
	if err != nil {
		t.Fatal(err)
	}
	var pruned View
	for i, p := range parts {
		pruned = pruned.Apply(uint64(1000+i), "h", event.Commit{Aggregate: event.SessionAggregate(testID),
			Version: v.Core.Version + 1 + uint64(i), At: h.at, Events: []event.Event{event.SessionCarried{Part: p}}})
	}
	if diff := cmp.Diff(plainly(v.Board), plainly(pruned.Board), empty); diff != "" || len(parts) < 2 {
		t.Fatalf("%d parts, %.300s", len(parts), diff)
	}
}
