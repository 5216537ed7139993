package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Queries is the handle that a model's rows are read through (state.Loader).
type Queries = *sql.DB

// Schema makes the tables (state.Model). A target is a Session's id or a Project's name.
func (r *Refs) Schema() []string {
	return []string{
		`CREATE TABLE access_ref (principal TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, target TEXT NOT NULL,
			pin TEXT NOT NULL, seq INTEGER NOT NULL, hash INTEGER NOT NULL, PRIMARY KEY (principal, kind, number)) WITHOUT ROWID`,
		`CREATE TABLE access_rift (seq INTEGER PRIMARY KEY, epoch TEXT NOT NULL, lost INTEGER NOT NULL,
			hash INTEGER NOT NULL)`,
		`CREATE INDEX access_ref_target ON access_ref (principal, kind, target, pin, number)`,
		`CREATE INDEX access_ref_gone ON access_ref (target)`,
		`CREATE TABLE access_last (principal TEXT NOT NULL, kind TEXT NOT NULL, number INTEGER NOT NULL, seq INTEGER NOT NULL,
			hash INTEGER NOT NULL, PRIMARY KEY (principal, kind)) WITHOUT ROWID`,
	}
}

// Load tells where the file is read, and reads the rifts, which are few (state.Loader). Without
// it everything stays in memory.
func (r *Refs) Load(ctx context.Context, db *sql.DB) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	file := rows{db}
	rifts, err := file.rifts(ctx)
	if err != nil {
		return err
	}
	r.file, r.rifts = file, rifts
	return nil
}

// hashRef is of one row of access_ref.
func hashRef(k key, name, pin string, seq uint64) int64 {
	return new(state.Fields).Text(k.principal).Text(string(k.kind)).Uint(k.number).Text(name).Text(pin).Uint(seq).Hash()
}

// hashLast is of one row of access_last.
func hashLast(o owner, m mark) int64 {
	return new(state.Fields).Text(o.principal).Text(string(o.kind)).Uint(m.number).Uint(m.seq).Hash()
}

// hashRift is of one row of access_rift.
func hashRift(x rift) int64 {
	lost := uint64(0)
	if x.lost {
		lost = 1
	}
	return new(state.Fields).Uint(x.seq).Text(x.epoch).Uint(lost).Hash()
}

// Reset forgets everything (state.Model).
func (r *Refs) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied, r.dirty, r.writing, r.rifts = 0, newChanges(), newChanges(), nil
}

// Capture hands out what changed (state.Model). What an earlier one held is in it too where
// that never got into the file.
func (r *Refs) Capture() state.Capture {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dirty.empty() && r.writing.empty() {
		return nil
	}
	w := newChanges()
	maps.Copy(w.refs, r.writing.refs)
	maps.Copy(w.refs, r.dirty.refs)
	maps.Copy(w.last, r.writing.last)
	for o, m := range r.dirty.last {
		w.last[o] = best(r.rifts, w.last[o], m)
	}
	w.rifts = append(append(w.rifts, r.writing.rifts...), r.dirty.rifts...)
	maps.Copy(w.gone, r.writing.gone)
	maps.Copy(w.gone, r.dirty.gone)
	maps.Copy(w.by, r.dirty.by)
	for h, n := range r.writing.by {
		if m, ok := w.by[h]; !ok || n < m {
			w.by[h] = n
		}
	}
	r.writing, r.dirty = w, newChanges()
	return capture{r, w, r.rifts}
}

// capture is the Refs' share of a batch.
type capture struct {
	r     *Refs
	w     changes
	rifts []rift // all
}

// Write implements state.Capture. A number in the file keeps its target (SES-11).
func (c capture) Write(ctx context.Context, tx *sql.Tx) error {
	for k, x := range c.w.refs {
		name, pin := x.target.name(), x.target.Pin
		if _, err := tx.ExecContext(ctx, `INSERT INTO access_ref VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
			SET seq = excluded.seq, hash = excluded.hash WHERE target = excluded.target AND pin = excluded.pin AND seq < excluded.seq`,
			k.principal, string(k.kind), int64(k.number), name, pin, int64(x.seq), hashRef(k, name, pin, x.seq)); err != nil {
			return fmt.Errorf("refs: %w", err)
		}
	}
	for id := range c.w.gone {
		if _, err := tx.ExecContext(ctx, `DELETE FROM access_ref WHERE target = ?`, string(id)); err != nil {
			return fmt.Errorf("refs: %w", err)
		}
	}
	for _, x := range c.w.rifts {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO access_rift VALUES (?, ?, ?, ?)`, int64(x.seq), x.epoch, x.lost, hashRift(x)); err != nil {
			return fmt.Errorf("rifts: %w", err)
		}
	}
	for o, m := range c.w.last {
		if err := c.writeLast(ctx, tx, o, m); err != nil {
			return fmt.Errorf("ref counters: %w", err)
		}
	}
	return nil
}

// writeLast never moves a counter back. One that is damaged stays: its readers are told.
func (c capture) writeLast(ctx context.Context, tx *sql.Tx, o owner, m mark) error {
	old, err := scanLast(o, tx.QueryRowContext(ctx, selectLast, o.principal, string(o.kind)))
	if errors.Is(err, state.ErrRow) {
		return nil
	}
	if err != nil {
		return err
	}
	if m = best(c.rifts, old, m); m == old {
		return nil
	}
	_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO access_last VALUES (?, ?, ?, ?, ?)`,
		o.principal, string(o.kind), int64(m.number), int64(m.seq), hashLast(o, m))
	return err
}

// Written implements state.Capture.
func (c capture) Written() {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	if c.r.file.on() {
		c.r.writing = newChanges()
	}
}

func (t Target) name() string {
	if t.Session != "" {
		return string(t.Session)
	}
	return t.Project.String()
}

func targetOf(k event.RefKind, name, pin string) (Target, bool) {
	t := Target{Pin: pin}
	if k == event.RefSession {
		t.Session = event.SessionID(name)
	} else {
		t.Project, _ = event.ParseProject(name)
	}
	return t, t.valid(k)
}

// rows reads the tables.
type rows struct{ db *sql.DB }

// on reports whether there is a file to read.
func (f rows) on() bool { return f.db != nil }

func (f rows) ref(ctx context.Context, k key) (Target, bool, error) {
	var name, pin string
	var seq, hash int64
	err := f.db.QueryRowContext(ctx, `SELECT target, pin, seq, hash FROM access_ref WHERE principal = ? AND kind = ? AND number = ?`,
		k.principal, string(k.kind), int64(k.number)).Scan(&name, &pin, &seq, &hash)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Target{}, false, nil
	case err != nil:
		return Target{}, false, err
	case hash != hashRef(k, name, pin, uint64(seq)):
		return Target{}, false, state.ErrRow
	}
	t, ok := targetOf(k.kind, name, pin)
	return t, ok, nil
}

// find checks the row that it found, so that a damaged one gives no number.
func (f rows) find(ctx context.Context, h held) (uint64, error) {
	var n int64
	err := f.db.QueryRowContext(ctx, `SELECT number FROM access_ref WHERE principal = ? AND kind = ? AND target = ? AND pin = ?
		ORDER BY number LIMIT 1`, h.principal, string(h.kind), h.target.name(), h.target.Pin).Scan(&n)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	}
	t, ok, err := f.ref(ctx, key{h.owner, uint64(n)})
	if err == nil && (!ok || t != h.target) {
		err = state.ErrRow
	}
	return uint64(n), err
}

const selectLast = `SELECT number, seq, hash FROM access_last WHERE principal = ? AND kind = ?`

func (f rows) last(ctx context.Context, o owner) (mark, error) {
	return scanLast(o, f.db.QueryRowContext(ctx, selectLast, o.principal, string(o.kind)))
}

// scanLast reads a counter; zero: there is none.
func scanLast(o owner, from *sql.Row) (mark, error) {
	var n, seq, hash int64
	switch err := from.Scan(&n, &seq, &hash); {
	case errors.Is(err, sql.ErrNoRows):
		return mark{}, nil
	case err != nil:
		return mark{}, err
	}
	m := mark{uint64(n), uint64(seq)}
	if hash != hashLast(o, m) {
		return mark{}, state.ErrRow
	}
	return m, nil
}

// rifts reads where other histories began.
func (f rows) rifts(ctx context.Context) (out []rift, err error) {
	rs, err := f.db.QueryContext(ctx, `SELECT seq, epoch, lost, hash FROM access_rift ORDER BY seq`)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	for rs.Next() {
		var x rift
		var seq, hash int64
		if err := rs.Scan(&seq, &x.epoch, &x.lost, &hash); err != nil {
			return nil, err
		}
		if x.seq = uint64(seq); hash != hashRift(x) {
			return nil, state.ErrRow
		}
		out = append(out, x)
	}
	return out, rs.Err()
}

// any gives some number that pins something; where there is none fn is not called.
func (f rows) any(ctx context.Context, fn func(key)) error {
	var principal, kind string
	var n int64
	err := f.db.QueryRowContext(ctx, `SELECT principal, kind, number FROM access_ref LIMIT 1`).Scan(&principal, &kind, &n)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		fn(key{owner{principal, event.RefKind(kind)}, uint64(n)})
	}
	return err
}

// owners gives the principals whose fingerprints begin so and that have numbers of a kind.
func (f rows) owners(ctx context.Context, prefix string, kind event.RefKind, fn func(principal string)) error {
	rs, err := f.db.QueryContext(ctx, `SELECT principal FROM access_last WHERE principal >= ? AND principal < ? AND kind = ?`, prefix, prefix+"~", string(kind))
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var principal string
		if err := rs.Scan(&principal); err != nil {
			return err
		}
		fn(principal)
	}
	return rs.Err()
}

// page adds the file's rows of a page; where both hold one, the file's stays.
func (f rows) page(ctx context.Context, prefix string, kind event.RefKind, from, to uint64, refs map[key]row) error {
	rs, err := f.db.QueryContext(ctx, `SELECT principal, number, target, pin, seq, hash FROM access_ref
		WHERE principal >= ? AND principal < ? AND kind = ? AND number BETWEEN ? AND ?`, prefix, prefix+"~", string(kind), int64(from), int64(to))
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var principal, name, pin string
		var n, seq, hash int64
		if err := rs.Scan(&principal, &n, &name, &pin, &seq, &hash); err != nil {
			return err
		}
		k := key{owner{principal, kind}, uint64(n)}
		if hash != hashRef(k, name, pin, uint64(seq)) {
			return state.ErrRow
		}
		if t, ok := targetOf(kind, name, pin); ok {
			refs[k] = row{t, uint64(seq)}
		}
	}
	return rs.Err()
}

// before gives every number of the file whose witness lies before seq, and its target's name.
func (f rows) before(ctx context.Context, seq uint64, fn func(key, string)) error {
	rs, err := f.db.QueryContext(ctx, `SELECT principal, kind, number, target FROM access_ref WHERE seq < ?`, int64(seq))
	if err != nil {
		return err
	}
	defer rs.Close()
	for rs.Next() {
		var principal, kind, name string
		var n int64
		if err := rs.Scan(&principal, &kind, &n, &name); err != nil {
			return err
		}
		fn(key{owner{principal, event.RefKind(kind)}, uint64(n)}, name)
	}
	return rs.Err()
}
