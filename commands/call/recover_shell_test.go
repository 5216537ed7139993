package call_test

import (
	"context"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/runner/wire"
)

// A command in a persistent shell that a dead server left open is no Job, although its Runner still
// has it in hand, and no change of files, although it ended.
//
// Covers: SHL-27
func TestACommandInAShellIsNoJobAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		reply wire.QueryReply
		state event.ExecutionState
	}{
		"it runs":  {wire.QueryReply{State: wire.JStarting}, event.OutcomeUnknown},
		"it ended": {wire.QueryReply{State: wire.JTerminal, Result: &wire.Result{State: wire.JTerminal}}, event.Completed},
	} {
		e := calltest.New(t, nil)
		id := work(e, calltest.Alpha, "")
		x := dead(t, e, id, tool(call.Execute, func(ctx context.Context, c *call.Call) (call.Result, error) {
			_, err := c.Effect(ctx, wire.OpShellExecute, wire.ShellExecuteIn{}, call.EffectOptions{Timeout: time.Minute})
			return call.Result{}, err
		}))
		e.Fleet.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) { return c.reply, nil }
		if _, err := e.Kernel.Recover(context.Background()); err != nil {
			t.Fatal(err)
		}
		events := e.Events(id)
		f, ok := events[len(events)-1].(event.ToolCallFinished)
		if !ok || f.Promoted || f.Effect.State != c.state || f.Effect.StateChanged || f.Execution != x {
			t.Errorf("%s: %+v", name, events[len(events)-1])
		}
		if core, _ := e.Store.Core(id); len(core.Jobs) != 0 || core.Edited {
			t.Errorf("%s: %d Jobs, edited %v", name, len(core.Jobs), core.Edited)
		}
	}
}
