package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"webcodex/projections/state"
)

// table is what the ledger has to write to state.db.
type table struct {
	dirty bool
	marks []Mark // new ones
	from  uint64 // marks before it are dropped
	again bool   // a capture was taken and is not in the file yet
}

// Schema implements state.Model.
func (l *Ledger) Schema() []string {
	return []string{
		`CREATE TABLE history_facts (one INTEGER PRIMARY KEY CHECK (one = 1), body TEXT NOT NULL, hash INTEGER NOT NULL)`,
		`CREATE TABLE history_mark (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, hash INTEGER NOT NULL)`,
	}
}

func hashFacts(body string) int64 { return new(state.Fields).Text(body).Hash() }

func hashMark(seq, at int64) int64 {
	return new(state.Fields).Uint(uint64(seq)).Uint(uint64(at)).Hash()
}

// Load implements state.Loader.
func (l *Ledger) Load(ctx context.Context, db *sql.DB) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var body string
	var hash int64
	err := db.QueryRowContext(ctx, `SELECT body, hash FROM history_facts`).Scan(&body, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var f Facts
	if hash != hashFacts(body) || json.Unmarshal([]byte(body), &f) != nil {
		return state.ErrRow
	}
	rows, err := db.QueryContext(ctx, `SELECT seq, at, hash FROM history_mark ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var marks []Mark
	for rows.Next() {
		var seq, at, hash int64
		if err := rows.Scan(&seq, &at, &hash); err != nil {
			return err
		}
		if hash != hashMark(seq, at) {
			return state.ErrRow
		}
		marks = append(marks, Mark{uint64(seq), time.UnixMilli(at).UTC()})
	}
	l.facts, l.marks = f, marks
	return rows.Err()
}

// Reset implements state.Model.
func (l *Ledger) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts, l.marks, l.table = Facts{}, nil, table{}
}

// Capture implements state.Model.
func (l *Ledger) Capture() state.Capture {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.table.dirty && !l.table.again {
		return nil
	}
	body, err := json.Marshal(l.facts)
	if err != nil {
		panic("facts are plain values: " + err.Error())
	}
	c := &capture{l: l, body: string(body), marks: l.table.marks, from: l.table.from}
	l.table.dirty, l.table.again = false, true
	return c
}

type capture struct {
	l     *Ledger
	body  string
	marks []Mark
	from  uint64
}

// Write implements state.Capture.
func (c *capture) Write(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO history_facts (one, body, hash) VALUES (1, ?, ?)`, c.body, hashFacts(c.body))
	for _, m := range c.marks {
		if err != nil {
			return err
		}
		seq, at := int64(m.Seq), m.At.UnixMilli()
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO history_mark (seq, at, hash) VALUES (?, ?, ?)`, seq, at, hashMark(seq, at))
	}
	if err == nil && c.from > 0 {
		_, err = tx.ExecContext(ctx, `DELETE FROM history_mark WHERE seq < ?`, int64(c.from))
	}
	return err
}

// Written implements state.Capture.
func (c *capture) Written() {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	t := &c.l.table
	t.marks, t.again = t.marks[len(c.marks):], false
	if t.from == c.from {
		t.from = 0
	}
}
