package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/files"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/internal/bench"
)

// One round are flatCalls of each of flatSessions; flatPairs are the rounds of one comparison.
const (
	flatCalls    = 48
	flatSessions = 2
	flatPairs    = 60
)

// A whole recorded call, from the kernel over the Runner into the log and the read models, costs
// the same whether it is call 10, 2,000 or 20,000 of its Session, and whether the server has few
// Sessions or 100,000 of the same Project.
func TestRatioFlatCall(t *testing.T) {
	bench.Skip(t)
	alone, among := newWorld(t, "process"), newWorld(t, "process")
	began := time.Now()
	crowd(t, among)
	// They grow by what is measured: those of 2,000 calls are many, so that each stays near it.
	middle, old := aged(t, alone, 20*flatSessions, 2000), aged(t, alone, flatSessions, 20_000)
	t.Logf("seeded in %s", time.Since(began).Round(time.Millisecond))
	run := func(name string, ours, yardstick func() time.Duration) {
		bench.Run(t, bench.Comparison{Name: name, Pairs: flatPairs, Bar: 1.2, AtMost: true, Ours: ours, Yardstick: yardstick})
	}
	run("6 whole recorded call 2,000 of a Session vs call 10", middle, young(t, alone))
	run("6 whole recorded call 20,000 of a Session vs call 2,000", old, middle)
	run("6 whole recorded call 20,000 of a Session vs call 10", old, young(t, alone))
	run("6 whole recorded call with 100,000 Sessions vs with few", young(t, among), young(t, alone))
}

// young gives rounds of calls 10 and on, each of new Sessions.
func young(t *testing.T, w *world) func() time.Duration {
	return func() time.Duration {
		var ids []event.SessionID
		for range flatSessions {
			id := w.work(args{}).SessionID
			reads(t, w, 10, id)
			ids = append(ids, id)
		}
		return reads(t, w, flatCalls, ids...)
	}
}

// aged gives rounds of calls of Sessions that have had so many before, in turn.
func aged(t *testing.T, w *world, sessions, calls int) func() time.Duration {
	t.Helper()
	var ids []event.SessionID
	var wg sync.WaitGroup
	for range sessions {
		id := w.work(args{}).SessionID
		ids = append(ids, id)
		wg.Go(func() {
			for n := 0; n < calls && !t.Failed(); n++ {
				commit(t, w, event.SessionAggregate(id), pastCall(n)...)
			}
		})
	}
	wg.Wait()
	return func() time.Duration {
		ids = append(ids[flatSessions:], ids[:flatSessions]...)
		return reads(t, w, flatCalls, ids[:flatSessions]...)
	}
}

// pastCall is what a recorded read left.
func pastCall(n int) []event.Event {
	path := fmt.Sprintf("internal/package_%03d/file_%05d.go", n%100, n)
	c := event.NewCallID()
	return []event.Event{
		event.ToolCallStarted{Call: c, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp",
			Input: event.Input{Paths: []string{path}, PathCount: 1}},
		event.ToolCallFinished{Call: c, Role: event.RoleBusiness, Tool: "read_files", Transport: "mcp", Status: event.StatusSucceeded,
			DurationMS: 3, Observed: []string{path}, Effect: event.Effect{State: event.Completed}, Expectation: "none"},
	}
}

// crowd begins Sessions of the owner in the Project, as others before did.
func crowd(t *testing.T, w *world) {
	t.Helper()
	like, ok := w.srv.store.Core(w.work(args{}).SessionID)
	if !ok {
		t.Fatal("the Session is not there")
	}
	const writers = 64
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := i; n < scaleSessions && !t.Failed(); n += writers {
				commit(t, w, event.SessionAggregate(event.NewSessionID()),
					event.SessionCreated{Nonce: event.NewNonce(), Authority: like.Authority, Principal: like.Principal, Project: like.Project,
						Root: like.Root, Title: "one of many", Mode: event.ModeNormal},
					event.InstructionAccepted{Text: "go on", Continuation: "created", Mode: event.ModeNormal, Transport: "mcp"})
			}
		})
	}
	wg.Wait()
	if err := w.srv.models.keeper.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := w.srv.store.Totals(); n.Sessions != scaleSessions+1 {
		t.Fatalf("%+v", n)
	}
}

// commit appends to an aggregate as its next writer.
func commit(t *testing.T, w *world, a event.Aggregate, events ...event.Event) {
	head, err := w.srv.log.Head(a)
	if err == nil {
		_, err = w.srv.log.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: a, Expect: head, At: time.Now(),
			Actor: w.srv.access.Principal().Actor, Invocation: event.NewInvocationID(), Events: events})
	}
	if err != nil {
		t.Error(err)
	}
}

// reads makes recorded calls of each Session and gives their time. What their rows cost is
// measured where they are written: here that comes in bursts, when the log has been synced.
func reads(t *testing.T, w *world, calls int, ids ...event.SessionID) (took time.Duration) {
	t.Helper()
	for _, id := range ids {
		raw, err := json.Marshal(args{"project": w.project, "session_id": string(id), "items": []args{{"path": "go.mod"}}})
		if err != nil {
			t.Fatal(err)
		}
		was, began := w.observed(id), time.Now()
		for range calls {
			resp, err := w.srv.kernel.Call(context.Background(), call.Request{Spec: &files.Read, Args: raw, Principal: w.srv.access.Principal(), Transport: "mcp"})
			if err != nil || !resp.Success {
				t.Fatalf("%v %s", err, resp.Error)
			}
		}
		took += time.Since(began)
		if is := w.observed(id); is != was+2*uint64(calls) {
			t.Fatalf("%d calls left %d events", calls, is-was)
		}
	}
	return took
}
