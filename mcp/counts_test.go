package mcp

import (
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

// A summary counts each recorded tool by what it does (EVT-24): the projection's names and
// the catalogue's classes must not drift apart.
func TestSummariesCountEveryToolByItsClass(t *testing.T) {
	for _, tool := range Catalogue() {
		if tool.Spec.Plane != call.PlaneProject {
			continue
		}
		id := event.NewSessionID()
		v := session.View{}.Apply(1, "", event.Commit{Aggregate: event.SessionAggregate(id), Version: 1, At: time.Unix(0, 0), Events: []event.Event{
			event.SessionCreated{Mode: event.ModeNormal},
			event.ToolCallFinished{Call: event.NewCallID(), Role: event.RoleBusiness, Tool: tool.Spec.Name, Status: event.StatusSucceeded}}})
		c := session.NewSummary(v, nil).Counts
		want := map[call.Class][3]int{call.Observe: {1, 0, 0}, call.Write: {0, 1, 0}, call.Execute: {0, 0, 1}, call.Mutate: {0, 0, 1}}
		if tool.Category != "execution" {
			want[call.Mutate] = want[call.Observe] // it changes neither files nor processes
		}
		if got := [3]int{c.ReadLike, c.WriteLike, c.ShellLike}; got != want[tool.Spec.Class] {
			t.Errorf("%s counts as read, write, shell %v", tool.Spec.Name, got)
		}
	}
}
