package session

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// A board's rows are one a message, in the form of board_codec.go.
const (
	selectMessages = `SELECT place, message, hash FROM session_message WHERE session = ? ORDER BY place`
	putMessage     = `INSERT OR REPLACE INTO session_message (session, place, message, hash) VALUES (?, ?, ?, ?)`
	dropMessage    = `DELETE FROM session_message WHERE session = ? AND place = ?`
	cutBoard       = `DELETE FROM session_message WHERE session = ? AND place < ?`
	dropBoard      = `DELETE FROM session_message WHERE session = ?`
)

var errBoard = errors.New("the messages of a Session are not those that its row counts")

// scanBoard reads the messages of a Session whose row said head.
func scanBoard(id event.SessionID, head Board, rows *sql.Rows, err error) (Board, error) {
	if err != nil {
		return Board{}, err
	}
	defer rows.Close()
	list, mine := make([]*Message, 0, head.unread), ownHash(id)
	for rows.Next() {
		var place, hash int64
		var text string
		if err := rows.Scan(&place, &text, &hash); err != nil {
			return Board{}, err
		}
		if state.HashString(text)^mine != hash {
			return Board{}, state.ErrRow
		}
		m, err := decodeMessage(text)
		if err != nil || m.Place != uint64(place) {
			return Board{}, errors.Join(state.ErrRow, err, errMessage)
		}
		list = append(list, m)
	}
	if err := rows.Err(); err != nil {
		return Board{}, err
	}
	b, dropped := newBoard(head.Revision, head.Low, list)
	if dropped > 0 || len(list) != head.unread || b.newest() != b.Revision || b.Low != head.Low {
		return Board{}, errors.Join(state.ErrRow, errBoard)
	}
	return b, nil
}

// newest is the revision of the newest change that is there or has left: the board's own.
func (b Board) newest() uint64 {
	n := b.Low
	for _, m := range b.list {
		n = max(n, m.Rev)
	}
	return n
}

// board reads what lies below a row that was read in the same transaction.
func (t *tables) board(ctx context.Context, tx *sql.Tx, num int64, id event.SessionID, head Board) (Board, error) {
	if head.unread == 0 {
		return head, nil
	}
	rows, err := tx.StmtContext(ctx, t.messages).QueryContext(ctx, num)
	return scanBoard(id, head, rows, err)
}

// withBoard reads a Session without its tail, as of one moment; the empty View: there is no row.
func (t *tables) withBoard(ctx context.Context, id event.SessionID) (v View, err error) {
	err = t.at(ctx, func(f snapshot) error {
		num, got, ok, err := scanRow(id, f.tx.StmtContext(ctx, t.row).QueryRowContext(ctx, string(id)))
		if err != nil || !ok {
			return err
		}
		v = got
		v.Board, err = t.board(ctx, f.tx, num, id, got.Board)
		return err
	})
	return v, err
}

// LoadBoard is Load without the tail: of a cold Session the messages are read and no event.
// Errors are those of Load.
func (s *Store) LoadBoard(id event.SessionID) (Core, Board, error) {
	s.mu.Lock()
	if e := s.held[id]; e != nil && e.view != nil {
		s.hot.touch(e)
	}
	p, file := s.peek(id), s.file
	s.mu.Unlock()
	v, err := s.boardOf(file, p)
	if err == nil && !v.Core.Exists() {
		err = unknownSession()
	}
	return v.Core, v.Board, err
}

// boardOf is the Session without its tail; one that does not exist is no error.
func (s *Store) boardOf(file *tables, p peeked) (v View, err error) {
	switch {
	case p.removed:
		return View{}, nil
	case p.view != nil:
		return *p.view, nil
	case file != nil:
		if v, err = file.withBoard(context.Background(), p.id); err == nil && !v.Core.Exists() {
			err = s.lost(file, p.id)
		}
		if err != nil {
			if v, err = s.again(p.id, err); err != nil {
				return View{}, err
			}
		}
	}
	for _, c := range p.pending {
		v = v.Apply(c.Seq, c.Hash, c.Commit)
	}
	return v, nil
}

// below reads what a cold Session's new commits are folded over: its row, and its messages if
// one of the commits is about them.
func (w *writer) below(p *part) (num int64, v View, ok bool, err error) {
	num, v, ok, err = w.row(p.id)
	if err != nil || !ok || v.Board.unread == 0 || !slices.ContainsFunc(p.pending, ofBoard) {
		return num, v, ok, err
	}
	s, err := w.stmt(stmtMessages)
	if err != nil {
		return 0, View{}, false, err
	}
	rows, err := s.QueryContext(w.ctx, num)
	if v.Board, err = scanBoard(p.id, v.Board, rows, err); err != nil {
		return num, View{}, false, err
	}
	return num, v, true, nil
}

func ofBoard(s Stored) bool {
	return slices.ContainsFunc(s.Commit.Events, func(e event.Event) bool {
		switch e.(type) {
		case event.MessagePosted, event.MessageResolved, event.MessageCompleted, event.MessagesAcknowledged:
			return true
		default:
			return false
		}
	})
}

// messages brings the rows of a board from what the file has to what b has. A message is
// immutable, so one that is the same lies there already.
func (w *writer) messages(p *part, num int64, b Board) error {
	switch {
	case b.unread > 0 || b.Revision == 0 && !p.rewrite: // nothing happened to it
		return nil
	case p.rewrite || !p.row.boardKnown || len(b.list) == 0:
		if _, err := w.exec(stmtDropBoard, num); err != nil {
			return err
		}
		return w.putMessages(p.id, num, b.list)
	case slices.Equal(p.row.board, b.list):
		return nil
	}
	was, changed := p.row.board, []*Message(nil)
	if len(was) > 0 && was[0].Place < b.list[0].Place {
		if _, err := w.exec(stmtCutBoard, num, int64(b.list[0].Place)); err != nil {
			return err
		}
	}
	for _, m := range b.list {
		for len(was) > 0 && was[0].Place < m.Place {
			if was[0].Place > b.list[0].Place { // a hole behind the oldest
				if _, err := w.exec(stmtDropMessage, num, int64(was[0].Place)); err != nil {
					return err
				}
			}
			was = was[1:]
		}
		there := len(was) > 0 && was[0].Place == m.Place
		if !there || was[0] != m {
			changed = append(changed, m)
		}
		if there {
			was = was[1:]
		}
	}
	// Nothing is left of was: the newest message never leaves.
	return w.putMessages(p.id, num, changed)
}

// putMessages writes messages, several with one statement.
func (w *writer) putMessages(id event.SessionID, num int64, list []*Message) error {
	mine, buf := ownHash(id), []byte(nil)
	for len(list) > 0 {
		n, stmt := 1, stmtPutMessage
		if len(list) >= 8 {
			n, stmt = 8, stmtPutMessage8
		}
		args := make([]any, 0, 4*n)
		for _, m := range list[:n] {
			buf = appendMessage(buf[:0], m)
			args = append(args, num, int64(m.Place), string(buf), state.Hash(buf)^mine)
		}
		if _, err := w.exec(stmt, args...); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}
