package retention

import (
	"maps"
	"slices"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
	"webcodex/runner/wire"
)

// Settle gives the events after which a Session may leave: its open calls and Jobs end with an
// unknown outcome, and an Active one is closed. Only who knows that no server serves it may ask,
// for a Session that is to be forgotten: a start asks the Runner's journal for what can be proven.
// At most maxSettled ends are named at once; it is asked again until it gives none.
func Settle(c session.Core) (events []event.Event) {
	for _, id := range slices.Sorted(maps.Keys(c.Open)) {
		s := c.Open[id].Started
		e := event.ToolCallFinished{Call: s.Call, Role: s.Role, Tool: s.Tool, Transport: s.Transport, Status: event.StatusFailed,
			ErrorKind: string(fault.OutcomeUnknown), FailureKind: string(fault.OutcomeUnknown), Effect: unknown(s.Execution),
			Expectation: "none", Recovered: true, ErrorSummary: "the server ended before it could answer, and the Session is being erased"}
		if s.Execution != nil {
			e.Execution = s.Execution.ID
		}
		events = append(events, e)
	}
	for _, id := range slices.Sorted(maps.Keys(c.Jobs)) {
		job := c.Jobs[id]
		events = append(events, event.ExecutionFinished{Execution: id, Call: job.Call, Tool: job.Tool,
			FailureKind: string(fault.OutcomeUnknown), Effect: unknown(&job.Execution), Expectation: "none"})
	}
	if len(events) > maxSettled {
		return events[:maxSettled]
	}
	if c.Lifecycle == session.Active {
		events = append(events, event.SessionClosed{})
	}
	return events
}

// unknown is the effect of a call whose end nobody saw.
func unknown(x *event.Execution) event.Effect {
	e := event.Effect{State: event.OutcomeUnknown, StateChanged: true}
	if x != nil { // else it made no effect on a Runner, and a decision of our own may stand
		e.CommandStarted, e.StateChanged = true, wire.Op(x.Op).ChangesFiles()
	}
	return e
}
