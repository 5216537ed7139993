package project

import (
	"context"
	"database/sql"
	"fmt"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Schema implements state.Model.
func (s *Store) Schema() []string {
	return []string{`CREATE TABLE project (client TEXT NOT NULL, project TEXT NOT NULL, name TEXT NOT NULL, root TEXT NOT NULL,
		hash INTEGER NOT NULL, PRIMARY KEY (client, project)) WITHOUT ROWID`}
}

func hash(p event.ProjectRegistered) int64 {
	return new(state.Fields).Text(string(p.Project.Client)).Text(string(p.Project.Project)).Text(p.Name).Text(p.Root).Hash()
}

// Load implements state.Loader: Projects are few and stay in memory.
func (s *Store) Load(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, `SELECT client, project, name, root, hash FROM project`)
	if err != nil {
		return err
	}
	defer rows.Close()
	known := map[event.ProjectRef]event.ProjectRegistered{}
	for rows.Next() {
		var p event.ProjectRegistered
		var h int64
		if err := rows.Scan(&p.Project.Client, &p.Project.Project, &p.Name, &p.Root, &h); err != nil {
			return err
		}
		if h != hash(p) {
			return fmt.Errorf("project: %w", state.ErrRow)
		}
		known[p.Project] = p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
	return rows.Err()
}

// Reset implements state.Model.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.known, s.dirty = 0, map[event.ProjectRef]event.ProjectRegistered{}, map[event.ProjectRef]event.ProjectRegistered{}
}

// Capture implements state.Model.
func (s *Store) Capture() state.Capture {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.dirty) == 0 {
		return nil
	}
	c := &capture{s: s}
	for _, p := range s.dirty {
		c.put = append(c.put, p)
	}
	return c
}

// capture is the Projects' share of a batch.
type capture struct {
	s   *Store
	put []event.ProjectRegistered
}

// Write implements state.Capture.
func (c *capture) Write(ctx context.Context, tx *sql.Tx) error {
	for _, p := range c.put {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO project (client, project, name, root, hash) VALUES (?, ?, ?, ?, ?)`,
			string(p.Project.Client), string(p.Project.Project), p.Name, p.Root, hash(p)); err != nil {
			return fmt.Errorf("project: %w", err)
		}
	}
	return nil
}

// Written implements state.Capture.
func (c *capture) Written() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, p := range c.put {
		if c.s.dirty[p.Project] == p {
			delete(c.s.dirty, p.Project)
		}
	}
}
