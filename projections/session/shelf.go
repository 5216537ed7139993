package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// shelf is where the file has the Sessions of one authority, Project and lifecycle, in the order
// of the lists. Every list is merged from shelves and every count summed from theirs, so neither
// goes through all Sessions. There are about as many shelves as Projects in use.
type shelf struct {
	authority, client, project string
	lifecycle                  Lifecycle
}

func shelfOf(c Core) shelf {
	return shelf{c.Authority, string(c.Project.Client), string(c.Project.Project), c.Lifecycle}
}

// num is what a row has for its shelf. Two shelves of one number would be a matter of chance
// that nobody meets.
func (s shelf) num() int64 {
	return new(state.Fields).Text(s.authority).Text(s.client).Text(s.project).Text(string(s.lifecycle)).Hash()
}

const shelfColumns = `num, authority, client, project, lifecycle, sessions, hash`

// countRows is the shelves as the Sessions themselves say; it goes through all of them.
const countRows = `SELECT shelf, authority, client, project, lifecycle, count(*), 0 FROM session GROUP BY shelf`

// counted is a row of session_shelf.
type counted struct {
	shelf
	num      int64
	sessions int64
}

func (c counted) hash() int64 {
	return new(state.Fields).Uint(uint64(c.num)).Text(c.authority).Text(c.client).Text(c.project).Text(string(c.lifecycle)).
		Uint(uint64(c.sessions)).Hash()
}

// scanShelves reads rows of shelfColumns and, unless they were just counted, their hashes:
// state.ErrRow.
func scanShelves(rows *sql.Rows, err error, fresh bool) (out []counted, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c counted
		var hash int64
		if err := rows.Scan(&c.num, &c.authority, &c.client, &c.project, &c.lifecycle, &c.sessions, &hash); err != nil {
			return nil, err
		}
		if !fresh && hash != c.hash() {
			return nil, state.ErrRow
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

// snapshot is the file at one moment.
type snapshot struct {
	t  *tables
	tx *sql.Tx
}

// at gives fn the file as of one moment.
func (t *tables) at(ctx context.Context, fn func(snapshot) error) error {
	tx, err := t.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(snapshot{t, tx})
}

// shelves are those that a Filter may match. spoilt: their counts are not believed.
func (f snapshot) shelves(ctx context.Context, filter Filter, spoilt bool) (out []counted, err error) {
	switch {
	case spoilt:
		rows, err := f.tx.QueryContext(ctx, countRows)
		if out, err = scanShelves(rows, err, true); err != nil {
			return nil, err
		}
	case filter.AnyAuthority || filter.Project.Zero():
		rows, err := f.tx.StmtContext(ctx, f.t.shelves).QueryContext(ctx)
		if out, err = scanShelves(rows, err, false); err != nil {
			return nil, err
		}
	default:
		for _, l := range []Lifecycle{Active, Closed} {
			num := shelf{filter.Authority, string(filter.Project.Client), string(filter.Project.Project), l}.num()
			rows, err := f.tx.StmtContext(ctx, f.t.shelf).QueryContext(ctx, num)
			one, err := scanShelves(rows, err, false)
			if err != nil {
				return nil, err
			}
			if len(one) == 0 { // or its number is damaged
				if some, err := f.take(ctx, num, 1); err != nil || len(some) > 0 {
					return nil, errors.Join(err, state.ErrRow)
				}
			}
			out = append(out, one...)
		}
	}
	return slices.DeleteFunc(out, func(c counted) bool { return !filter.on(c.shelf) }), nil
}

// shelfOn is the shelf that a Session's row stands on, and its time there; false: it has no row.
func (f snapshot) shelfOn(ctx context.Context, id event.SessionID) (num, at int64, ok bool, err error) {
	err = f.tx.StmtContext(ctx, f.t.on).QueryRowContext(ctx, string(id)).Scan(&num, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, false, nil
	}
	return num, at, err == nil, err
}

// take reads at most n places of a shelf, newest first.
func (f snapshot) take(ctx context.Context, num int64, n int) ([]place, error) {
	return placesOf(f.tx.StmtContext(ctx, f.t.newest).QueryContext(ctx, num, n))
}

func placesOf(rows *sql.Rows, err error) (out []place, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p place
		if err := rows.Scan(&p.at, &p.id); err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, rows.Err()
}

// count brings the shelves to what this batch created, closed and removed.
func (w *writer) count() error {
	for on, n := range w.counts {
		if w.recount || n == 0 {
			continue
		}
		ok, err := w.move(on, n)
		if err != nil {
			return err
		}
		w.recount = w.recount || !ok
	}
	if w.recount {
		return w.countAll()
	}
	return nil
}

// move adds to the Sessions of a shelf; false: what there is of it cannot be right.
func (w *writer) move(on shelf, n int64) (ok bool, err error) {
	there := counted{shelf: on, num: on.num()}
	s, err := w.stmt(stmtShelf)
	if err != nil {
		return false, err
	}
	rows, err := s.QueryContext(w.ctx, there.num)
	found, err := scanShelves(rows, err, false)
	if err != nil && !errors.Is(err, state.ErrRow) {
		return false, err
	}
	if len(found) > 0 {
		there = found[0]
	}
	if there.sessions += n; err != nil || there.sessions < 0 || there.shelf != on {
		return false, nil
	}
	return true, w.putShelf(there)
}

func (w *writer) putShelf(c counted) error {
	if c.sessions == 0 {
		_, err := w.exec(stmtDropShelf, c.num)
		return err
	}
	_, err := w.exec(stmtPutShelf, c.num, c.authority, c.client, c.project, string(c.lifecycle), c.sessions, c.hash())
	return err
}

// countAll makes the shelves again from the Sessions.
func (w *writer) countAll() error {
	rows, err := w.tx.QueryContext(w.ctx, countRows)
	all, err := scanShelves(rows, err, true)
	if err != nil {
		return fmt.Errorf("count: %w", err)
	}
	if _, err := w.tx.ExecContext(w.ctx, `DELETE FROM session_shelf`); err != nil {
		return err
	}
	for _, c := range all {
		if err := w.putShelf(c); err != nil {
			return err
		}
	}
	return nil
}
