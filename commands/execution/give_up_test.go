package execution_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner"
	"webcodex/runner/wire"
)

// A read that nobody waits for any more is ended where it is made, not only where it was asked for.
func TestAReadIsGivenUpAtTheRunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := runner.New(runner.Options{Dir: filepath.Join(w.dir, "runner"), Client: client, Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	began, ended := make(chan struct{}), make(chan error, 1)
	runner.Read(r, wire.OpHover, func(ctx context.Context, _ *runner.Project, _ wire.NavigateIn) (wire.HoverOut, error) {
		close(began)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
		}
		ended <- ctx.Err()
		return wire.HoverOut{}, ctx.Err()
	})
	p, err := r.AddProject(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.serve(r))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.fleet.WaitRunner(ctx, client); err != nil {
		t.Fatal(err)
	}
	to := w.target(&life{Runner: r, project: p})
	asked, giveUp := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := w.fleet.Ask(asked, to, wire.OpHover, []byte("{}"), time.Minute)
		answered <- err
	}()
	<-began
	giveUp()
	if err := <-answered; fault.KindOf(err) != fault.Cancelled {
		t.Errorf("%v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the Runner went on: %v", err)
	}
	// Its id is gone with it.
	if ok, err := w.fleet.Cancel(t.Context(), to.Ref.Client, event.NewExecutionID(), "cancelled"); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}
