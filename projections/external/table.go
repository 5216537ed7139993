package external

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Schema implements state.Model.
func (s *Reports) Schema() []string {
	return []string{`CREATE TABLE external_report (session TEXT NOT NULL, adapter TEXT NOT NULL, event TEXT NOT NULL, client TEXT NOT NULL,
		project TEXT NOT NULL, tool TEXT NOT NULL, status TEXT NOT NULL, exit_code INTEGER, payload TEXT NOT NULL, received INTEGER NOT NULL,
		hash INTEGER NOT NULL, PRIMARY KEY (session, adapter, event)) WITHOUT ROWID`}
}

// hash is of a report's row.
func (r Report) hash() int64 {
	f := new(state.Fields).Text(string(r.Session)).Text(r.Adapter).Text(r.Event).Text(string(r.Project.Client)).Text(string(r.Project.Project)).
		Text(r.Tool).Text(r.Status).Text(r.Payload).Uint(uint64(r.Received.UnixMilli()))
	if r.ExitCode != nil {
		f.Uint(uint64(*r.ExitCode))
	}
	return f.Hash()
}

// Load implements state.Loader.
func (s *Reports) Load(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT session, adapter, event, client, project, tool, status, exit_code, payload, received, hash FROM external_report`)
	if err != nil {
		return err
	}
	defer rows.Close()
	of, total := map[event.SessionID][]Report{}, 0
	for rows.Next() {
		var r Report
		var exit sql.Null[int32]
		var received, hash int64
		if err := rows.Scan(&r.Session, &r.Adapter, &r.Event, &r.Project.Client, &r.Project.Project, &r.Tool, &r.Status, &exit, &r.Payload, &received, &hash); err != nil {
			return err
		}
		if r.Received = time.UnixMilli(received).UTC(); exit.Valid {
			r.ExitCode = &exit.V
		}
		if hash != r.hash() {
			return fmt.Errorf("external reports: %w", state.ErrRow)
		}
		of[r.Session] = append(of[r.Session], r)
		total++
	}
	for _, list := range of {
		slices.SortFunc(list, order)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of, s.total, s.dirty = of, total, changes{}
	return rows.Err()
}

// Reset implements state.Model.
func (s *Reports) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.of, s.total = 0, map[event.SessionID][]Report{}, 0
	s.dirty, s.writing = changes{}, changes{}
}

// Capture implements state.Model. What an earlier one held is in it too where that never got
// into the file.
func (s *Reports) Capture() state.Capture {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) == 0 && len(s.writing) == 0 {
		return nil
	}
	s.writing, s.dirty = s.writing.merged(s.dirty), changes{}
	return capture{s, s.writing}
}

// capture is the reports' share of a batch.
type capture struct {
	s *Reports
	w changes
}

// Write implements state.Capture.
func (c capture) Write(ctx context.Context, tx *sql.Tx) error {
	for id, x := range c.w {
		if x.all {
			if _, err := tx.ExecContext(ctx, `DELETE FROM external_report WHERE session = ?`, string(id)); err != nil {
				return fmt.Errorf("external reports: %w", err)
			}
		}
		for _, r := range x.rows {
			var exit sql.Null[int32]
			if r.ExitCode != nil {
				exit = sql.Null[int32]{V: *r.ExitCode, Valid: true}
			}
			if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO external_report VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, string(r.Session), r.Adapter, r.Event,
				string(r.Project.Client), string(r.Project.Project), r.Tool, r.Status, exit, r.Payload, r.Received.UnixMilli(), r.hash()); err != nil {
				return fmt.Errorf("external reports: %w", err)
			}
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
