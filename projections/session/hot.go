package session

import "container/list"

// residency is the order in which the hot Sessions were used, the newest in front. Closed ones
// have an order of their own and go first (SES-44).
type residency struct {
	target int
	// full: nothing can make room before the file has more, so nobody looks for it again.
	full           bool
	active, closed *list.List
}

// links of an entry in the order it is in.
type links struct {
	in *list.List
	at *list.Element
}

func newResidency(target int) residency {
	return residency{target: target, active: list.New(), closed: list.New()}
}

func (r *residency) order(e *entry) *list.List {
	if e.view != nil && e.view.Core.Lifecycle == Closed {
		return r.closed
	}
	return r.active
}

// touch makes an entry of the order the one used last.
func (r *residency) touch(e *entry) {
	if e.kept {
		e.links.in.MoveToFront(e.links.at)
	}
}

// moved follows an entry whose lifecycle may have changed, and touches it.
func (r *residency) moved(e *entry) {
	if !e.kept {
		return
	}
	if want := r.order(e); want != e.links.in {
		e.links.in.Remove(e.links.at)
		e.links = links{want, want.PushFront(e)}
		return
	}
	r.touch(e)
}

func (r *residency) add(e *entry) {
	if e.kept {
		r.moved(e)
		return
	}
	in := r.order(e)
	e.kept, e.links = true, links{in, in.PushFront(e)}
}

func (r *residency) drop(e *entry) {
	if e.kept {
		e.links.in.Remove(e.links.at)
		e.kept, e.links = false, links{}
	}
}

func (r *residency) len() int { return r.active.Len() + r.closed.Len() }

// victim is the entry to make room with: the Closed one unused for longest, else the Active
// one. Those that the file has not stay, and so does the one that room is made for.
func (r *residency) victim(room *entry) *entry {
	for _, l := range []*list.List{r.closed, r.active} {
		for x := l.Back(); x != nil; x = x.Prev() {
			if e := x.Value.(*entry); e != room && !e.unwritten() {
				return e
			}
		}
	}
	return nil
}

// keep expands an entry for use, and makes room for it.
func (s *Store) keep(e *entry) {
	s.hot.add(e)
	s.evict(e)
}

// evict brings the count of hot Sessions to the target where the file has what they hold. One
// may always stay: the target of a mutation (SES-26).
func (s *Store) evict(room *entry) {
	if s.file == nil || s.hot.full && room != nil && room.unwritten() {
		return
	}
	s.hot.full = false
	for s.hot.len() > max(s.hot.target, 1) {
		e := s.hot.victim(room)
		if e == nil {
			s.hot.full = room == nil || room.unwritten()
			return
		}
		s.hot.drop(e)
		s.settle(e)
	}
}
