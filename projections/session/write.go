package session

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// writer holds the statements of one batch.
type writer struct {
	ctx                                                 context.Context
	tx                                                  *sql.Tx
	row, put, putTail, cutTail, dropTail, end, drop, un *sql.Stmt
	counts                                              map[Lifecycle]int64
	recount                                             bool // a damaged row was replaced
}

func newWriter(ctx context.Context, tx *sql.Tx) (*writer, error) {
	w := &writer{ctx: ctx, tx: tx, counts: map[Lifecycle]int64{}}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&w.row, `SELECT num, ` + rowColumns + ` FROM session WHERE id = ?`},
		{&w.put, `INSERT INTO session (` + rowColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
			authority = excluded.authority, client = excluded.client, project = excluded.project, lifecycle = excluded.lifecycle,
			updated = excluded.updated, busy = excluded.busy, core = excluded.core, hash = excluded.hash RETURNING num`},
		{&w.putTail, `INSERT OR REPLACE INTO session_tail (session, seq, event, hash) VALUES (?, ?, ?, ?)`},
		{&w.cutTail, `DELETE FROM session_tail WHERE session = ? AND seq < ?`},
		{&w.dropTail, `DELETE FROM session_tail WHERE session = ?`},
		{&w.end, `INSERT OR REPLACE INTO session_ended (execution, session) VALUES (?, ?)`},
		{&w.un, `DELETE FROM session_ended WHERE execution = ?`},
		{&w.drop, `DELETE FROM session WHERE num = ?`},
	} {
		var err error
		if *p.to, err = tx.PrepareContext(ctx, p.sql); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

func (w *writer) close() error {
	for _, s := range []*sql.Stmt{w.row, w.put, w.putTail, w.cutTail, w.dropTail, w.end, w.un, w.drop} {
		if s != nil {
			_ = s.Close()
		}
	}
	return nil
}

// count moves the totals by what this batch created, closed and removed.
func (w *writer) count() error {
	if w.recount {
		for _, q := range []string{`DELETE FROM session_count`, `INSERT INTO session_count ` + countRows} {
			if _, err := w.tx.ExecContext(w.ctx, q); err != nil {
				return err
			}
		}
		return nil
	}
	for l, n := range w.counts {
		if n == 0 {
			continue
		}
		if _, err := w.tx.ExecContext(w.ctx, `INSERT INTO session_count VALUES (?, ?) ON CONFLICT DO UPDATE
			SET sessions = sessions + excluded.sessions`, string(l), n); err != nil {
			return err
		}
	}
	return nil
}

// write brings one Session's rows to where the capture is.
func (c *capture) write(w *writer, p *part) error {
	switch {
	case p.removed:
		return w.remove(p.id)
	case p.view == nil:
		return c.writeCold(w, p)
	}
	if !p.view.Core.Exists() {
		p.waits = !p.view.Gathered().Empty()
		p.row = rowState{version: p.view.Core.Version}
		if p.waits {
			return nil
		}
		return w.remove(p.id) // discarded, or never any
	}
	items := p.view.Tail.Items()
	if !p.rewrite {
		items = newer(items, p.row.version)
	}
	return w.save(p, *p.view, items)
}

// newer are the items of commits after a version.
func newer(items []Item, version uint64) []Item {
	i := len(items)
	for i > 0 && items[i-1].Version > version {
		i--
	}
	return items[i:]
}

// writeCold folds a Session's new commits over its row, without reading its tail.
func (c *capture) writeCold(w *writer, p *part) error {
	_, v, ok, err := scanRow(p.id, w.row.QueryRowContext(w.ctx, string(p.id)))
	switch {
	case errors.Is(err, state.ErrRow):
		if v, err = fromLog(c.source, p.id, c.upto, err); err != nil || !v.Core.Exists() {
			// Its readers are told the same; the rows stay as they are.
			p.row.version = last(p.pending)
			return nil
		}
		p.rewrite = true
		return w.save(p, v, v.Tail.Items())
	case err != nil:
		return err
	case ok:
		p.row = rowOf(v)
		v.Tail = Tail{Observed: v.Core.Observed}
	}
	from := v.Core.Version
	for _, s := range p.pending {
		v = v.Apply(s.Seq, s.Hash, s.Commit)
	}
	if !v.Core.Exists() {
		p.waits = !v.Gathered().Empty()
		p.row = rowState{version: last(p.pending)}
		if ok { // discarded
			return w.remove(p.id)
		}
		return nil
	}
	return w.save(p, v, newer(v.Tail.Items(), from))
}

func last(pending []Stored) uint64 {
	if len(pending) == 0 {
		return 0
	}
	return pending[len(pending)-1].Commit.Version
}

// save writes the row, the tail events given, and takes away what left the tail.
func (w *writer) save(p *part, v View, items []Item) error {
	was, err := w.lifecycle(p)
	if err != nil {
		return err
	}
	if was != v.Core.Lifecycle {
		w.counts[v.Core.Lifecycle]++
		if was != "" {
			w.counts[was]--
		}
	}
	r := rowFor(v)
	if err := w.put.QueryRowContext(w.ctx, r.id, r.authority, r.client, r.project, r.life, r.updated, r.busy, r.core, r.hash()).
		Scan(&r.num); err != nil {
		return err
	}
	if p.rewrite {
		w.recount = true
		if _, err := w.dropTail.ExecContext(w.ctx, r.num); err != nil {
			return err
		}
	}
	mine, buf := ownHash(p.id), []byte(nil)
	for _, it := range items {
		buf = AppendItem(buf[:0], it)
		if _, err := w.putTail.ExecContext(w.ctx, r.num, int64(it.Seq), string(buf), state.Hash(buf)^mine); err != nil {
			return err
		}
	}
	first := firstOf(v.Core)
	if first > max(p.row.first, 1) && !p.rewrite {
		if _, err := w.cutTail.ExecContext(w.ctx, r.num, int64(first)); err != nil {
			return err
		}
	}
	if err := w.ended(p.row.ended, v.Core.Ended, r.num); err != nil {
		return err
	}
	p.row = rowOf(v)
	return nil
}

// lifecycle is what the row says, for the totals.
func (w *writer) lifecycle(p *part) (Lifecycle, error) {
	if p.row.version > 0 && !p.rewrite {
		return p.row.lifecycle, nil
	}
	var l string
	err := w.tx.QueryRowContext(w.ctx, `SELECT lifecycle FROM session WHERE id = ?`, string(p.id)).Scan(&l)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return Lifecycle(l), err
}

// ended keeps the way from an execution to its Session.
func (w *writer) ended(was, is []EndedJob, num int64) error {
	has := func(l []EndedJob, id event.ExecutionID) bool {
		return slices.ContainsFunc(l, func(j EndedJob) bool { return j.Execution == id })
	}
	for _, j := range was {
		if !has(is, j.Execution) {
			if _, err := w.un.ExecContext(w.ctx, string(j.Execution)); err != nil {
				return err
			}
		}
	}
	for _, j := range is {
		if !has(was, j.Execution) {
			if _, err := w.end.ExecContext(w.ctx, string(j.Execution), num); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) remove(id event.SessionID) error {
	num, v, ok, err := scanRow(id, w.row.QueryRowContext(w.ctx, string(id)))
	if err != nil && !errors.Is(err, state.ErrRow) || num == 0 {
		return err
	}
	w.recount = w.recount || !ok
	p := &part{peeked: peeked{id: id}}
	was, err := w.lifecycle(p)
	if err != nil {
		return err
	}
	w.counts[was]--
	if ok {
		if err := w.ended(v.Core.Ended, nil, num); err != nil {
			return err
		}
	}
	for _, s := range []*sql.Stmt{w.dropTail, w.drop} {
		if _, err := s.ExecContext(w.ctx, num); err != nil {
			return err
		}
	}
	return nil
}
