package window

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Schema makes the table (state.Model).
func (s *Store) Schema() []string {
	return []string{`CREATE TABLE window_row (aggregate TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL,
		hash INTEGER NOT NULL, PRIMARY KEY (aggregate, kind, id)) WITHOUT ROWID`}
}

func hashOf(p place, body string) int64 {
	return new(state.Fields).Text(p.aggregate).Text(p.kind).Text(p.id).Text(body).Hash()
}

// Load reads what the file holds (state.Loader). A row that is not what was written is an error.
func (s *Store) Load(ctx context.Context, db *sql.DB) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := db.QueryContext(ctx, `SELECT aggregate, kind, id, body, hash FROM window_row ORDER BY aggregate, kind, CAST(id AS INTEGER)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	parts, last := map[string][]event.CarriedPart{}, map[string]uint64{}
	for rows.Next() {
		var p place
		var body string
		var hash int64
		if err := rows.Scan(&p.aggregate, &p.kind, &p.id, &body, &hash); err != nil {
			return err
		}
		if hash != hashOf(p, body) {
			return fmt.Errorf("windows: %w", state.ErrRow)
		}
		e := s.books[p.aggregate]
		e.book.read(p.kind, []byte(body))
		s.books[p.aggregate] = e
		var part event.CarriedPart
		if p.kind == kindPart && json.Unmarshal([]byte(body), &part) == nil {
			parts[p.aggregate] = append(parts[p.aggregate], part)
			last[p.aggregate], _ = strconv.ParseUint(p.id, 10, 64)
		}
	}
	for id, e := range s.books {
		e.book.sort()
		if len(parts[id]) > 0 {
			e.carried = event.GatherOf(parts[id], last[id]+1)
		}
		s.books[id] = e
	}
	s.dirty = map[place]bool{}
	return rows.Err()
}

// Reset forgets everything (state.Model).
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.books = 0, map[string]entry{}
	s.dirty, s.writing = map[place]bool{}, map[place]bool{}
}

// Capture hands out what changed (state.Model). What an earlier one held is in it too where
// that never got into the file.
func (s *Store) Capture() state.Capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.writing, s.dirty)
	s.dirty = map[place]bool{}
	if len(s.writing) == 0 {
		return nil
	}
	c := capture{s, map[place]any{}}
	held := map[string]map[row]any{}
	for p := range s.writing {
		if held[p.aggregate] == nil {
			held[p.aggregate] = s.books[p.aggregate].bodies()
		}
		c.rows[p] = held[p.aggregate][p.row]
	}
	return c
}

// capture is the Store's share of a batch: a row to put, or nil where it is gone.
type capture struct {
	s    *Store
	rows map[place]any
}

// Write implements state.Capture.
func (c capture) Write(ctx context.Context, tx *sql.Tx) error {
	for p, body := range c.rows {
		var err error
		if body == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM window_row WHERE aggregate = ? AND kind = ? AND id = ?`, p.aggregate, p.kind, p.id)
		} else {
			var text []byte
			if text, err = marshal(body); err == nil {
				_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO window_row VALUES (?, ?, ?, ?, ?)`, p.aggregate, p.kind, p.id,
					string(text), hashOf(p, string(text)))
			}
		}
		if err != nil {
			return fmt.Errorf("windows: %w", err)
		}
	}
	return nil
}

// Written implements state.Capture.
func (c capture) Written() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.writing = map[place]bool{}
}
