package supervise

import (
	"path/filepath"
	"sync"
	"testing"

	"webcodex/eventlog/event"
)

// Who looks at all Jobs while one is being made does not keep it from being made, and its lock is
// held from the moment that it is.
func TestAJobIsMadeWhileOthersLook(t *testing.T) {
	jobs := t.TempDir()
	for range 60 {
		rec := Record{ID: event.NewExecutionID()}
		dir := filepath.Join(jobs, string(rec.ID))
		made := make(chan struct{})
		var lookers sync.WaitGroup
		for range 4 {
			lookers.Go(func() {
				for {
					select {
					case <-made:
						return
					default:
						Open(dir)
					}
				}
			})
		}
		p, err := Prepare(jobs, rec)
		close(made)
		if err != nil {
			t.Fatal(err)
		}
		lookers.Wait()
		if _, state := Open(dir); state != Held {
			t.Errorf("state %d", state)
		}
		p.Abandon()
	}
}
