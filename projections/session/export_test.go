package session

import (
	"math"

	"webcodex/eventlog/event"
)

// List is all that Select can give.
func (s *Store) List(f Filter) []Core {
	all, _, err := s.Select(f, 0, math.MaxInt)
	s.tell(err)
	return all
}

// NewPage is Page of Sessions that are at hand, all of them in their order.
func NewPage(all []Core, offset int, limitAsked *int) Page {
	limit := clamp(limitAsked, ListLimit, MaxListLimit)
	offset = max(offset, 0)
	from := min(offset, len(all))
	return newPage(all[from:min(from+limit, len(all))], len(all), offset, limit)
}

func DecodeCore(b []byte) (View, error) { return decodeCore(string(b)) }

func DecodeItem(b []byte) (Item, error) {
	it, err := decodeItem(string(b))
	if err != nil {
		return Item{}, err
	}
	return it.decoded()
}

// Rootless reports whether the View has seen commits of a Session whose beginning has left the
// log, and not yet the state that was carried forward for it.
func (v View) Rootless() bool { return v.Core.Version > 0 && !v.Core.Exists() }

// WithGathered undoes Gathered.
func (v View) WithGathered(g event.Gather) View {
	v.gather = g
	return v
}
