package attention_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/attention"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Covers: ACK-05, ACK-22, REC-14
func TestARecorderSelectsAttentionBeforeAnyWindow(t *testing.T) {
	var affine event.SessionID
	asked := 0
	var e *calltest.Env
	e = env(t, func(context.Context, *call.Call) (view.Core, bool) {
		asked++
		core, ok := e.Store.Core(affine)
		return core, ok
	})
	w := work(e)
	affine = work(e)
	mw, ma := post(e, w, "of the recorder"), post(e, affine, "of the window")
	windowed := func(envelope call.Envelope) *attention.Attention {
		raw, _ := json.Marshal(obj{"project": calltest.Alpha.String()})
		resp, err := e.Kernel.Call(context.Background(), call.Request{Spec: reads, Args: raw, Principal: calltest.Owner(), Transport: "mcp",
			Window: event.WindowID(strings.Repeat("1", 64)), Envelope: envelope})
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			Attention *attention.Attention `json:"session_attention"`
		}
		if err := json.Unmarshal(resp.Output, &out); err != nil {
			t.Fatal(err)
		}
		return out.Attention
	}
	a := windowed(call.Envelope{Record: string(w)})
	shows(t, a, mw)
	if asked != 0 || a.SessionID != w || a.Source != attention.SourceRecorder {
		t.Errorf("asked %d times: %+v", asked, a)
	}
	before := len(e.Commits(affine))
	a = windowed(call.Envelope{})
	shows(t, a, ma)
	if a.SessionID != affine || a.Source != attention.SourceAffinity || len(e.Commits(affine)) != before {
		t.Errorf("%+v", a)
	}
	shows(t, windowed(call.Envelope{AckRef: a.AckRef}))
	// All that it leaves is that the ACK came.
	events := e.Events(affine)
	if _, only := events[len(events)-1].(event.MessagesAcknowledged); !only || len(e.Commits(affine)) != before+1 {
		t.Errorf("%+v", events)
	}
	if ask(e, calltest.Owner(), call.Envelope{}) != nil {
		t.Error("a call without a window has attention")
	}
	if n := len(acks(e, affine)); ask(e, calltest.Owner(), call.Envelope{AckRef: a.AckRef}) != nil || len(acks(e, affine)) != n {
		t.Error("a ref without a Session to expand it in acknowledges something")
	}
}

// The call that closes the Session shows nothing of it any more; a refusal carries no attention.
func TestNoAttentionOfAClosedSession(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	post(e, w, "1")
	resp, err := e.CallWith(context.Background(), calltest.Owner(), &session.CloseSession, obj{"session_id": w}, call.Envelope{Record: string(w)})
	if err != nil || strings.Contains(string(resp.Output), "session_attention") {
		t.Errorf("%s %v", resp.Output, err)
	}
	if _, err := e.CallWith(context.Background(), calltest.Owner(), reads, obj{"project": calltest.Alpha.String()}, call.Envelope{Record: string(w)}); fault.KindOf(err) != fault.SessionClosed {
		t.Errorf("%v", err)
	}
}
