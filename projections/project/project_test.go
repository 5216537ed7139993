package project_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/eventlog/event"
	"webcodex/projections/project"
)

func TestFoldKeepsTheLastRegistration(t *testing.T) {
	reg := func(client, id, name string) event.ProjectRegistered {
		return event.ProjectRegistered{Project: event.ProjectRef{Client: event.ClientID(client), Project: event.ProjectID(id)}, Name: name, Root: "r"}
	}
	s := project.NewStore()
	s.Apply(1, "", event.Commit{Events: []event.Event{reg("b", "x", "one")}})
	s.Apply(2, "", event.Commit{Events: []event.Event{reg("a", "x", "two"), event.SessionClosed{}}})
	s.Apply(3, "", event.Commit{Events: []event.Event{reg("b", "x", "three")}})
	s.Apply(2, "", event.Commit{Events: []event.Event{reg("b", "x", "seen before")}})
	if diff := cmp.Diff([]event.ProjectRegistered{reg("a", "x", "two"), reg("b", "x", "three")}, s.Known()); diff != "" {
		t.Error(diff)
	}
}

// A Project that was unregistered stays known, without a root, until it is registered again: what
// is of it can still be found. One that never was registered is not made up.
func TestFoldKeepsWhatWasUnregistered(t *testing.T) {
	p := event.ProjectRegistered{Project: event.ProjectRef{Client: "a", Project: "x"}, Name: "one", Root: "r"}
	other := event.ProjectRef{Client: "a", Project: "y"}
	s := project.NewStore()
	for i, step := range []struct {
		e    event.Event
		root string
	}{{p, "r"}, {event.ProjectUnregistered{Project: p.Project}, ""}, {event.ProjectUnregistered{Project: other}, ""}, {p, "r"}} {
		s.Apply(uint64(i+1), "", event.Commit{Events: []event.Event{step.e}})
		want := p
		want.Root = step.root
		if diff := cmp.Diff([]event.ProjectRegistered{want}, s.Known()); diff != "" {
			t.Errorf("after %+v: %s", step.e, diff)
		}
	}
}
