package call

import (
	"testing"

	"webcodex/eventlog/event"
)

// A Job that a repeat of its call has brought in before its own call did is one Job: it keeps what
// has become of it, and leaves the table as one.
func TestAJobIsInTheTableOnce(t *testing.T) {
	table := newJobTable()
	first := Job{ID: event.NewExecutionID(), Tool: "run_shell"}
	table.addNew(first)
	table.stop(first.ID)
	table.add(first)
	table.addNew(first)
	if all := table.all(); len(all) != 1 || !all[0].Stopping {
		t.Fatalf("%+v", all)
	}
	table.end(first.ID)
	if n := len(table.running()); n != 0 {
		t.Errorf("%d run", n)
	}
	for range maxJobs {
		table.add(Job{ID: event.NewExecutionID()})
	}
	if all := table.all(); len(all) != maxJobs {
		t.Errorf("%d are kept", len(all))
	}
	if _, there := table.find(first.ID); there {
		t.Error("the oldest that ended is still there")
	}
}
