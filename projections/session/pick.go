package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/state"
)

// Filter picks Sessions.
type Filter struct {
	// Authority is the caller's authority fingerprint; Sessions of others don't exist for the
	// caller, neither as rows nor in totals (LST-04). Empty matches nothing.
	Authority string
	// AnyAuthority drops that rule, for the person who owns the data directory.
	AnyAuthority bool
	// Project is the exact Project; zero: all, those without a Project too.
	Project event.ProjectRef
	// Sees tells which Projects exist for the caller; nil: all. The zero Project stands for
	// those without one.
	Sees func(event.ProjectRef) bool
	// Lifecycle is empty for all.
	Lifecycle Lifecycle
}

func (f Filter) match(c Core) bool { return c.Exists() && f.on(shelfOf(c)) }

// on reports whether the Sessions of a shelf match.
func (f Filter) on(s shelf) bool {
	project := event.ProjectRef{Client: event.ClientID(s.client), Project: event.ProjectID(s.project)}
	return (f.AnyAuthority || f.Authority != "" && f.Authority == s.authority) &&
		(f.Project.Zero() || f.Project == project) && (f.Lifecycle == "" || f.Lifecycle == s.lifecycle) &&
		(f.Sees == nil || f.Sees(project))
}

// place is where a Session stands in an order: in lists newest update first (its time), id as
// tiebreak (LST-12).
type place struct {
	at int64
	id event.SessionID
}

func before(a, b place) int {
	if n := cmp.Compare(b.at, a.at); n != 0 {
		return n
	}
	return cmp.Compare(a.id, b.id)
}

// overlay is what memory knows beyond the file, at a moment before the file is read.
type overlay struct {
	file  *tables
	cores map[event.SessionID]Core // one that does not exist is removed, or not there yet
	// spoilt: a row among them is damaged, so what was counted of it may differ.
	spoilt bool
}

// over reads the Sessions that the file has not as they are: no more than a batch.
func (s *Store) over() overlay {
	s.mu.Lock()
	peeked := make([]peeked, 0, len(s.dirty))
	o := overlay{file: s.file, cores: make(map[event.SessionID]Core, len(s.dirty))}
	for id, e := range s.dirty {
		peeked = append(peeked, s.peek(id))
		o.spoilt = o.spoilt || e.rewrite
	}
	s.mu.Unlock()
	for _, p := range peeked {
		c, err := s.coreOf(o.file, p)
		if err != nil {
			// Its rows are damaged and the log cannot give it: it spoils only itself (SES-30).
			c = Core{}
		}
		o.cores[p.id] = c
	}
	return o
}

// tell reports a file that cannot be read, for callers that get no error.
func (s *Store) tell(err error) {
	s.mu.Lock()
	keeper := s.keeper
	s.mu.Unlock()
	if err != nil && keeper != nil {
		keeper.Spoiled(err)
	}
}

// Select gives limit of the matching Sessions from offset on, newest update first, and how many
// match in all. Nothing becomes hot by it. A Session that is damaged beyond repair is left out
// of the rows. What it costs grows with the page and with how far the offset is, not with how
// many Sessions there are.
func (s *Store) Select(f Filter, offset, limit int) (page []Core, total int, err error) {
	o, places, n, err := s.pick(f, span{offset, limit})
	if err != nil {
		return nil, 0, err
	}
	page, odd := s.cores(o, f, places)
	if odd && o.file != nil {
		s.tell(o.file.compare(context.Background(), f, o, span{offset, limit}))
	}
	return page, n.Active + n.Closed, nil
}

// Resting gives at most n Closed Sessions without an open call or Job, of every authority: those
// that came to rest first, as the log has it.
func (s *Store) Resting(n int) ([]Core, error) {
	o := s.over()
	var mine []place
	for id, c := range o.cores {
		if c.Exists() && c.Rested > 0 {
			mine = append(mine, place{int64(c.Rested), id})
		}
	}
	for reach := n + len(o.cores); ; reach *= 2 { // what cannot be read is passed over
		var rows []place
		if o.file != nil {
			var err error
			if rows, err = placesOf(o.file.rested.Query(reach)); err != nil {
				return nil, err
			}
		}
		more := len(rows) == reach
		rows = slices.DeleteFunc(rows, func(p place) bool { _, is := o.cores[p.id]; return is })
		all := append(rows, mine...)
		slices.SortFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
		out, _ := s.cores(o, Filter{AnyAuthority: true, Lifecycle: Closed}, all[:min(len(all), reach)])
		if len(out) >= n || !more {
			return out[:min(n, len(out))], nil
		}
	}
}

// Newest gives the ids of the limit matching Sessions that were updated last, and how many match
// in all. No Session is read for it.
func (s *Store) Newest(f Filter, limit int) (ids []event.SessionID, total int, err error) {
	_, places, n, err := s.pick(f, span{0, limit})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range places {
		ids = append(ids, p.id)
	}
	return ids, n.Active + n.Closed, nil
}

// Retained is how many Sessions match, by lifecycle.
type Retained struct{ Active, Closed int }

func (c *Retained) add(l Lifecycle, n int) {
	switch l {
	case Active:
		c.Active += n
	case Closed:
		c.Closed += n
	}
}

// Count counts the matching Sessions without going through them. Where the file cannot be read
// its keeper is told.
func (s *Store) Count(f Filter) Retained {
	_, _, n, err := s.pick(f, span{})
	s.tell(err)
	return n
}

// cores reads the Sessions of a page. odd: one of them is not what the order says of it, since
// it changed meanwhile or since the order is damaged.
func (s *Store) cores(o overlay, f Filter, places []place) (page []Core, odd bool) {
	seen := make(map[event.SessionID]bool, len(places))
	for _, p := range places {
		c, ok := o.cores[p.id]
		if !ok {
			c, ok = s.Core(p.id)
			odd = odd || !ok || seen[p.id] || c.UpdatedAt.UnixMilli() != p.at
			if !ok || !f.match(c) || seen[p.id] {
				continue
			}
		}
		seen[p.id] = true
		page = append(page, c)
	}
	return page, odd
}

// compare holds the places of a span against the rows at one moment: state.ErrRow where an
// index has another place than the row, a row that is not there, or others than were counted.
func (t *tables) compare(ctx context.Context, filter Filter, o overlay, p span) error {
	return t.at(ctx, func(f snapshot) error {
		places, err := f.pick(ctx, filter, o, p, new(Retained))
		for i := 0; err == nil && i < len(places); i++ {
			var at int64
			_, at, _, err = f.shelfOn(ctx, places[i].id)
			if err == nil && (at != places[i].at || slices.Index(places, places[i]) < i) {
				err = state.ErrRow
			}
		}
		return err
	})
}

// span is the part of the order that is asked for.
type span struct{ offset, limit int }

// reach is how many places have to be looked at when there are so many.
func (p span) reach(total int) int {
	if p.limit <= 0 || p.offset >= total {
		return 0
	}
	return p.offset + min(p.limit, total-p.offset)
}

// of gives the span of the places that lie at its end.
func (p span) of(places []place) []place {
	slices.SortFunc(places, before)
	places = places[min(p.offset, len(places)):]
	return places[:min(p.limit, len(places))]
}

// pick gives the matching places of a span, and how many match in all.
func (s *Store) pick(f Filter, p span) (o overlay, places []place, total Retained, err error) {
	if !f.AnyAuthority && f.Authority == "" {
		return o, nil, total, nil
	}
	o = s.over()
	var mine []place
	for id, c := range o.cores {
		if f.match(c) {
			mine = append(mine, place{c.UpdatedAt.UnixMilli(), id})
			total.add(c.Lifecycle, 1)
		}
	}
	if o.file == nil {
		return o, p.of(mine), total, nil
	}
	var rows []place
	held := total
	look := func() error {
		total = held
		return o.file.at(context.Background(), func(file snapshot) (err error) {
			rows, err = file.pick(context.Background(), f, o, p, &total)
			return err
		})
	}
	if err = look(); errors.Is(err, state.ErrRow) && !o.spoilt {
		s.tell(err) // a count is damaged: the next start mends it, until then all are counted
		o.spoilt = true
		err = look()
	}
	if err != nil {
		return o, nil, Retained{}, err
	}
	return o, p.of(append(mine, rows...)), total, nil
}

// pick adds what the rows have to the total, and gives all of theirs that can lie in the span,
// in no order; both without the Sessions that memory knows better.
func (f snapshot) pick(ctx context.Context, filter Filter, o overlay, p span, total *Retained) (places []place, err error) {
	shelves, err := f.shelves(ctx, filter, o.spoilt)
	if err != nil {
		return nil, err
	}
	known := map[int64]int{} // on each shelf, of those that memory knows better
	for id := range o.cores {
		num, _, ok, err := f.shelfOn(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok {
			known[num]++
		}
	}
	for _, on := range shelves {
		total.add(on.lifecycle, int(on.sessions)-known[on.num])
	}
	reach := p.reach(total.Active + total.Closed)
	for _, on := range shelves {
		if reach == 0 {
			break
		}
		want := reach + known[on.num]
		some, err := f.take(ctx, on.num, want)
		if err == nil && len(some) < min(want, int(on.sessions)) && !o.spoilt {
			err = state.ErrRow // the index has lost some that were counted
		}
		if err != nil {
			return nil, err
		}
		places = append(places, slices.DeleteFunc(some, func(p place) bool { _, is := o.cores[p.id]; return is })...)
	}
	return places, nil
}

// Overflowed reports whether an event has left a Session's tail after a time: the log may hold
// it for as long as what came before that time.
func (s *Store) Overflowed(after time.Time) (bool, error) {
	o := s.over()
	for _, c := range o.cores {
		if c.Observed > MaxTail && c.UpdatedAt.After(after) {
			return true, nil
		}
	}
	if o.file == nil {
		return false, nil
	}
	ids, err := idsOf(o.file.overflowed.Query(after.UnixMilli(), len(o.cores)+1))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(ids, func(id event.SessionID) bool { _, known := o.cores[id]; return !known }), nil
}
