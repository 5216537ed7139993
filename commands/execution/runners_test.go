package execution_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/execution"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	link "webcodex/runner/link/client"
	"webcodex/runner/wire"
)

// says runs a Runner that says hello with what a test wants, and counts the offers that reach it.
func (w *world) says(hello wire.Hello) (offers *atomic.Int32) {
	w.t.Helper()
	bus, err := w.log.RunnerBus(client)
	if err != nil {
		w.t.Fatal(err)
	}
	hello.Client, hello.Instance = client, event.NewInstanceID()
	l, offers := link.New(bus, client, nil), new(atomic.Int32)
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(ctx, func() wire.Hello { return hello }, link.Handlers{Offer: func(o wire.Offer) wire.OfferReply {
			offers.Add(1)
			return wire.OfferReply{State: wire.JRefused, Fault: fault.New(fault.RunnerRefused, "no")}
		}}, nil)
	}()
	w.t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			w.t.Error(err)
		}
		bus.Close()
	})
	return offers
}

// What a Runner has not said it can do is not offered to it: the refusal names what is missing,
// and nothing was started.
//
// Covers: SSH-02
func TestNothingIsOfferedThatARunnerCannotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	offers := w.says(wire.Hello{Protocol: wire.Protocol, Capabilities: []string{string(wire.OpShell), "of_another_time"},
		Projects: []wire.Project{{ID: "p-00000001", Name: "p", Root: strings.Repeat("a", 64)}}})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := w.fleet.WaitRunner(ctx, client); err != nil {
		t.Fatal(err)
	}
	target, err := w.fleet.Target(event.ProjectRef{Client: client, Project: "p-00000001"})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range []wire.Op{wire.OpSSHShell, wire.OpProcess, wire.OpRegisterProject} {
		_, err := w.fleet.Run(ctx, w.execution(target, op, mark("marker"), time.Minute))
		if f := fault.As(err); f.Kind != fault.CapabilityUnavailable || f.Reason != string(op) || f.ExecutionState != string(event.NotStarted) {
			t.Errorf("%s: %v %+v", op, err, f)
		}
	}
	if _, err := w.fleet.Ask(ctx, target, wire.OpReadFiles, nil, time.Second); fault.KindOf(err) != fault.CapabilityUnavailable {
		t.Error(err)
	}
	if n := offers.Load(); n != 0 {
		t.Errorf("%d offers were made", n)
	}
	if out, err := w.fleet.Run(ctx, w.execution(target, wire.OpShell, mark("marker"), time.Minute)); err != nil || out.Result.Fault == nil || offers.Load() != 1 {
		t.Errorf("what it can do: %+v %v, %d offers", out, err, offers.Load())
	}
	if all := w.fleet.KnownRunners(); len(all) != 1 || len(all[0].Capabilities) != 1 || all[0].Status != call.RunnerConnected {
		t.Errorf("%+v", all)
	}
}

// A Runner that was let in for named Projects serves those alone, and makes no worktree, which would
// be another; one without a list does.
func TestARunnerOfNamedProjectsMakesNoWorktree(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string]bool{"named": true, "all": false} {
		w := newWorld(t, func(o *execution.Options) {
			o.Remotes.Admit = func(event.ClientID) (func(event.ProjectID, string) bool, bool) {
				return func(_ event.ProjectID, folder string) bool { return !limited || folder == "p" }, true
			}
		})
		w.says(wire.Hello{Protocol: wire.Protocol, Capabilities: []string{string(wire.OpCreateWorktree), string(wire.OpShell)},
			Projects: []wire.Project{{ID: "p-00000001", Name: "p", Root: strings.Repeat("a", 64)}, {ID: "q-00000001", Name: "q", Root: strings.Repeat("b", 64)}}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := w.fleet.WaitRunner(ctx, client); err != nil {
			t.Fatal(err)
		}
		all := w.fleet.Runners()
		if len(all) != 1 || slices.Contains(all[0].Capabilities, string(wire.OpCreateWorktree)) == limited || !slices.Contains(all[0].Capabilities, string(wire.OpShell)) ||
			(all[0].Projects == 1) != limited {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// A Runner in another protocol is refused, listed as such, and named as the reason why its
// Projects cannot be worked on.
func TestARunnerInAnotherProtocolIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.says(wire.Hello{Protocol: wire.Protocol + 1, Build: "webcodex 99", OS: "plan9"})
	for end := time.Now().Add(10 * time.Second); len(w.fleet.KnownRunners()) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was not heard")
		}
	}
	all := w.fleet.KnownRunners()
	if r := all[0]; r.Status != call.RunnerRefused || r.Protocol != wire.Protocol+1 || r.Build != "webcodex 99" || r.Projects != 0 || len(w.fleet.Runners()) != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := w.fleet.Runner(client); fault.KindOf(err) != fault.RunnerUnavailable || fault.As(err).Reason != call.ReasonProtocol {
		t.Errorf("%v", err)
	}
	if _, err := w.fleet.Runner("nobody"); fault.KindOf(err) != fault.UnknownClientID {
		t.Errorf("%v", err)
	}
}
