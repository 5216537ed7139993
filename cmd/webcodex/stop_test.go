package main

import "testing"

// A server that is asked to end under load drains: it ends with status 0, every acknowledged
// call is in its Session, none ran twice, and what is recorded agrees with the marks.
//
// Covers: SES-46
func TestStoppedServerLosesNothing(t *testing.T) {
	t.Parallel()
	h := newKillTest(t)
	h.end = func() {
		if err := h.server.stop(); err != nil {
			t.Error(err)
		}
	}
	const rounds = 3
	for round := range rounds {
		h.round(round)
	}
	h.start(rounds)
	if err := h.server.stop(); err != nil {
		t.Fatal(err)
	}
	h.verify("SIGTERM", rounds)
}
