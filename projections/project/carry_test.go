package project_test

import (
	"testing"

	"webcodex/eventlog/event"
	"webcodex/projections/project"
)

// A Project whose registration has left the log is known by what was carried forward; what is
// damaged, of another Project or of another form is not believed.
//
// Covers: RES-19
func TestCarriedProject(t *testing.T) {
	ref := event.ProjectRef{Client: "box", Project: "demo-00000000"}
	want := event.ProjectRegistered{Project: ref, Name: "demo", Root: "root"}
	whole := project.NewStore()
	whole.Apply(1, "", event.Commit{Aggregate: event.ProjectAggregate(ref), Version: 1, Events: []event.Event{want}})
	form, state, ok, err := whole.Carry(t.Context(), event.ProjectAggregate(ref))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	parts, err := event.SplitState(form, state)
	if err != nil || len(parts) != 1 {
		t.Fatal(parts, err)
	}
	restore := func(agg event.Aggregate, p event.CarriedPart) []event.ProjectRegistered {
		s := project.NewStore()
		s.Apply(2, "", event.Commit{Aggregate: agg, Version: 2, Events: []event.Event{event.ProjectCarried{Part: p}}})
		return s.Known()
	}
	if got := restore(event.ProjectAggregate(ref), parts[0]); len(got) != 1 || got[0] != want {
		t.Fatalf("%+v", got)
	}
	other := event.ProjectRef{Client: "box", Project: "other-00000000"}
	damaged, form2 := parts[0], parts[0]
	damaged.Hash = event.Hash(nil)
	form2.State++
	for name, got := range map[string][]event.ProjectRegistered{
		"of another Project": restore(event.ProjectAggregate(other), parts[0]),
		"damaged":            restore(event.ProjectAggregate(ref), damaged),
		"of another form":    restore(event.ProjectAggregate(ref), form2),
	} {
		if len(got) != 0 {
			t.Errorf("state %s was believed: %+v", name, got)
		}
	}
	for _, a := range []event.Aggregate{event.ProjectAggregate(other), event.LogAggregate()} {
		if _, _, ok, err := whole.Carry(t.Context(), a); ok || err != nil {
			t.Errorf("%s was carried", a)
		}
	}
}
