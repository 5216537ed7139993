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
