package retention

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Schema makes the tables (state.Model). An ordinal is a decimal text: it may be greater than
// the file's integers.
func (s *Tombstones) Schema() []string {
	return []string{
		`CREATE TABLE retention_tombstone (session TEXT PRIMARY KEY, authority TEXT NOT NULL, principal TEXT NOT NULL,
			incarnation TEXT NOT NULL, expiry_ordinal TEXT NOT NULL, hash INTEGER NOT NULL) WITHOUT ROWID`,
		`CREATE TABLE retention_part (version INTEGER PRIMARY KEY, part TEXT NOT NULL)`,
	}
}

// hash is of a tombstone's row.
func (t Tombstone) hash() int64 {
	return new(state.Fields).Text(string(t.Session)).Text(t.Authority).Text(t.Principal).Text(t.Incarnation).Uint(t.Ordinal).Hash()
}

// Load reads what the file holds (state.Loader). A row that is not what was written is an
// error; one that was written malformed drops itself only (RES-04).
func (s *Tombstones) Load(ctx context.Context, db *sql.DB) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := db.QueryContext(ctx, `SELECT session, authority, principal, incarnation, expiry_ordinal, hash FROM retention_tombstone`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t Tombstone
		var ordinal string
		var hash int64
		if err := rows.Scan(&t.Session, &t.Authority, &t.Principal, &t.Incarnation, &ordinal, &hash); err != nil {
			return err
		}
		if t.Ordinal, err = strconv.ParseUint(ordinal, 10, 64); err != nil || hash != t.hash() {
			return fmt.Errorf("tombstones: %w", state.ErrRow)
		}
		s.add(t)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if s.carried, err = loadParts(ctx, db); err != nil {
		return err
	}
	s.dirty = changes{}
	return nil
}

// loadParts reads the parts of a carried state whose last one had not come yet.
func loadParts(ctx context.Context, db *sql.DB) (event.Gather, error) {
	rows, err := db.QueryContext(ctx, `SELECT version, part FROM retention_part ORDER BY version`)
	if err != nil {
		return event.Gather{}, err
	}
	defer rows.Close()
	var parts []event.CarriedPart
	var last int64
	for rows.Next() {
		var p event.CarriedPart
		var text string
		if err := rows.Scan(&last, &text); err != nil {
			return event.Gather{}, err
		}
		if json.Unmarshal([]byte(text), &p) == nil {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return event.Gather{}, rows.Err()
	}
	return event.GatherOf(parts, uint64(last)+1), rows.Err()
}

// Reset forgets everything (state.Model).
func (s *Tombstones) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.order, s.by, s.carried = 0, nil, map[event.SessionID]Tombstone{}, event.Gather{}
	s.dirty, s.writing = changes{}, changes{}
}

// Capture hands out what changed (state.Model). What an earlier one held is in it too where
// that never got into the file.
func (s *Tombstones) Capture() state.Capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty.empty() && s.writing.empty() {
		return nil
	}
	s.writing, s.dirty = s.writing.merged(s.dirty), changes{}
	parts, next := s.carried.Parts()
	return capture{s, s.writing, parts, next}
}

// capture is the Tombstones' share of a batch.
type capture struct {
	s     *Tombstones
	w     changes
	parts []event.CarriedPart
	next  uint64
}

// Write implements state.Capture.
func (c capture) Write(ctx context.Context, tx *sql.Tx) error {
	for id, t := range c.w.rows {
		var err error
		if t == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM retention_tombstone WHERE session = ?`, string(id))
		} else {
			_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO retention_tombstone VALUES (?, ?, ?, ?, ?, ?)`,
				string(t.Session), t.Authority, t.Principal, t.Incarnation, strconv.FormatUint(t.Ordinal, 10), t.hash())
		}
		if err != nil {
			return fmt.Errorf("tombstones: %w", err)
		}
	}
	if !c.w.parts {
		return nil
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM retention_part`); err != nil {
		return fmt.Errorf("tombstones: %w", err)
	}
	for i, p := range c.parts {
		text, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("tombstones: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO retention_part VALUES (?, ?)`, int64(c.next)-int64(len(c.parts)-i), string(text)); err != nil {
			return fmt.Errorf("tombstones: %w", err)
		}
	}
	return nil
}

// Written implements state.Capture.
func (c capture) Written() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.writing = changes{}
}
