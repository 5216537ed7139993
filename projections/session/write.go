package session

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// writer holds the statements of one batch, each prepared when it is needed first.
type writer struct {
	// ctx never ends: a statement that can be interrupted costs a goroutine. Whether the batch
	// is to go on is asked between Sessions.
	ctx     context.Context
	tx      *sql.Tx
	stmts   [len(statements)]*sql.Stmt
	counts  map[shelf]int64
	recount bool // a damaged row was replaced
}

const (
	stmtRow = iota
	stmtFind
	stmtNew
	stmtUpdate
	stmtTail
	stmtTail2
	stmtTail8
	stmtDropTail
	stmtMessages
	stmtPutMessage
	stmtPutMessage8
	stmtCutBoard
	stmtDropMessage
	stmtDropBoard
	stmtEnd
	stmtUnEnd
	stmtDrop
	stmtShelf
	stmtPutShelf
	stmtDropShelf
)

const putTail = `INSERT OR REPLACE INTO session_tail (session, slot, event, hash) VALUES (?, ?, ?, ?)`

var statements = [...]string{
	stmtRow:  `SELECT num, ` + rowColumns + ` FROM session WHERE id = ?`,
	stmtFind: `SELECT num, lifecycle FROM session WHERE id = ?`,
	stmtNew: `INSERT INTO session (` + rowColumns + `, shelf, overflowed, rested) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO NOTHING`,
	stmtUpdate: `UPDATE session SET authority = ?, client = ?, project = ?, lifecycle = ?, updated = ?, busy = ?,
		core = ?, hash = ?, shelf = ?, overflowed = ?, rested = ? WHERE num = ?`,
	stmtTail:        putTail,
	stmtTail2:       putTail + strings.Repeat(`, (?, ?, ?, ?)`, 1),
	stmtTail8:       putTail + strings.Repeat(`, (?, ?, ?, ?)`, 7),
	stmtDropTail:    `DELETE FROM session_tail WHERE session = ?`,
	stmtMessages:    selectMessages,
	stmtPutMessage:  putMessage,
	stmtPutMessage8: putMessage + strings.Repeat(`, (?, ?, ?, ?)`, 7),
	stmtCutBoard:    cutBoard,
	stmtDropMessage: dropMessage,
	stmtDropBoard:   dropBoard,
	stmtEnd:         `INSERT OR REPLACE INTO session_ended (execution, session) VALUES (?, ?)`,
	stmtUnEnd:       `DELETE FROM session_ended WHERE execution = ?`,
	stmtDrop:        `DELETE FROM session WHERE num = ?`,
	stmtShelf:       `SELECT ` + shelfColumns + ` FROM session_shelf WHERE num = ?`,
	stmtPutShelf:    `INSERT OR REPLACE INTO session_shelf (` + shelfColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?)`,
	stmtDropShelf:   `DELETE FROM session_shelf WHERE num = ?`,
}

func newWriter(ctx context.Context, tx *sql.Tx) *writer {
	return &writer{ctx: context.WithoutCancel(ctx), tx: tx, counts: map[shelf]int64{}}
}

func (w *writer) stmt(n int) (*sql.Stmt, error) {
	if w.stmts[n] == nil {
		s, err := w.tx.PrepareContext(w.ctx, statements[n])
		if err != nil {
			return nil, err
		}
		w.stmts[n] = s
	}
	return w.stmts[n], nil
}

func (w *writer) exec(n int, args ...any) (sql.Result, error) {
	s, err := w.stmt(n)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(w.ctx, args...)
}

// row reads a Session's row.
func (w *writer) row(id event.SessionID) (num int64, v View, ok bool, err error) {
	s, err := w.stmt(stmtRow)
	if err != nil {
		return 0, View{}, false, err
	}
	return scanRow(id, s.QueryRowContext(w.ctx, string(id)))
}

func (w *writer) close() {
	for _, s := range w.stmts {
		if s != nil {
			_ = s.Close()
		}
	}
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
	num, v, ok, err := w.below(p)
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
		p.row = rowOf(num, v)
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

// save writes the row and the tail events given; they take the places of those that left.
func (w *writer) save(p *part, v View, items []Item) error {
	r := rowFor(v)
	was, err := w.put(p, &r)
	if err != nil {
		return err
	}
	if on := shelfOf(v.Core); was != on.lifecycle {
		w.counts[on]++
		if on.lifecycle = was; was != "" {
			w.counts[on]--
		}
	}
	if p.rewrite {
		w.recount = true
		if _, err := w.exec(stmtDropTail, r.num); err != nil {
			return err
		}
	}
	if err := w.putTail(p.id, r.num, items); err != nil {
		return err
	}
	if err := w.messages(p, r.num, v.Board); err != nil {
		return err
	}
	if err := w.ended(p.row.ended, v.Core.Ended, r.num); err != nil {
		return err
	}
	p.row = rowOf(r.num, v)
	return nil
}

// put writes the row and says which lifecycle it had; empty: it is new.
func (w *writer) put(p *part, r *stored) (was Lifecycle, err error) {
	if p.row.num == 0 && !p.rewrite {
		res, err := w.exec(stmtNew, append(r.columns(), r.picked()...)...)
		if err != nil {
			return "", err
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			if err == nil {
				r.num, err = res.LastInsertId()
			}
			return "", err
		}
	}
	was, r.num = p.row.lifecycle, p.row.num
	if r.num == 0 || p.rewrite {
		if r.num, was, err = w.find(p.id); err != nil {
			return "", err
		}
	}
	res, err := w.exec(stmtUpdate, append(append(r.columns()[1:], r.picked()...), r.num)...)
	if err != nil {
		return "", err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 1 {
		return was, err
	}
	if p.row.num > 0 { // the row is not where it was
		w.recount, p.row.num = true, 0
		return w.put(p, r)
	}
	if res, err = w.exec(stmtNew, append(r.columns(), r.picked()...)...); err == nil {
		r.num, err = res.LastInsertId()
	}
	return "", err
}

func (w *writer) find(id event.SessionID) (num int64, l Lifecycle, err error) {
	s, err := w.stmt(stmtFind)
	if err != nil {
		return 0, "", err
	}
	err = s.QueryRowContext(w.ctx, string(id)).Scan(&num, &l)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return num, l, err
}

// putTail writes tail events, several with one statement.
func (w *writer) putTail(id event.SessionID, num int64, items []Item) error {
	mine, buf := ownHash(id), []byte(nil)
	for len(items) > 0 {
		n, stmt := 1, stmtTail
		switch {
		case len(items) >= 8:
			n, stmt = 8, stmtTail8
		case len(items) >= 2:
			n, stmt = 2, stmtTail2
		}
		args := make([]any, 0, 4*n)
		for _, it := range items[:n] {
			buf = AppendItem(buf[:0], it)
			args = append(args, num, slotOf(it.Seq), string(buf), state.Hash(buf)^mine)
		}
		if _, err := w.exec(stmt, args...); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// ended keeps the way from an execution to its Session.
func (w *writer) ended(was, is []EndedJob, num int64) error {
	has := func(l []EndedJob, id event.ExecutionID) bool {
		return slices.ContainsFunc(l, func(j EndedJob) bool { return j.Execution == id })
	}
	for _, j := range was {
		if !has(is, j.Execution) {
			if _, err := w.exec(stmtUnEnd, string(j.Execution)); err != nil {
				return err
			}
		}
	}
	for _, j := range is {
		if !has(was, j.Execution) {
			if _, err := w.exec(stmtEnd, string(j.Execution), num); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) remove(id event.SessionID) error {
	num, v, ok, err := w.row(id)
	if err != nil && !errors.Is(err, state.ErrRow) || num == 0 {
		return err
	}
	w.recount = w.recount || !ok
	_, was, err := w.find(id)
	if err != nil {
		return err
	}
	if ok {
		on := shelfOf(v.Core)
		on.lifecycle = was
		w.counts[on]--
		if err := w.ended(v.Core.Ended, nil, num); err != nil {
			return err
		}
	}
	for _, s := range []int{stmtDropTail, stmtDropBoard, stmtDrop} {
		if _, err := w.exec(s, num); err != nil {
			return err
		}
	}
	return nil
}
