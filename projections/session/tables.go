package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// schema of a Session's rows. What lists pick by lies in columns; the core and each tail event
// are one text of their own, in the forms of codec.go.
//
// Each commit moves its Session in every index that has its time. There is one such index for
// all, by the shelf that the Session stands on (shelf.go), and one for those whose tail is full.
var schema = []string{
	`CREATE TABLE session (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, authority TEXT NOT NULL, client TEXT NOT NULL,
		project TEXT NOT NULL, lifecycle TEXT NOT NULL, updated INTEGER NOT NULL, busy INTEGER NOT NULL, core TEXT NOT NULL,
		hash INTEGER NOT NULL, shelf INTEGER NOT NULL, overflowed INTEGER NOT NULL, rested INTEGER NOT NULL)`,
	`CREATE INDEX session_shelf_order ON session (shelf, updated DESC, id)`,
	`CREATE INDEX session_overflowed ON session (updated DESC, id) WHERE overflowed = 1`,
	`CREATE INDEX session_rested ON session (rested, id) WHERE rested > 0`,
	`CREATE INDEX session_busy ON session (id) WHERE busy = 1`,
	// A full tail is a ring: the newest event takes the row of the oldest (slotOf), so that a call
	// of an old Session writes as few pages as one of a young one.
	`CREATE TABLE session_tail (session INTEGER NOT NULL, slot INTEGER NOT NULL, event TEXT NOT NULL, hash INTEGER NOT NULL,
		PRIMARY KEY (session, slot)) WITHOUT ROWID`,
	// A message has its place on the board; session.core has the revision and how many there are.
	`CREATE TABLE session_message (session INTEGER NOT NULL, place INTEGER NOT NULL, message TEXT NOT NULL, hash INTEGER NOT NULL,
		PRIMARY KEY (session, place)) WITHOUT ROWID`,
	`CREATE TABLE session_ended (execution TEXT PRIMARY KEY, session INTEGER NOT NULL) WITHOUT ROWID`,
	`CREATE TABLE session_shelf (num INTEGER PRIMARY KEY, authority TEXT NOT NULL, client TEXT NOT NULL, project TEXT NOT NULL,
		lifecycle TEXT NOT NULL, sessions INTEGER NOT NULL, hash INTEGER NOT NULL)`,
}

// Model is the Store as a part of state.db.
func (s *Store) Model() state.Model { return model{s} }

type model struct{ s *Store }

func (m model) Apply(seq uint64, hash string, c event.Commit) { m.s.Apply(seq, hash, c) }
func (m model) Schema() []string                              { return schema }

// Load implements state.Loader. Nothing is read yet: Sessions begin cold, each by itself
// (SES-30).
func (m model) Load(ctx context.Context, db *sql.DB) error {
	t := &tables{db: db}
	for stmt, query := range t.statements() {
		var err error
		if *stmt, err = db.PrepareContext(ctx, query); err != nil {
			return err
		}
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.file = t
	return nil
}

// Reset implements state.Model.
func (m model) Reset() {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.applied = 0
	m.s.held, m.s.dirty = map[event.SessionID]*entry{}, map[event.SessionID]*entry{}
	m.s.hot = newResidency(m.s.hot.target)
}

// tables reads the rows.
type tables struct {
	db                     *sql.DB
	row, tail, busy, ended *sql.Stmt
	messages               *sql.Stmt
	// Of shelf.go.
	newest, rested, on, overflowed, shelf, shelves *sql.Stmt
}

// statements are all that readers ask the file but countRows, which only damage makes necessary.
// None goes through all Sessions.
func (t *tables) statements() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&t.row:      `SELECT num, ` + rowColumns + ` FROM session WHERE id = ?`,
		&t.tail:     `SELECT event, hash FROM session_tail WHERE session = ? ORDER BY slot`,
		&t.messages: selectMessages,
		&t.busy:     `SELECT id FROM session WHERE busy = 1 ORDER BY id`,
		&t.ended: `SELECT session.id FROM session_ended JOIN session ON num = session_ended.session
			WHERE execution = ?`,
		&t.newest:     `SELECT updated, id FROM session WHERE shelf = ? ORDER BY updated DESC, id LIMIT ?`,
		&t.rested:     `SELECT rested, id FROM session WHERE rested > 0 ORDER BY rested, id LIMIT ?`,
		&t.on:         `SELECT shelf, updated FROM session WHERE id = ?`,
		&t.overflowed: `SELECT id FROM session WHERE overflowed = 1 AND updated > ? LIMIT ?`,
		&t.shelf:      `SELECT ` + shelfColumns + ` FROM session_shelf WHERE num = ?`,
		&t.shelves:    `SELECT ` + shelfColumns + ` FROM session_shelf`,
	}
}

const rowColumns = `id, authority, client, project, lifecycle, updated, busy, core, hash`

// stored is a row of the table session.
type stored struct {
	num                                  int64
	id, authority, client, project, life string
	updated                              int64
	busy                                 bool
	core                                 string
	overflowed                           bool
	rested                               uint64
}

func rowFor(v View) stored {
	c := v.Core
	return stored{id: string(c.ID), authority: c.Authority, client: string(c.Project.Client), project: string(c.Project.Project),
		life: string(c.Lifecycle), updated: c.UpdatedAt.UnixMilli(), busy: len(c.Open)+len(c.Jobs) > 0,
		core: string(AppendCore(make([]byte, 0, 2048), v)), overflowed: c.Observed > MaxTail, rested: c.Rested}
}

// picked are the columns that only lists pick by, beyond rowColumns. The rows that they give
// are compared again.
func (r *stored) picked() []any {
	return []any{shelf{r.authority, r.client, r.project, Lifecycle(r.life)}.num(), r.overflowed, int64(r.rested)}
}

// columns are the values of rowColumns.
func (r *stored) columns() []any {
	return append(make([]any, 0, 13), r.id, r.authority, r.client, r.project, r.life, r.updated, r.busy, r.core, r.hash())
}

func (r *stored) hash() int64 {
	busy := uint64(0)
	if r.busy {
		busy = 1
	}
	return new(state.Fields).Text(r.id).Text(r.authority).Text(r.client).Text(r.project).Text(r.life).Uint(uint64(r.updated)).
		Uint(busy).Text(r.core).Hash()
}

// scanRow reads a row and checks it against its hash, its id and its own core; false: there
// is none.
func scanRow(id event.SessionID, from *sql.Row) (num int64, v View, ok bool, err error) {
	var r stored
	var hash int64
	err = from.Scan(&r.num, &r.id, &r.authority, &r.client, &r.project, &r.life, &r.updated, &r.busy, &r.core, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, View{}, false, nil
	}
	if err != nil {
		return 0, View{}, false, err
	}
	if hash != r.hash() || r.id != string(id) {
		return r.num, View{}, false, state.ErrRow
	}
	if v, err = decodeCore(r.core); err != nil {
		return r.num, View{}, false, errors.Join(state.ErrRow, err)
	}
	return r.num, v, true, nil
}

// core reads a Session without its tail; the empty View: there is no row.
func (t *tables) core(ctx context.Context, id event.SessionID) (Core, uint64, string, error) {
	_, v, _, err := scanRow(id, t.row.QueryRowContext(ctx, string(id)))
	return v.Core, v.Seq, v.Hash, err
}

// view reads a Session's rows as of one moment; num 0: there are none.
func (t *tables) view(ctx context.Context, id event.SessionID) (num int64, v View, err error) {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return 0, View{}, err
	}
	defer tx.Rollback()
	num, v, ok, err := scanRow(id, tx.StmtContext(ctx, t.row).QueryRowContext(ctx, string(id)))
	if err != nil || !ok {
		return 0, View{}, err
	}
	rows, err := tx.StmtContext(ctx, t.tail).QueryContext(ctx, num)
	if err != nil {
		return 0, View{}, err
	}
	defer rows.Close()
	// The rows are a ring, and each item knows its place.
	items, mine := make([]Item, min(v.Core.Observed, MaxTail)), ownHash(id)
	first, read := v.Core.Observed-uint64(len(items))+1, 0
	for rows.Next() {
		var text string
		var hash int64
		if err := rows.Scan(&text, &hash); err != nil {
			return 0, View{}, err
		}
		it, err := scanItem(text, hash, mine)
		if err != nil {
			return 0, View{}, err
		}
		place := it.Seq - first // of one before the first it is none either
		if place >= uint64(len(items)) {
			return 0, View{}, errors.Join(state.ErrRow, errGap)
		}
		items[place], read = it, read+1
	}
	if err := rows.Err(); err != nil {
		return 0, View{}, err
	}
	if v.Tail, err = NewTail(items, v.Core.Observed); err != nil || read != len(items) {
		return 0, View{}, errors.Join(state.ErrRow, err, errGap)
	}
	if v.Board, err = t.board(ctx, tx, num, id, v.Board); err != nil {
		return 0, View{}, err
	}
	return num, v, nil
}

// slotOf is where a tail event's row lies.
func slotOf(seq uint64) int64 { return int64(seq % MaxTail) }

// ownHash ties a tail row to its Session, so that it never counts as another's.
func ownHash(id event.SessionID) int64 { return state.Hash([]byte(id)) }

func scanItem(text string, hash, mine int64) (Item, error) {
	if state.HashString(text)^mine != hash {
		return Item{}, state.ErrRow
	}
	it, err := decodeItem(text)
	if err != nil {
		return Item{}, errors.Join(state.ErrRow, err)
	}
	return it, nil
}

// Capture implements state.Model.
func (m model) Capture() state.Capture {
	s := m.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.dirty) == 0 {
		return nil
	}
	c := &capture{s: s, source: s.source, upto: s.applied, parts: make([]part, 0, len(s.dirty))}
	for _, e := range s.dirty {
		c.parts = append(c.parts, part{e: e, peeked: s.peek(e.id), row: e.row, rewrite: e.rewrite})
	}
	return c
}

// capture is the Sessions' share of a batch.
type capture struct {
	s      *Store
	source Source
	upto   uint64
	parts  []part
}

// part is one Session as it was when the batch was taken.
type part struct {
	peeked
	e       *entry
	row     rowState // what the file has, as far as is known; after Write what it has then
	rewrite bool
	// waits: it has no state yet, its parts go on being held.
	waits bool
}

// Write implements state.Capture.
func (c *capture) Write(ctx context.Context, tx *sql.Tx) error {
	w := newWriter(ctx, tx)
	defer w.close()
	// Rows that lie beside each other are written one after the other.
	slices.SortFunc(c.parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.row.num, b.row.num), cmp.Compare(a.id, b.id))
	})
	for i := range c.parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.write(w, &c.parts[i]); err != nil {
			return fmt.Errorf("sessions: %w", err)
		}
	}
	return w.count()
}

// Written implements state.Capture.
func (c *capture) Written() {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range c.parts {
		p := &c.parts[i]
		e := p.e
		switch {
		case s.held[e.id] != e || p.waits:
			continue
		case p.removed:
			e.erased = true
		case e.removed: // meanwhile
			continue
		default:
			if p.row.version >= e.row.version {
				e.row = p.row
			}
			if p.rewrite {
				e.rewrite = false
			}
			if e.view == nil && e.pins == 0 {
				e.pending = after(e.pending, e.row.version)
			}
		}
		s.settle(e)
	}
	s.evict(nil)
}

func after(pending []Stored, version uint64) []Stored {
	n := 0
	for n < len(pending) && pending[n].Commit.Version <= version {
		n++
	}
	return append([]Stored(nil), pending[n:]...)
}
