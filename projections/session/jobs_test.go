package session

import (
	"testing"

	"webcodex/eventlog/event"
)

// A Job that was asked to end is neither running nor ended: it is counted on its own, for as long
// as the server that took the request is there to tell. One of a life that is over is recovering,
// whatever somebody asked of it.
//
// Covers: CON-20, CON-21
func TestAJobThatWasAskedToEnd(t *testing.T) {
	h := began("stopping")
	h.job(1, testServer)
	h.job(2, testServer)
	v := h.view()
	v.Stopping = map[event.ExecutionID]bool{}
	for id := range v.Core.Jobs {
		v.Stopping[id] = true
		break
	}
	want := func(name string, v View, want JobAttention) {
		t.Helper()
		if f, s := NewFeedback(v, all(), 9).Attempt.Jobs, NewValidationSummary(v, all(), nil).Jobs; f != want || s != want {
			t.Errorf("%s: %+v and %+v, want %+v", name, f, s, want)
		}
	}
	want("one of two", v, JobAttention{Active: 2, Running: 1, TerminalPending: 1, Recovery: "active"})
	for id := range v.Core.Jobs {
		v.Stopping[id] = true
	}
	want("both", v, JobAttention{Active: 2, TerminalPending: 2, Recovery: "terminal_pending"})
	want("nobody tells", h.view(), JobAttention{Active: 2, Running: 2, Recovery: "active"})
	h.job(3, "wc_inst_0000000000000000000000000000dead")
	stopping := v.Stopping
	v = h.view()
	v.Stopping = stopping
	for id := range v.Core.Jobs {
		v.Stopping[id] = true
	}
	want("one of a life that is over", v, JobAttention{Active: 3, TerminalPending: 2, Recovering: 1, Recovery: "recovering"})
	stopping["wc_exec_of_another"] = true
	v = began("none").view()
	v.Stopping = stopping
	want("no Job", v, JobAttention{Recovery: "none"})
}
