package session

import (
	"context"

	"webcodex/eventlog/event"
)

// CarriedForm is the version of a Session's state as it lies in session.carried. Such state
// outlives the program that wrote it, and nothing is left to fold it from: a form, once
// written, is read for ever. A changed one takes the next number and a case in decodeCarried.
// Form 1 is of programs that had no boards.
const CarriedForm = 2

// Carry gives a Session's state to be brought forward in its own commits, and the form it has.
// The state is as of the commit at which v stands: the first part must be the next one.
func Carry(v View) (form int, state []byte) { return CarriedForm, EncodeView(v) }

// Carry gives the state of a Session to be brought forward. Nothing becomes hot by it, or is
// used later for it. False: the aggregate is no Session. Errors are those of Load.
func (s *Store) Carry(_ context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a.Domain != event.DomainSession {
		return 0, nil, false, nil
	}
	id := event.SessionID(a.ID)
	s.mu.Lock()
	var v View
	if e := s.held[id]; e != nil && e.view != nil {
		v = *e.view
	}
	s.mu.Unlock()
	if !v.Core.Exists() {
		if v, err = s.Load(id); err != nil {
			return 0, nil, false, err
		}
	}
	form, state = Carry(v)
	return form, state, true, nil
}

func decodeCarried(s event.CarriedState) (View, bool) {
	switch s.Form {
	case 1, CarriedForm:
		v, err := decodeView(s.State, s.Form)
		return v, err == nil
	default: // of a newer program
		return View{}, false
	}
}

// Gathered is what a View without its beginning holds of the state that is coming, for whoever keeps the
// View over a restart.
func (v View) Gathered() event.Gather { return v.gather }

// rooted reports whether the commit continues what v holds, so that its events mean something.
func (v View) rooted(c event.Commit) bool {
	return v.Core.Exists() || v.Core.Version+1 == c.Version && v.Core.Version == 0
}

// begin takes a commit of a Session whose first events have left the log. Only the whole of
// the carried state makes a Session of it, and it must be the state directly before its parts.
func (v View) begin(seq uint64, hash string, c event.Commit) View {
	g, state := v.gather.Next(c)
	out := View{Core: Core{Version: c.Version}, Seq: seq, Hash: hash, gather: g}
	if state == nil {
		return out
	}
	restored, ok := decodeCarried(*state)
	part, _ := event.CarriedIn(c)
	if !ok || !restored.Core.Exists() || string(restored.Core.ID) != c.Aggregate.ID ||
		restored.Core.Version+uint64(part.Parts) != c.Version {
		return out
	}
	restored.Core.Version, restored.Seq, restored.Hash = c.Version, seq, hash
	return restored
}
