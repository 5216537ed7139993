package main

import (
	"strings"
	"testing"

	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// given a Session whose first commits have left the log, when it is asked for as it was then,
// then the answer says that they have left and from where on there is something, not that the
// Session did not exist; as it was later it is told.
func TestReplayAtWhatHasLeft(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, id := begin(t, c)
	const before = "2001-02-03T04:05:06Z"
	at := func(point string) (session.Summary, error) {
		t.Helper()
		p, err := session.ParsePoint(point)
		if err != nil {
			t.Fatal(err)
		}
		return readAsOf(t.Context(), data, id, point, p)
	}
	if _, err := at(before); err == nil || !strings.Contains(err.Error(), "did not exist yet") {
		t.Errorf("before its first commit: %v", err)
	}
	if _, err := at("1"); err != nil {
		t.Error(err)
	}
	gone := saying(t, c, w, "gone")
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := erase(t.Context(), data, gone); err != nil { // the history of all up to here leaves
		t.Fatal(err)
	}
	lines, err := replayLines(t.Context(), data, id)
	if err != nil || lines[0].Version < 2 {
		t.Fatalf("%+v %v", lines, err)
	}
	for _, point := range []string{"1", before} {
		if _, err := at(point); fault.KindOf(err) != fault.InvalidArguments || !strings.Contains(err.Error(), "has left the log") || !strings.Contains(err.Error(), lines[0].At) {
			t.Errorf("%s: %v", point, err)
		}
	}
	if sum, err := at("99"); err == nil || !strings.Contains(err.Error(), "has no version 99") {
		t.Errorf("%+v %v", sum, err)
	}
	if sum, err := at("2099-01-01T00:00:00Z"); err != nil || sum.SessionID != id {
		t.Errorf("%+v %v", sum, err)
	}
}
