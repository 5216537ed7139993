package execution_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	link "webcodex/runner/link/client"
	"webcodex/runner/wire"
)

// A Runner that refuses an id which it was granted before cannot take the start back: the end
// it tells is what counts, and the id is forgotten with it.
func TestARefusalAfterTheGrantIsNoEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bus, err := w.log.RunnerBus(client)
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	self := event.NewInstanceID()
	l := link.New(bus, client, nil)
	project := wire.Project{ID: "p-00000001", Name: "p", Root: strings.Repeat("a", 64)}
	ended := make(chan wire.Result, 1)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(ctx, func() wire.Hello {
			return wire.Hello{Protocol: wire.Protocol, Client: client, Instance: self, Projects: []wire.Project{project},
				Capabilities: []string{string(wire.OpShell)}}
		}, link.Handlers{Offer: func(o wire.Offer) wire.OfferReply {
			g, err := l.Claim(ctx, wire.Claim{ID: o.ID, Digest: o.Digest, Instance: self})
			if err != nil || !g.Granted {
				t.Errorf("no grant: %+v %v", g, err)
			}
			zero := 0
			r := wire.Result{ID: o.ID, Digest: o.Digest, Instance: self, State: wire.JTerminal,
				Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &zero}}
			time.AfterFunc(200*time.Millisecond, func() {
				if a, err := l.Result(ctx, r); err != nil || !a.OK {
					t.Errorf("the end was not taken: %+v %v", a, err)
				}
				ended <- r
			})
			return wire.OfferReply{State: wire.JRefused, Fault: fault.New(fault.RunnerRefused, "no more work is taken")}
		}}, nil)
	}()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	wait, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.fleet.WaitRunner(wait, client); err != nil {
		t.Fatal(err)
	}
	target, err := w.fleet.Target(event.ProjectRef{Client: client, Project: project.ID})
	if err != nil {
		t.Fatal(err)
	}
	r := w.run(w.execution(target, wire.OpShell, mark("marker"), 10*time.Second))
	if r.State != wire.JTerminal || r.Process == nil || *r.Process.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	for told, deadline := <-ended, time.Now().Add(10*time.Second); ; time.Sleep(5 * time.Millisecond) {
		a, err := l.Result(ctx, told)
		if err == nil && a.Reason == "not_open" {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the id is still kept: %+v %v", a, err)
		}
	}
}
