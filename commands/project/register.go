package project

import (
	"context"
	"slices"
	"time"

	"webcodex/commands/aggregate"
	"webcodex/eventlog/event"
	"webcodex/projections/project"
)

// Registrar records which Runner serves which Project.
type Registrar struct {
	writer *aggregate.Writer
	store  *project.Store
	actor  event.Actor
}

// NewRegistrar makes one; actor stands for the Runners that announce Projects.
func NewRegistrar(w *aggregate.Writer, store *project.Store, actor event.Actor) *Registrar {
	return &Registrar{writer: w, store: store, actor: actor}
}

// Register records a Project that is new or has changed; anything else writes nothing. It may
// use the reserve: a full disk hides no Project.
func (r *Registrar) Register(ctx context.Context, p event.ProjectRegistered) error {
	_, err := r.writer.Do(ctx, aggregate.Command{Aggregate: event.ProjectAggregate(p.Project), Actor: r.actor, Reserve: true},
		func(time.Time) ([]event.Event, error) {
			return DecideRegister(r.store.Known(), p), nil
		})
	return err
}

// DecideRegister is the decision on what is known.
func DecideRegister(known []event.ProjectRegistered, p event.ProjectRegistered) []event.Event {
	if slices.Contains(known, p) {
		return nil
	}
	return []event.Event{p}
}
