package project

import (
	"context"
	"encoding/json"

	"webcodex/eventlog/event"
)

// carriedForm is the version of a Project's carried state. Such state is read for ever: a
// changed form takes the next number.
const carriedForm = 1

// Carry gives a Project's state, to be brought forward in its own commits, and the form it
// has. False: the aggregate is no Project that is known.
func (s *Store) Carry(_ context.Context, a event.Aggregate) (form int, state []byte, ok bool, err error) {
	if a.Domain != event.DomainProject {
		return 0, nil, false, nil
	}
	for _, p := range s.Known() {
		if event.ProjectAggregate(p.Project) == a {
			state, err = json.Marshal(p)
			return carriedForm, state, err == nil, err
		}
	}
	return 0, nil, false, nil
}

// carriedIn reads what a commit brings forward. A registration fits one part.
func carriedIn(c event.Commit) (p event.ProjectRegistered, ok bool) {
	_, state := event.Gather{}.Next(c)
	if state == nil || state.Form != carriedForm || json.Unmarshal(state.State, &p) != nil {
		return p, false
	}
	return p, !p.Project.Zero() && event.ProjectAggregate(p.Project) == c.Aggregate
}
