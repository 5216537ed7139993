package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/external"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// meanwhile makes something happen once, when a handoff looks at the working tree.
func meanwhile(e *calltest.Env, do func()) {
	inner, done := e.Fleet.OnAsk, false
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		if op == wire.OpObserveWorkspace && !done {
			done = true
			do()
		}
		return inner(op, body)
	}
}

func report(e *calltest.Env, id event.SessionID, n int, status string) {
	calltest.Must[external.RecordOut](e, &external.RecordObservation, map[string]any{"project": calltest.Alpha.String(), "session_id": id,
		"adapter_id": strings.Repeat("a", 64), "event_id": fmt.Sprintf("%064x", n), "tool": "lint", "status": status})
}

func raced(b view.Brief) []string {
	return slices.DeleteFunc(slices.Clone(b.Basis.ReasonCodes), func(code string) bool { return !strings.HasSuffix(code, "_during_snapshot") })
}

// given a Session, when others change it, its board or what is reported about it while a handoff
// gathers, then the brief says which, and asks for another look; the call's own recorder pair is
// no change.
//
// Covers: HND-12, HND-35, HND-36, HND-37, HND-38, HND-40, EXT-10
func TestWhatChangesDuringAHandoff(t *testing.T) {
	const moved, reported = "session_changed_during_snapshot", "external_observations_changed_during_snapshot"
	for name, tc := range map[string]struct {
		do   func(*calltest.Env, event.SessionID)
		want []string
	}{
		"nothing": {func(*calltest.Env, event.SessionID) {}, nil},
		"a call": {func(e *calltest.Env, id event.SessionID) {
			e.Append(id, event.ToolCallFinished{Call: event.NewCallID(), Role: event.RoleBusiness, Tool: "read_files", Status: event.StatusSucceeded})
		}, []string{moved}},
		"a message": {func(e *calltest.Env, id event.SessionID) {
			calltest.Must[board.PostOut](e, &board.PostMessage, map[string]any{"session_id": id, "kind": "note", "message": "x"})
		}, []string{moved}},
		"a report":            {func(e *calltest.Env, id event.SessionID) { report(e, id, 9, "unknown") }, []string{reported}},
		"a report once more":  {func(e *calltest.Env, id event.SessionID) { report(e, id, 1, "succeeded") }, nil},
		"a report of another": {func(e *calltest.Env, id event.SessionID) { report(e, begun(e), 1, "failed") }, nil},
	} {
		for _, recorded := range []bool{false, true} {
			e := calltest.New(t, nil)
			id := begun(e)
			report(e, id, 1, "succeeded")
			meanwhile(e, func() { tc.do(e, id) })
			env := call.Envelope{}
			if recorded {
				env = call.Envelope{Record: string(id), Field: "record"}
			}
			events := len(e.Events(id))
			resp, err := e.CallWith(context.Background(), calltest.Owner(), &session.ReadHandoff, map[string]any{"session_id": id}, env)
			if err != nil {
				t.Fatal(err)
			}
			var out view.Handoff
			if err := json.Unmarshal(resp.Output, &out); err != nil {
				t.Fatal(err)
			}
			if got := raced(out.Brief); !slices.Equal(got, tc.want) {
				t.Errorf("%s, recorded %v: %v", name, recorded, got)
			}
			if first := out.Brief.NextActions.Items[0].Tool; len(tc.want) > 0 && (first != "read_session_handoff" || out.Brief.Progress.State != view.StateInsufficient) {
				t.Errorf("%s: %s, then %s", name, out.Brief.Progress.State, first)
			}
			if n := len(e.Events(id)) - events; name == "nothing" && recorded && n != 2 || name == "nothing" && !recorded && n != 0 {
				t.Errorf("recorded %v: it left %d events", recorded, n)
			}
		}
	}
}

func begun(e *calltest.Env) event.SessionID {
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, map[string]any{"project": calltest.Alpha.String(), "instruction": "do it"}).SessionID
}

// The same reports and the same board are in the handoff and in the closeout, and reading them
// changes neither.
//
// Covers: HND-07, HND-18, HND-22, HND-41, HND-46
func TestHandoffAndCloseoutShowTheBoardAndReports(t *testing.T) {
	e := calltest.New(t, nil)
	id := begun(e)
	for n := range 7 {
		report(e, id, n, []string{"unknown", "failed"}[n%2])
	}
	todo := calltest.Must[board.PostOut](e, &board.PostMessage, map[string]any{"session_id": id, "kind": "todo", "message": "later", "requires_ack": true}).MessageID
	calltest.Must[board.PostOut](e, &board.PostMessage, map[string]any{"session_id": id, "kind": "decision", "message": "this way"})
	before := e.Seq()
	h := calltest.Must[view.Handoff](e, &session.ReadHandoff, map[string]any{"session_id": id}).Brief
	f := calltest.Must[view.Finish](e, &session.FinishTask, map[string]any{"session_id": id, "project": calltest.Alpha.String()})
	a, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(f.Brief)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) != string(b) {
		t.Errorf("two briefs:\n%s\n%s", a, b)
	}
	if x := h.External; *x.Total != 7 || *x.Returned != 5 || *x.Unknown != 4 || len(x.Items) != 5 || x.Items[0].ReceivedAt < x.Items[4].ReceivedAt {
		t.Errorf("%+v", x)
	}
	if *h.Attention.OpenTodos != 1 || *h.Task.Decisions.Total != 1 || h.Task.Decisions.Items[0].Text != "this way" {
		t.Errorf("%+v", h.Task.Decisions)
	}
	v, err := e.Store.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := v.Board.Find(todo); e.Seq() > before+1 || !ok || m.Status != view.MessageOpen || !m.Acked.IsZero() || v.Core.Lifecycle != view.Active {
		t.Errorf("reading changed something: %d commits, %+v", e.Seq()-before, m)
	}
}
