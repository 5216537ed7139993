package attention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/attention"
	tools "webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

type obj = map[string]any

// env is a server that shows attention; affine may be nil.
func env(t *testing.T, affine attention.Affine) *calltest.Env {
	t.Helper()
	e := calltest.New(t, nil)
	e.Ambient = []call.Ambient{attention.New(affine)}
	e.Reopen()
	return e
}

func work(e *calltest.Env) event.SessionID {
	e.T.Helper()
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, obj{"project": calltest.Alpha.String(), "instruction": "x"}).SessionID
}

// post puts a message that asks for an ACK on a board.
func post(e *calltest.Env, id event.SessionID, text string, with ...func(*event.MessagePosted)) event.MessageID {
	e.T.Helper()
	m := event.MessagePosted{Message: event.NewMessageID(), Kind: event.MessageNote, Text: text, Priority: event.PriorityNormal, RequiresAck: true}
	for _, w := range with {
		w(&m)
	}
	e.Append(id, m)
	return m.Message
}

var reads = &call.Spec{Name: "some_tool", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject,
	Run: func(context.Context, *call.Call) (call.Result, error) {
		return call.Result{Output: obj{"main": true}}, nil
	}}

func ask(e *calltest.Env, p call.Principal, envelope call.Envelope) *attention.Attention {
	e.T.Helper()
	resp, err := e.CallWith(context.Background(), p, reads, obj{"project": calltest.Alpha.String()}, envelope)
	if err != nil || !resp.Success || !strings.Contains(string(resp.Output), `"main":true`) {
		e.T.Fatalf("the main result changed: %s %v", resp.Output, err)
	}
	if len(resp.Output) > attention.MaxBytes+2048 {
		e.T.Errorf("an answer of %d bytes", len(resp.Output))
	}
	var out struct {
		Attention *attention.Attention `json:"session_attention"`
	}
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		e.T.Fatal(err)
	}
	return out.Attention
}

// see makes a recorded call of the owner and gives what it shows.
func see(e *calltest.Env, w event.SessionID, ref string, acks ...event.MessageID) *attention.Attention {
	e.T.Helper()
	return ask(e, calltest.Owner(), call.Envelope{Record: string(w), Ack: acks, AckRef: ref})
}

func ids(a *attention.Attention) (out []event.MessageID) {
	if a != nil {
		for _, m := range a.Messages {
			out = append(out, m.MessageID)
		}
	}
	return out
}

// acks are the acknowledgements stored on a board.
func acks(e *calltest.Env, id event.SessionID) (out []event.MessagesAcknowledged) {
	for _, ev := range e.Events(id) {
		if a, ok := ev.(event.MessagesAcknowledged); ok {
			out = append(out, a)
		}
	}
	return out
}

func shows(t *testing.T, a *attention.Attention, want ...event.MessageID) {
	t.Helper()
	if got := ids(a); !slices.Equal(got, want) {
		t.Errorf("shows %v, want %v", got, want)
	}
}

// Covers: ACK-02, ACK-03, ACK-13, ACK-14
func TestARefStandsForWhatWasAckedAndWhatWasShown(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	if a := see(e, w, ""); a != nil {
		t.Errorf("an empty board: %+v", a)
	}
	m1, m2 := post(e, w, "first"), post(e, w, "second")
	post(e, w, "asks for nothing", func(m *event.MessagePosted) { m.RequiresAck = false })
	a := see(e, w, "")
	shows(t, a, m1, m2)
	if a.SessionID != w || a.Source != attention.SourceRecorder || a.Open != 2 || a.Acknowledged != 0 || len(a.AckRef) > 192 || a.Messages[0].Message != "first" {
		t.Errorf("%+v", a)
	}
	shows(t, see(e, w, "", m1), m2)
	b := see(e, w, "", m1)
	both := see(e, w, b.AckRef)
	shows(t, both)
	if both.Acknowledged != 2 || both.AckRef != b.AckRef || both.AckRef != a.AckRef {
		t.Errorf("%+v", both)
	}
	shows(t, see(e, w, ""), m1, m2) // nothing is remembered for the next request
	only := see(e, w, both.AckRef, m2)
	shows(t, only)
}

// Attention has these members and no others. A caller that has a number of the Session is told it;
// one that has none gets none by this.
//
// Covers: ACK-02, ACK-21, SES-06
func TestAttentionIsClosedAndSmall(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	post(e, w, "first")
	colleague := calltest.Owner()
	colleague.Actor.Principal = strings.Repeat("b", 64)
	for name, tc := range map[string]struct {
		who  call.Principal
		want string
	}{
		"with a ref": {calltest.Owner(), "ack_ref acknowledged messages open_ack_required remaining session_id session_ref source"},
		"without":    {colleague, "ack_ref acknowledged messages open_ack_required remaining session_id source"},
	} {
		for range 2 {
			resp, err := e.CallWith(t.Context(), tc.who, reads, obj{"project": calltest.Alpha.String()}, call.Envelope{Record: string(w)})
			if err != nil {
				t.Fatal(err)
			}
			var out struct {
				Attention obj `json:"session_attention"`
			}
			if err := json.Unmarshal(resp.Output, &out); err != nil {
				t.Fatal(err)
			}
			members := strings.Join(slices.Sorted(maps.Keys(out.Attention)), " ")
			if ref, ok := out.Attention["session_ref"]; members != tc.want || ok && ref != "~s1" || out.Attention["open_ack_required"] != 1.0 {
				t.Errorf("%s: %v", name, out.Attention)
			}
		}
	}
}

// However many messages there are, one value comes to stand for all of them; what does not fit
// is counted.
//
// Covers: ACK-04, ACK-23
func TestRefsChainUntilAllAreRepresented(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	var all []event.MessageID
	for i := range 50 {
		all = append(all, post(e, w, fmt.Sprintf("%d %s", i, strings.Repeat("漢<", 30))))
	}
	var seen []event.MessageID
	ref := ""
	for range 20 {
		a := see(e, w, ref)
		if len(a.Messages) > attention.MaxMessages || a.Open != 50 || a.Acknowledged != len(seen) || a.Acknowledged+len(a.Messages)+a.Remaining != 50 {
			t.Fatalf("%d shown, %+v", len(a.Messages), a)
		}
		seen = append(seen, ids(a)...)
		if ref = a.AckRef; len(ref) > 192 {
			t.Fatalf("a ref of %d bytes", len(ref))
		}
	}
	if !slices.Equal(seen, all) {
		t.Errorf("%d messages were shown", len(seen))
	}
	if a := see(e, w, ref); len(a.Messages) != 0 || a.Acknowledged != 50 || a.AckRef != ref {
		t.Errorf("%+v", a)
	}
}

// Covers: ACK-23
func TestAttentionIsBoundedInBytes(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	big := post(e, w, strings.Repeat("👩<", view.MaxMessageChars/2))
	small := post(e, w, "small")
	urgent := post(e, w, "urgent", func(m *event.MessagePosted) { m.Priority = event.PriorityHigh })
	low := post(e, w, "later", func(m *event.MessagePosted) { m.Priority = event.PriorityLow })
	a := see(e, w, "")
	shows(t, a, urgent, small, low)
	if a.Remaining != 1 {
		t.Errorf("%+v", a)
	}
	a = see(e, w, a.AckRef)
	shows(t, a, big)
	enc, _ := json.Marshal(a.Messages)
	if !a.Messages[0].Truncated || len(enc) > attention.MaxBytes || len(enc) < 1000 {
		t.Errorf("%d bytes, truncated %v", len(enc), a.Messages[0].Truncated)
	}
	shows(t, see(e, w, a.AckRef))
}

// A ref is for one principal, one Session and one exact membership; else it is nothing.
//
// Covers: ACK-07, ACK-08, ACK-25
func TestAnOldOrForeignRefAcknowledgesNothing(t *testing.T) {
	e := env(t, nil)
	w, other := work(e), work(e)
	m1, m2 := post(e, w, "1"), post(e, w, "2")
	o1 := post(e, other, "1")
	ref := see(e, w, "").AckRef
	shows(t, see(e, other, ref), o1)
	for range 3 { // replay is safe
		shows(t, see(e, w, ref))
	}
	colleague := calltest.Owner()
	colleague.Actor.Principal = strings.Repeat("c", 64) // the same authority group
	shows(t, ask(e, colleague, call.Envelope{Record: string(w), AckRef: ref}), m1, m2)
	m3 := post(e, w, "3") // one joins
	shows(t, see(e, w, ref), m1, m2, m3)
	shows(t, see(e, w, ref, m2), m1, m3) // explicit ids hold all the same
	newer := see(e, w, "").AckRef
	e.Append(w, event.MessageResolved{Message: m2}) // one leaves
	shows(t, see(e, w, newer), m1, m3)
	newer = see(e, w, "").AckRef
	e.Reopen()
	shows(t, see(e, w, newer)) // it outlives the server
	for _, bad := range []string{"x", "wsr1_", newer[:len(newer)-1], newer + "A", strings.ToUpper(newer), newer[:10] + "\n" + newer[10:],
		strings.Repeat("A", 193), string(m1), "~s1", string(w), newer + "\n"} {
		shows(t, see(e, w, bad), m1, m3)
	}
}

// The first ACK of each message leaves one event, echoes none; a message is as open as before.
//
// Covers: ACK-09, ACK-16, ACK-17, ACK-18, ACK-19
func TestOnlyTheFirstAckIsKept(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	m1, m2 := post(e, w, "1"), post(e, w, "2")
	board := func() view.Board {
		v, err := e.Store.Load(w)
		if err != nil {
			t.Fatal(err)
		}
		return v.Board
	}
	before := board().Revision
	ref := see(e, w, "", m1).AckRef
	first, _ := board().Find(m1)
	if a := acks(e, w); len(a) != 1 || !slices.Equal(a[0].Messages, []event.MessageID{m1}) || board().Revision != before+1 {
		t.Fatalf("%+v, revision %d after %d", a, board().Revision, before)
	}
	see(e, w, "", m1)
	see(e, w, ref) // m2 was only shown so far
	if a := acks(e, w); len(a) != 2 || !slices.Equal(a[1].Messages, []event.MessageID{m2}) {
		t.Fatalf("%+v", a)
	}
	for range 3 {
		see(e, w, ref, m1, m2)
	}
	again, _ := board().Find(m1)
	if len(acks(e, w)) != 2 || board().Revision != before+2 || !again.Acked.Equal(first.Acked) || again.Status != view.MessageOpen {
		t.Errorf("%d events, revision %d, %+v", len(acks(e, w)), board().Revision, again)
	}
	shows(t, see(e, w, ""), m1, m2) // however often they were acknowledged
	calltest.Must[obj](e, &tools.ResolveMessage, obj{"session_id": w, "message_id": m1})
	shows(t, see(e, w, ""), m2)
	done, _ := board().Find(m1)
	if done.Status != view.MessageDone || !done.Acked.Equal(first.Acked) {
		t.Errorf("%+v", done)
	}
	raw, err := json.Marshal(done.Show(w))
	var members obj
	if err != nil || json.Unmarshal(raw, &members) != nil || members["first_ack_observed_at"] == nil {
		t.Errorf("%s %v", raw, err)
	}
	for name := range members {
		if regexp.MustCompile(`read|deliver|receipt|seen|accept`).MatchString(name) {
			t.Errorf("a message has %s", name)
		}
	}
}

// Whatever is wrong with an ACK, the call goes on and nothing is acknowledged by it.
//
// Covers: ACK-10, ACK-11, ACK-26, ACK-28
func TestABadAckIsNothing(t *testing.T) {
	e := env(t, nil)
	w, other := work(e), work(e)
	m1 := post(e, w, "1")
	foreign := post(e, other, "1")
	plain := post(e, w, "2", func(m *event.MessagePosted) { m.RequiresAck = false })
	gone := post(e, w, "3")
	e.Append(w, event.MessageResolved{Message: gone})
	bad := []event.MessageID{foreign, plain, gone, event.NewMessageID(), "", "wc_msg_", "mem_1", event.MessageID(strings.Repeat("x", 9000)), m1, m1}
	shows(t, see(e, w, "nonsense", bad[:8]...), m1)
	if a := acks(e, w); len(a) != 0 {
		t.Errorf("%+v", a)
	}
	shows(t, see(e, w, "", bad...))
	if a := acks(e, w); len(a) != 1 || !slices.Equal(a[0].Messages, []event.MessageID{m1}) {
		t.Errorf("%+v", a)
	}
	// Without an authorised Session there is nothing to acknowledge.
	n := len(acks(e, other))
	if a := ask(e, calltest.Owner(), call.Envelope{Ack: []event.MessageID{foreign}, AckRef: see(e, other, "").AckRef}); a != nil || len(acks(e, other)) != n {
		t.Errorf("%+v", a)
	}
}

// Every kind and every priority may ask for an ACK.
//
// Covers: ACK-12
func TestAnyMessageMayAskForAnAck(t *testing.T) {
	for _, kind := range event.MessageKinds() {
		for _, p := range []event.Priority{event.PriorityLow, event.PriorityNormal, event.PriorityHigh} {
			e := env(t, nil)
			w := work(e)
			id := post(e, w, "x", func(m *event.MessagePosted) { m.Kind, m.Priority = kind, p })
			shows(t, see(e, w, ""), id)
			shows(t, see(e, w, "", id))
			if testing.Short() {
				break
			}
		}
	}
}

// A caller who may not read messages is shown none, and one who may not take part leaves no
// trace.
func TestAttentionNeedsItsScopes(t *testing.T) {
	e := env(t, nil)
	w := work(e)
	m := post(e, w, "1")
	if a := ask(e, calltest.Owner(call.ScopeRuntimeRead), call.Envelope{Record: string(w), Ack: []event.MessageID{m}}); a != nil {
		t.Errorf("%+v", a)
	}
	shows(t, ask(e, calltest.Owner(call.ScopeCollaborate), call.Envelope{Record: string(w), Ack: []event.MessageID{m}}))
	if len(acks(e, w)) != 0 {
		t.Error("an observer's ACK is stored")
	}
}
