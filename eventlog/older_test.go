package eventlog

import (
	"strings"
	"testing"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

// A program that does not know how a Session is removed meets such commits: their record is
// closed, every Session stays and goes on.
//
// Covers: SES-41
func TestAProgramThatKnowsNoTombstonesKeepsEverySession(t *testing.T) {
	dir, base := t.TempDir(), newIndex()
	l := open(t, dir, over(base))
	sessions := aggregates(3)
	for _, a := range sessions {
		mustAppend(t, l, a)
	}
	retention := event.RetentionAggregate()
	c := event.Commit{Format: event.Format, ID: event.NewCommandID(), Aggregate: retention, Version: 1,
		Events: []event.Event{event.SessionRemoved{Session: event.SessionID(sessions[0].ID), Ordinal: 1}}}
	body, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	unknown := strings.Replace(string(body), `"retention.session_removed"`, `"retention.unheard_of"`, 1)
	plantBytes(t, l, retention, []byte(unknown))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	base = newIndex() // folds everything again
	l = open(t, dir, over(base))
	defer func() { _ = l.Close() }()
	seen := map[event.Aggregate]int{}
	for _, a := range base.seen {
		seen[a.Commit.Aggregate]++
	}
	for _, a := range sessions {
		if seen[a] != 1 {
			t.Errorf("%s has %d commits", a, seen[a])
		}
		mustAppend(t, l, a)
	}
	if _, err := l.Head(retention); fault.KindOf(err) != fault.LogDamaged || seen[retention] != 0 {
		t.Errorf("what cannot be read was handed out %d times (%v)", seen[retention], err)
	}
}
