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
func (r *Runners) Schema() []string {
	return []string{fmt.Sprintf(`CREATE TABLE access_runner /* form %d */
		(id TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID`, runnersForm)}
}

// Load reads what the file holds (state.Loader). Errors: it cannot be read, or a row is damaged:
// then nothing is taken, since a revocation could be what is missing.
func (r *Runners) Load(ctx context.Context, db *sql.DB) error {
	rs, err := db.QueryContext(ctx, `SELECT id, body, sum FROM access_runner`)
	if err != nil {
		return fmt.Errorf("runners: %w", err)
	}
	defer rs.Close()
	var all []Runner
	for rs.Next() {
		var id, body string
		var sum int64
		if err := rs.Scan(&id, &body, &sum); err != nil {
			return fmt.Errorf("runners: %w", err)
		}
		var k Runner
		if sum != tokenSum(id, body) || json.Unmarshal([]byte(body), &k) != nil || string(k.ID) != id {
			return fmt.Errorf("runners: %w", state.ErrRow)
		}
		all = append(all, k)
	}
	if err := rs.Err(); err != nil {
		return fmt.Errorf("runners: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fill(all)
	r.written = r.version
	return nil
}

// Reset forgets everything (state.Model).
func (r *Runners) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied, r.gather, r.written = 0, event.Gather{}, 0
	r.fill(nil)
}

// Capture hands out the whole where something changed: it is small (state.Model).
func (r *Runners) Capture() state.Capture {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.version == r.written {
		return nil
	}
	return runnerCapture{r, r.list(), r.version}
}

type runnerCapture struct {
	r       *Runners
	all     []Runner
	version uint64
}

// Write implements state.Capture.
func (c runnerCapture) Write(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM access_runner`); err != nil {
		return fmt.Errorf("runners: %w", err)
	}
	for _, k := range c.all {
		body, err := json.Marshal(k)
		if err != nil {
			return fmt.Errorf("runners: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO access_runner VALUES (?, ?, ?)`, string(k.ID), string(body),
			tokenSum(string(k.ID), string(body))); err != nil {
			return fmt.Errorf("runners: %w", err)
		}
	}
	return nil
}

// Written implements state.Capture.
func (c runnerCapture) Written() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.written = max(c.r.written, c.version)
}
