package retention

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"webcodex/eventlog/event"
)

// Tombstone is what is left of a removed Session: exactly these members (SES-34). Both owner
// fingerprints are from creation; the principal is the owning one (ruling 6).
type Tombstone struct {
	Session     event.SessionID `json:"session"`
	Authority   string          `json:"authority"`
	Principal   string          `json:"principal"`
	Incarnation string          `json:"incarnation"`
	// Ordinal says only which of two tombstones is the older one (SES-35).
	Ordinal uint64 `json:"expiry_ordinal"`
}

func (t Tombstone) valid() bool {
	return t.Session.Valid() && event.ValidFingerprint(t.Principal) && event.ValidFingerprint(t.Incarnation) && t.Ordinal > 0
}

// Tombstones folds them, oldest first. There are at most as many as Closed Sessions are
// retained (SES-36), so they lie in memory; the file only spares a start the log. It is safe
// for concurrent use.
type Tombstones struct {
	mu      sync.RWMutex
	applied uint64
	order   []Tombstone // by ordinal
	by      map[event.SessionID]Tombstone
	carried event.Gather

	dirty   changes // since the last capture
	writing changes // captured; the file may have it or not
}

// New is an empty fold; feed it through Apply.
func New() *Tombstones {
	return &Tombstones{by: map[event.SessionID]Tombstone{}, dirty: changes{}, writing: changes{}}
}

// Apply folds one commit (eventlog.Fold).
func (s *Tombstones) Apply(seq uint64, _ string, c event.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq <= s.applied {
		return
	}
	s.applied = seq
	if c.Aggregate != event.RetentionAggregate() {
		return
	}
	for _, e := range c.Events {
		switch e := e.(type) {
		case event.SessionRemoved:
			s.add(Tombstone{e.Session, e.Authority, e.Principal, e.Incarnation, e.Ordinal})
		case event.TombstonesDropped:
			s.drop(e.Sessions)
		case event.TombstonesRenumbered:
			s.replace(renumbered(s.order))
		default: // carried: below
		}
	}
	had := !s.carried.Empty()
	g, state := s.carried.Next(c)
	s.carried = g
	s.dirty.parts = s.dirty.parts || had || !g.Empty()
	if state != nil && state.Form == stateForm {
		if list, ok := readState(state.State); ok {
			s.replace(list)
		}
	}
}

// add takes one tombstone; a malformed one, or a second of one id, drops itself only (RES-04).
func (s *Tombstones) add(t Tombstone) {
	if _, twice := s.by[t.Session]; twice || !t.valid() {
		return
	}
	i, _ := slices.BinarySearchFunc(s.order, t.Ordinal+1, func(x Tombstone, n uint64) int { return cmp.Compare(x.Ordinal, n) })
	if n := len(s.order); n == 0 || s.order[n-1].Ordinal <= t.Ordinal {
		i = n
	}
	s.order = slices.Insert(s.order, i, t)
	s.by[t.Session] = t
	s.dirty.put(t)
}

// drop forgets some; the oldest leave first, so they are at the front.
func (s *Tombstones) drop(ids []event.SessionID) {
	for _, id := range ids {
		if _, ok := s.by[id]; !ok {
			continue
		}
		delete(s.by, id)
		s.dirty.forget(id)
		switch i := slices.IndexFunc(s.order, func(t Tombstone) bool { return t.Session == id }); i {
		case 0:
			s.order = s.order[1:]
		default:
			s.order = slices.Delete(s.order, i, i+1)
		}
	}
}

// replace makes list the tombstones there are.
func (s *Tombstones) replace(list []Tombstone) {
	for id := range s.by {
		s.dirty.forget(id)
	}
	s.order, s.by = nil, map[event.SessionID]Tombstone{}
	for _, t := range list {
		s.add(t)
	}
}

// renumbered gives the ordinals 1, 2, … in the order there is (SES-35).
func renumbered(list []Tombstone) []Tombstone {
	out := slices.Clone(list)
	for i := range out {
		out[i].Ordinal = uint64(i) + 1
	}
	return out
}

// Find gives the tombstone of a removed Session, while it is kept.
func (s *Tombstones) Find(id event.SessionID) (Tombstone, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, ok := s.by[id]
	return t, ok
}

// All lists the tombstones, oldest first.
func (s *Tombstones) All() []Tombstone {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.order)
}

// Standing is what a removal is decided on.
type Standing struct {
	Count  int
	Newest uint64            // ordinal of the newest, 0: there is none
	Oldest []event.SessionID // those that leave first, in their order
}

// Standing tells how many tombstones there are and names the n oldest.
func (s *Tombstones) Standing(n int) Standing {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := Standing{Count: len(s.order)}
	for _, t := range s.order[:min(n, len(s.order))] {
		st.Oldest = append(st.Oldest, t.Session)
	}
	if st.Count > 0 {
		st.Newest = s.order[st.Count-1].Ordinal
	}
	return st
}

// stateForm is the version of the carried state: a list of Tombstone.
const stateForm = 1

// Carry gives the state of the retention aggregate, to be brought forward in its own commits,
// and the form it has. False: it is another aggregate.
func (s *Tombstones) Carry(a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a != event.RetentionAggregate() {
		return 0, nil, false, nil
	}
	state, err = json.Marshal(s.All())
	return stateForm, state, err == nil, err
}

// readState reads the list; a malformed row drops itself only (RES-04).
func readState(b []byte) ([]Tombstone, bool) {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		return nil, false
	}
	var out []Tombstone
	for _, raw := range list {
		var t Tombstone
		if json.Unmarshal(raw, &t) == nil && t.valid() {
			out = append(out, t)
		}
	}
	return out, true
}

// changes are what the file lacks: a tombstone to put, or nil where it is gone.
type changes struct {
	rows  map[event.SessionID]*Tombstone
	parts bool // the parts of a carried state changed
}

func (c *changes) set(id event.SessionID, t *Tombstone) {
	if c.rows == nil {
		c.rows = map[event.SessionID]*Tombstone{}
	}
	c.rows[id] = t
}

func (c *changes) put(t Tombstone)           { c.set(t.Session, &t) }
func (c *changes) forget(id event.SessionID) { c.set(id, nil) }
func (c changes) empty() bool                { return len(c.rows) == 0 && !c.parts }
func (c changes) merged(newer changes) changes {
	out := changes{maps.Clone(c.rows), c.parts || newer.parts}
	for id, t := range newer.rows {
		out.set(id, t)
	}
	return out
}
