package session

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"webcodex/eventlog/event"
)

// A clock that goes back moves no update back: not before the last one, nor before the Session
// began.
//
// Covers: LST-12
func TestUpdatesNeverGoBack(t *testing.T) {
	h := began("before the clock was set")
	at := h.at
	for _, back := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		h.at = at.Add(-back)
		h.commit(event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: back.String()}})
		if c := h.view().Core; !c.UpdatedAt.Equal(at) || c.UpdatedAt.Before(c.CreatedAt) {
			t.Fatalf("updated %v, created %v; was updated %v", c.UpdatedAt, c.CreatedAt, at)
		}
	}
	h.at = at
	h.commit(event.SessionClosed{})
	if c := h.view().Core; !c.UpdatedAt.Equal(h.at) {
		t.Fatalf("updated %v, want %v", c.UpdatedAt, h.at)
	}
}

// A Session is at rest from the commit on that leaves it Closed with nothing open, whatever comes
// later, and its carried state says the same; one of an older program says what it can.
//
// Covers: SES-33
func TestRestIsWhereTheLogHasIt(t *testing.T) {
	h := began("a Job is left")
	id := h.callID()
	h.commit(event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: "run_process"})
	h.commit(event.SessionClosed{})
	if c := h.view().Core; c.Rested != 0 {
		t.Fatalf("at rest from %d on, with an open call", c.Rested)
	}
	h.commit(event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "run_process", Status: event.StatusSucceeded})
	rested := h.seq
	h.commit(event.ExecutionReconciled{Execution: "wc_exec_x"})
	v := h.view()
	for _, p := range inParts(t, v, 1) {
		h.commit(event.SessionCarried{Part: p})
	}
	if c := h.view().Core; c.Rested != rested {
		t.Fatalf("at rest from %d on, want %d", c.Rested, rested)
	}
	body := EncodeView(v)
	if got, err := DecodeView(body); err != nil || got.Core.Rested != rested {
		t.Fatalf("carried: %d, %v", got.Core.Rested, err)
	}
	old := bytes.Replace(body, []byte(fmt.Sprintf(`"rested":%d,`, rested)), nil, 1)
	if got, err := DecodeView(old); len(old) == len(body) || err != nil || got.Core.Rested != v.Seq {
		t.Fatalf("carried by an older program: %d, %v", got.Core.Rested, err)
	}
}
