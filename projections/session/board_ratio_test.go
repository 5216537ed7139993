package session

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

var measuredText = strings.TrimSpace(strings.Repeat("what a window tells another one ", 20))

// saidCommit is a commit of one event that holds the text: a message, or what a bare commit is.
func saidCommit(id event.SessionID, version uint64, message bool) event.Commit {
	c := callCommit(id, version)
	if version == 1 {
		return c
	}
	c.Events = []event.Event{event.InstructionAccepted{Text: measuredText, Continuation: "resumed", Mode: event.ModeNormal, Transport: "mcp"}}
	if message {
		c.Events = []event.Event{event.MessagePosted{Message: messageNo(int(version)), Kind: event.MessageNote, Text: measuredText,
			Priority: event.PriorityNormal}}
	}
	return c
}

// talks feeds n commits of one event, one batch each eight, and gives the time of feeding and
// writing.
func (f *filled) talks(t testing.TB, id event.SessionID, from uint64, n int, message bool) time.Duration {
	began := time.Now()
	for i := range n {
		if _, err := f.store.Target(id); err != nil {
			t.Fatal(err)
		}
		f.feed(saidCommit(id, from+uint64(i), message))
		if i%8 == 7 {
			f.flush(t)
		}
	}
	return time.Since(began)
}

func selectBoard(file *tables, id event.SessionID) error {
	ctx := context.Background()
	tx, err := file.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var r stored
	var hash int64
	if err := tx.StmtContext(ctx, file.row).QueryRowContext(ctx, string(id)).
		Scan(&r.num, &r.id, &r.authority, &r.client, &r.project, &r.life, &r.updated, &r.busy, &r.core, &hash); err != nil {
		return err
	}
	rows, err := tx.StmtContext(ctx, file.messages).QueryContext(ctx, r.num)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var place int64
		var text string
		if err := rows.Scan(&place, &text, &hash); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A message costs the read models what any commit costs, and a board what its rows cost to read.
func TestRatioBoard(t *testing.T) {
	bench.Skip(t)
	const batch = 256
	f := newFilled(t)
	// Two Sessions of one age: the tail and the board of each are full.
	next := func(id event.SessionID, message bool) func() time.Duration {
		version := uint64(0)
		feed := func(n int, message bool) {
			for range n {
				version++
				f.feed(saidCommit(id, version, message))
			}
			f.flush(t)
		}
		feed(MaxTail+10, false)
		feed(MaxMessages+10, true)
		return func() time.Duration {
			took := f.talks(t, id, version+1, batch, message)
			version += batch
			return took
		}
	}
	bench.Run(t, bench.Comparison{Name: "3 posting a message vs a bare commit of the same Session, read models", Bar: 1.3, AtMost: true,
		Ours: next(sessionNo(1), true), Yardstick: next(sessionNo(2), false)})

	cold := newFilled(t)
	var ids []event.SessionID
	for n := range 4 * rounds {
		ids = append(ids, sessionNo(n))
		for v := range uint64(MaxMessages + 1) {
			cold.feed(saidCommit(ids[n], v+1, true))
		}
	}
	cold.chill(t)
	each := func(read func(event.SessionID) error) func() time.Duration {
		return func() time.Duration {
			began := time.Now()
			for _, id := range ids {
				if err := read(id); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(began)
		}
	}
	bench.Run(t, bench.Comparison{Name: "3 reading a full board of a cold Session vs the SQL alone", Bar: 3, AtMost: true,
		Ours: each(func(id event.SessionID) error {
			_, b, err := cold.store.LoadBoard(id)
			if err == nil && b.Len() != MaxMessages {
				err = errBoard
			}
			return err
		}),
		Yardstick: each(func(id event.SessionID) error { return selectBoard(cold.store.file, id) })})
}
