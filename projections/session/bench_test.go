package session

import (
	"testing"

	"webcodex/eventlog/event"
)

// BenchmarkFold is one commit of a Session whose tail is full.
func BenchmarkFold(b *testing.B) {
	v := long(MaxTail + 10).view()
	c := event.Commit{Aggregate: event.SessionAggregate(testID), Events: []event.Event{
		event.ToolCallStarted{Call: "c", Tool: "read_files"}, event.ToolCallFinished{Call: "c", Tool: "read_files"}}}
	b.ReportAllocs()
	for b.Loop() {
		c.Version = v.Core.Version + 1
		v = v.Apply(0, "", c)
	}
}

// BenchmarkBrief is a handoff of a Session whose tail is full.
func BenchmarkBrief(b *testing.B) {
	v := long(MaxTail + 10).view()
	b.ReportAllocs()
	for b.Loop() {
		NewHandoff(v, all(), false, nil)
	}
}
