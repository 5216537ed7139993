package access

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Schema makes the table (state.Model). It names the form of a body: another one is another
// table, and the file is made again.
func (t *Tokens) Schema() []string {
	return []string{fmt.Sprintf(`CREATE TABLE access_token /* form %d */
		(id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID`, tokensForm)}
}

func tokenSum(id, body string) int64 { return new(state.Fields).Text(id).Text(body).Hash() }

// Load reads what the file holds (state.Loader). Errors: it cannot be read, or a row is
// damaged: then nothing is taken, since a revocation could be what is missing.
func (t *Tokens) Load(ctx context.Context, db *sql.DB) error {
	rs, err := db.QueryContext(ctx, `SELECT id, body, sum FROM access_token`)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	defer rs.Close()
	var all []Token
	for rs.Next() {
		var id, body string
		var sum int64
		if err := rs.Scan(&id, &body, &sum); err != nil {
			return fmt.Errorf("tokens: %w", err)
		}
		var k Token
		if sum != tokenSum(id, body) || json.Unmarshal([]byte(body), &k) != nil || string(k.ID) != id {
			return fmt.Errorf("tokens: %w", state.ErrRow)
		}
		all = append(all, k)
	}
	if err := rs.Err(); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fill(all)
	t.written = t.version
	return nil
}

// Reset forgets everything (state.Model).
func (t *Tokens) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applied, t.gather, t.written = 0, event.Gather{}, 0
	t.fill(nil)
}

// Capture hands out the whole where something changed: it is small (state.Model).
func (t *Tokens) Capture() state.Capture {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.version == t.written {
		return nil
	}
	return tokenCapture{t, t.list(), t.version}
}

type tokenCapture struct {
	t       *Tokens
	all     []Token
	version uint64
}

// Write implements state.Capture.
func (c tokenCapture) Write(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM access_token`); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	for _, k := range c.all {
		body, err := json.Marshal(k)
		if err != nil {
			return fmt.Errorf("tokens: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO access_token VALUES (?, ?, ?)`, string(k.ID), string(body),
			tokenSum(string(k.ID), string(body))); err != nil {
			return fmt.Errorf("tokens: %w", err)
		}
	}
	return nil
}

// Written implements state.Capture.
func (c tokenCapture) Written() {
	c.t.mu.Lock()
	defer c.t.mu.Unlock()
	c.t.written = max(c.t.written, c.version)
}
