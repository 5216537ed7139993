package session

import (
	"context"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/state"
)

// again folds a Session whose rows are damaged from the log, and has them written again.
func (s *Store) again(id event.SessionID, cause error) (View, error) {
	e, _ := s.pin(id)
	defer s.unpin(e)
	s.mu.Lock()
	source := s.source
	s.mu.Unlock()
	v, err := fromLog(source, id, 0, cause)
	if err != nil {
		return View{}, err
	}
	v, keeper := s.repair(e, v)
	if keeper != nil {
		keeper.Mark()
	}
	return v, nil
}

func (s *Store) repair(e *entry, v View) (View, Keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.expand(e, v, rowState{}) // from the log, so nothing is left to be read
	if e.removed || e.view == nil {
		return View{}, nil
	}
	e.rewrite = true
	s.dirty[e.id] = e
	return *e.view, s.keeper
}

// fromLog folds a Session from the log alone, up to a sequence (0: the end).
func fromLog(source Source, id event.SessionID, upto uint64, cause error) (View, error) {
	if source == nil {
		return View{}, fault.Wrap(cause, fault.LogDamaged, "what is kept of this Session is damaged").WithReason("row_damaged").
			WithNext("restart WebCodex without state.db; it is made again from the log")
	}
	var v View
	err := source(context.Background(), id, func(c Stored) error {
		if upto == 0 || c.Seq <= upto {
			v = v.Apply(c.Seq, c.Hash, c.Commit)
		}
		return nil
	})
	return v, err
}

// lost tells a Session that has no row because there is none from one whose row is not found
// any more: state.ErrRow. Where a page of an index is damaged SQLite finds nothing and says
// nothing, so each miss is held against the aggregate's head, which lies in another table.
func (s *Store) lost(file *tables, id event.SessionID) error {
	s.mu.Lock()
	keeper := s.keeper
	s.mu.Unlock()
	if keeper == nil {
		return nil
	}
	a := event.SessionAggregate(id)
	if living, err := keeper.Living(a); err == nil && !living {
		return nil
	}
	// It may have begun since the miss, or have been removed: then the miss was right.
	if s.begun(id) {
		return nil
	}
	found := false
	err := file.at(context.Background(), func(f snapshot) (err error) {
		_, _, found, err = f.shelfOn(context.Background(), id)
		return err
	})
	if err == nil && found {
		return nil
	}
	if living, err := keeper.Living(a); err == nil && !living {
		return nil
	}
	keeper.Spoiled(state.ErrRow)
	return state.ErrRow
}

// begun reports whether memory has a Session from its first commit on, or its removal.
func (s *Store) begun(id event.SessionID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.held[id]
	return e != nil && (e.view != nil || e.removed || len(e.pending) > 0 && e.pending[0].Commit.Version == 1)
}
