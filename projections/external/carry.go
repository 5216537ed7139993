package external

import (
	"context"
	"encoding/json"
	"slices"

	"webcodex/eventlog/event"
)

// carriedForm is the version of a Session's carried reports: a list of Report, oldest first.
// Such state is read for ever: a changed form takes the next number.
const carriedForm = 1

// Carry gives the reports about one Session, to be brought forward in commits of their own, and
// the form they have. False: the aggregate holds none.
func (s *Reports) Carry(_ context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a.Domain != event.DomainExternal {
		return 0, nil, false, nil
	}
	list := s.About(event.SessionID(a.ID))
	if list == nil {
		list = []Report{}
	}
	state, err = json.Marshal(list)
	return carriedForm, state, err == nil, err
}

// carriedIn reads what a commit brings forward; a malformed report drops itself only. As many as
// there may be fit one part.
func carriedIn(c event.Commit) (id event.SessionID, list []Report, ok bool) {
	_, state := event.Gather{}.Next(c)
	if state == nil || state.Form != carriedForm || c.Aggregate.Domain != event.DomainExternal {
		return "", nil, false
	}
	var raw []json.RawMessage
	if json.Unmarshal(state.State, &raw) != nil {
		return "", nil, false
	}
	id = event.SessionID(c.Aggregate.ID)
	for _, x := range raw {
		var r Report
		if json.Unmarshal(x, &r) == nil && r.valid() && r.Session == id && len(list) < MaxPerSession && at(list, r.Key()) < 0 {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, order)
	return id, list, true
}
