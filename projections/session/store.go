package session

import (
	"context"
	"sync"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Store folds the commits of all Sessions and hands out immutable Views. Sessions in use are
// expanded in memory (hot), bounded by count; all others lie in state.db (cold). Where one
// lies changes nothing that a reader sees, never its lifecycle, and deletes nothing (SES-25).
//
// Model is what a state.Keeper feeds and writes. Without one there is no file: then
// everything stays in memory, and the Store itself is the fold.
type Store struct {
	mu      sync.Mutex // guards all below; Views themselves need no lock
	applied uint64
	held    map[event.SessionID]*entry // hot, or with commits that the file has not
	dirty   map[event.SessionID]*entry // of those, the ones the file has not
	hot     residency
	file    *tables // nil: there is none
	source  Source
	keeper  Keeper

	watchers watchers
}

// Keeper is what writes the Store's rows (state.Keeper).
type Keeper interface {
	// Mark asks for a batch though no commit came.
	Mark()
	// LastPersistError is why the last batch is not in the file; empty: it is.
	LastPersistError() string
	// Spoiled tells that the file cannot be read where no single Session can be read again.
	Spoiled(error)
	// Living reports whether the log has a state of an aggregate that was not removed.
	Living(event.Aggregate) (bool, error)
}

// Source gives a Session's commits from the log itself, oldest first, for a row that is
// damaged. Its error says why the log cannot give them: fault log_damaged.
type Source func(ctx context.Context, id event.SessionID, fn func(Stored) error) error

// entry is what memory holds of one Session beyond its rows.
type entry struct {
	id event.SessionID
	// view is the whole state; nil: the Session is cold, and pending holds its commits beyond
	// the row.
	view    *View
	pending []Stored
	row     rowState
	// kept in the access order; a View that is only held to be written is not.
	kept bool
	// rewrite makes the next batch write every row again.
	rewrite bool
	removed bool
	erased  bool // removed, and gone from the file
	// pins keep pending whole while somebody reads what lies below it.
	pins  int
	links links
}

// rowState is what the file has of a Session; the zero value: nothing that is known of.
type rowState struct {
	num       int64 // of the row; 0: not known
	version   uint64
	lifecycle Lifecycle
	ended     []EndedJob
	board     []*Message
	// boardKnown: board is what the file has, whole.
	boardKnown bool
}

// unwritten reports whether the file lacks anything of it.
func (e *entry) unwritten() bool {
	if e.view != nil {
		return e.rewrite || e.view.Core.Version > e.row.version
	}
	n := len(e.pending)
	return e.removed && !e.erased || n > 0 && e.pending[n-1].Commit.Version > e.row.version
}

// NewStore is an empty Store with the default hot target; feed it through Apply.
func NewStore() *Store {
	return &Store{held: map[event.SessionID]*entry{}, dirty: map[event.SessionID]*entry{}, hot: newResidency(HotTarget)}
}

// SetHotTarget says how many Sessions are to be expanded in memory: a count, not bytes
// (SES-32). With 0 the one that is being written to still is (SES-26).
func (s *Store) SetHotTarget(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hot.target = max(n, 0)
	s.evict(nil)
}

// SetSource says where a Session is read again when a row of it is damaged. Without one it is
// refused.
func (s *Store) SetSource(src Source) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = src
}

// SetKeeper says who writes the rows.
func (s *Store) SetKeeper(k Keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeper = k
}

// Apply folds one commit; commits of other domains only move the position, seq already
// applied changes nothing (eventlog.Fold). It does no I/O.
func (s *Store) Apply(seq uint64, hash string, c event.Commit) {
	defer s.watchers.applied(c) // without the lock
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.applied {
		return
	}
	s.applied = seq
	for _, e := range c.Events {
		if r, ok := e.(event.SessionRemoved); ok {
			s.remove(r.Session)
		}
	}
	if c.Aggregate.Domain != event.DomainSession {
		return
	}
	id := event.SessionID(c.Aggregate.ID)
	e := s.held[id]
	switch {
	case e == nil && c.Version == 1:
		v := View{}.Apply(seq, hash, c)
		e = &entry{id: id, view: &v}
		s.held[id] = e
		s.keep(e)
	case e == nil:
		e = &entry{id: id, pending: []Stored{{seq, hash, c}}}
		s.held[id] = e
	case e.removed:
		return
	case e.view != nil:
		v := e.view.Apply(seq, hash, c)
		e.view = &v
		s.hot.moved(e)
	default:
		e.pending = append(e.pending, Stored{seq, hash, c})
	}
	s.dirty[id] = e
}

// remove takes a Session out of memory and, with the next batch, out of the file. Commits of
// it that come later change nothing.
func (s *Store) remove(id event.SessionID) {
	e := s.held[id]
	if e == nil {
		e = &entry{id: id}
		s.held[id] = e
	}
	s.hot.drop(e)
	e.removed, e.view, e.pending, e.rewrite = true, nil, nil, false
	s.dirty[id] = e
}

// Applied is the sequence of the last commit seen.
func (s *Store) Applied() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied
}

func unknownSession() *fault.Error {
	return fault.New(fault.UnknownSessionID, "no Session has this id").WithField("session_id").
		WithNext("call list_sessions with the project to see its Sessions")
}

// Load gives the Session's state wherever it lies. A hot one becomes the one used last, a cold
// one stays cold (SES-29, SES-43); nothing is written. Errors: fault unknown_session_id;
// log_damaged where neither the file nor the log can give it.
func (s *Store) Load(id event.SessionID) (View, error) {
	v, _, err := s.load(id)
	return v, err
}

func (s *Store) load(id event.SessionID) (View, rowState, error) {
	s.mu.Lock()
	e := s.held[id]
	if e != nil && e.view != nil {
		s.hot.touch(e)
		v, row := *e.view, e.row
		s.mu.Unlock()
		return existing(v, row)
	}
	var pending []Stored
	if e != nil {
		pending = e.pending
	}
	gone, file := e != nil && e.removed, s.file
	s.mu.Unlock()
	if gone {
		return View{}, rowState{}, unknownSession()
	}
	v, row, err := s.cold(file, id)
	if err != nil {
		return View{}, rowState{}, err
	}
	for _, c := range pending {
		v = v.Apply(c.Seq, c.Hash, c.Commit)
	}
	return existing(v, row)
}

func existing(v View, row rowState) (View, rowState, error) {
	if !v.Core.Exists() {
		return View{}, rowState{}, unknownSession()
	}
	return v, row, nil
}

// cold reads a Session from its rows; an empty View: there are none.
func (s *Store) cold(file *tables, id event.SessionID) (View, rowState, error) {
	if file == nil {
		return View{}, rowState{}, nil
	}
	num, v, err := file.view(context.Background(), id)
	if err == nil && num == 0 {
		err = s.lost(file, id)
	}
	if err != nil {
		if v, err = s.again(id, err); err != nil {
			return View{}, rowState{}, err
		}
		return v, rowState{}, nil
	}
	return v, rowOf(num, v), nil
}

func rowOf(num int64, v View) rowState {
	c := v.Core
	return rowState{num: num, version: c.Version, lifecycle: c.Lifecycle, ended: c.Ended,
		board: v.Board.list, boardKnown: v.Board.unread == 0}
}

// Target is what a decision sees of the Session it is going to write to: from now on it is
// hot. Errors are those of Load.
func (s *Store) Target(id event.SessionID) (Core, error) {
	e, file := s.pin(id)
	defer s.unpin(e)
	s.mu.Lock()
	hot := e.view != nil || e.removed || file == nil
	s.mu.Unlock()
	var v View
	var row rowState
	if !hot {
		var err error
		if v, row, err = s.cold(file, id); err != nil {
			return Core{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.expand(e, v, row); err != nil {
		return Core{}, fault.Wrap(err, fault.Internal, "the Session's events cannot be read")
	}
	if e.view == nil || !e.view.Core.Exists() {
		return Core{}, unknownSession()
	}
	s.keep(e)
	return e.view.Core, nil
}

// expand makes a pinned entry whole with what was read below its pending commits.
func (s *Store) expand(e *entry, v View, row rowState) error {
	if e.removed || e.view != nil {
		return nil
	}
	for _, c := range e.pending {
		v = v.Apply(c.Seq, c.Hash, c.Commit)
	}
	if v.Core.Version == 0 {
		return nil
	}
	var err error
	if v.Tail, err = v.Tail.decoded(); err != nil {
		return err
	}
	e.view, e.pending = &v, nil
	if row.version >= e.row.version {
		e.row = row
	}
	if e.unwritten() {
		s.dirty[e.id] = e
	}
	return nil
}

// pin holds a Session's entry, so that no commit of it leaves memory until unpin.
func (s *Store) pin(id event.SessionID) (*entry, *tables) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.held[id]
	if e == nil {
		e = &entry{id: id}
		s.held[id] = e
	}
	e.pins++
	return e, s.file
}

func (s *Store) unpin(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.pins--
	s.settle(e)
}

// settle lets go of what the file has and nobody uses.
func (s *Store) settle(e *entry) {
	if e.unwritten() {
		return
	}
	s.hot.full = false
	delete(s.dirty, e.id)
	if e.pins == 0 && !e.kept {
		delete(s.held, e.id)
	}
}

// View is Load for callers that need no reason.
func (s *Store) View(id event.SessionID) (View, bool) {
	v, err := s.Load(id)
	return v, err == nil
}

// Core is the small part of Load, without the tail: of a cold Session one row is read.
func (s *Store) Core(id event.SessionID) (Core, bool) {
	c, err := s.LoadCore(id)
	return c, err == nil
}

// LoadCore is Core with the reason; the errors are those of Load.
func (s *Store) LoadCore(id event.SessionID) (Core, error) {
	s.mu.Lock()
	if e := s.held[id]; e != nil && e.view != nil {
		s.hot.touch(e)
	}
	p, file := s.peek(id), s.file
	s.mu.Unlock()
	c, err := s.coreOf(file, p)
	if err == nil && !c.Exists() {
		err = unknownSession()
	}
	return c, err
}

// peeked is what memory holds of a Session at one moment.
type peeked struct {
	id      event.SessionID
	view    *View
	pending []Stored
	removed bool
}

func (s *Store) peek(id event.SessionID) peeked {
	p := peeked{id: id}
	if e := s.held[id]; e != nil {
		p.view, p.pending, p.removed = e.view, e.pending, e.removed
	}
	return p
}

// coreOf is the Session's core; one that does not exist is no error.
func (s *Store) coreOf(file *tables, p peeked) (Core, error) {
	switch {
	case p.removed:
		return Core{}, nil
	case p.view != nil:
		return p.view.Core, nil
	}
	var v View
	if file != nil {
		var err error
		v.Core, v.Seq, v.Hash, err = file.core(context.Background(), p.id)
		if err == nil && !v.Core.Exists() {
			err = s.lost(file, p.id)
		}
		if err != nil {
			if v, err = s.again(p.id, err); err != nil {
				return Core{}, err
			}
		}
	}
	for _, c := range p.pending {
		v = v.Apply(c.Seq, c.Hash, c.Commit)
	}
	return v.Core, nil
}
