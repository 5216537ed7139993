package board_test

import (
	"context"
	"sync/atomic"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// Who was let in by a credential that ends under the wait is told nothing of what came.
//
// Covers: MSG-12
func TestWaitOfAnEndedCredential(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	var ended atomic.Bool
	type answer struct {
		resp call.Response
		err  error
	}
	out := make(chan answer, 1)
	go func() {
		resp, err := w.Kernel.Call(context.Background(), call.Request{Spec: &board.ObserveMessages, Principal: calltest.Owner(), Transport: "mcp",
			Args:  encoded(t, w.on(args{"after_observation_token": token, "wait_secs": 60})),
			Holds: func() bool { return !ended.Load() }})
		out <- answer{resp, err}
	}()
	w.waiting(1)
	ended.Store(true)
	w.post(args{"message": "not for you"})
	if a := <-out; fault.KindOf(a.err) != fault.SessionAuthorityDenied || len(a.resp.Output) > 0 {
		t.Errorf("%s %v", a.resp.Output, a.err)
	}
}

// A Session that is removed under a wait ends it.
func TestWaitForASessionThatIsRemoved(t *testing.T) {
	w := newWorld(t)
	token := w.observe("", nil).Token
	w.close()
	ended := make(chan error, 1)
	go func() {
		_, err := w.Call(&board.ObserveMessages, w.on(args{"after_observation_token": token, "wait_secs": 60}))
		ended <- err
	}()
	w.waiting(1)
	w.Commit(event.RetentionAggregate(), event.SessionRemoved{Session: w.id})
	if err := <-ended; fault.KindOf(err) != fault.UnknownSessionID {
		t.Errorf("%v", err)
	}
}
