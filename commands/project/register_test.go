package project

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/aggregate"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/projections/project"
)

// A Project is recorded once, again when it has changed or was unregistered meanwhile, and known after a restart.
func TestRegisterRecordsChangesOnly(t *testing.T) {
	dir := t.TempDir()
	p := event.ProjectRegistered{Project: event.ProjectRef{Client: "c", Project: "a-1"}, Name: "a", Root: "r1"}
	moved := p
	moved.Root = "r2"
	store := project.NewStore()
	log, err := eventlog.Open(t.Context(), eventlog.Options{Dir: dir, Server: event.NewInstanceID(), Folds: []eventlog.Fold{store}})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRegistrar(aggregate.NewWriter(log, time.Now), store, event.Actor{Credential: "runner"})
	for _, step := range []struct {
		p       event.ProjectRegistered
		version uint64
	}{{p, 1}, {p, 1}, {moved, 2}, {moved, 2}} {
		if err := r.Register(t.Context(), step.p); err != nil {
			t.Fatal(err)
		}
		if h, err := log.Head(event.ProjectAggregate(p.Project)); err != nil || h.Version != step.version {
			t.Errorf("after %+v the version is %d (%v), want %d", step.p, h.Version, err, step.version)
		}
	}
	a := event.ProjectAggregate(p.Project)
	if h, err := log.Head(a); err != nil {
		t.Fatal(err)
	} else if _, err := log.Append(t.Context(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: a, Expect: h, At: time.Now(),
		Events: []event.Event{event.ProjectUnregistered{Project: p.Project}}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	if h, err := log.Head(event.ProjectAggregate(p.Project)); err != nil || h.Version != 4 {
		t.Errorf("registered again after it was unregistered: version %d, %v", h.Version, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	again := project.NewStore()
	log, err = eventlog.Open(t.Context(), eventlog.Options{Dir: dir, ReadOnly: true, Folds: []eventlog.Fold{again}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if diff := cmp.Diff([]event.ProjectRegistered{moved}, again.Known()); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
}
