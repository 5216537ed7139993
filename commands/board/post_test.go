package board_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// Covers: MSG-01, MSG-02, MSG-03, MSG-07
func TestPostAndItsBounds(t *testing.T) {
	w := newWorld(t)
	seen := map[event.MessageID]bool{}
	for _, kind := range event.MessageKinds() {
		for _, p := range []string{"low", "normal", "high"} {
			out := w.post(args{"kind": kind, "priority": p, "requires_ack": p == "high"})
			m := out.Message
			if !out.MessageID.Valid() || seen[out.MessageID] || m.MessageID != out.MessageID || m.SessionID != w.id || m.Kind != kind ||
				string(m.Priority) != p || m.Status != view.MessageOpen || m.RequiresAck != (p == "high") || out.Replayed || m.Author != nil {
				t.Errorf("%s %s: %+v", kind, p, out)
			}
			seen[out.MessageID] = true
		}
	}
	tags := func(n, chars int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = strings.Repeat("é", chars)
		}
		return out
	}
	if m := w.post(args{"message": strings.Repeat("é", board.MaxText), "tags": tags(board.MaxTags, board.MaxTagChars)}).Message; len([]rune(m.Message)) != board.MaxText ||
		len(m.Tags) != board.MaxTags || m.Priority != event.PriorityNormal {
		t.Errorf("at the bounds: %d characters, %d tags", len([]rune(m.Message)), len(m.Tags))
	}
	for field, a := range map[string]args{
		"message": {"message": strings.Repeat("é", board.MaxText+1)},
		"tags":    {"tags": tags(board.MaxTags+1, 1)},
		"tags[1]": {"tags": []string{"a", strings.Repeat("é", board.MaxTagChars+1)}},
		"tags[0]": {"tags": []string{" "}},
	} {
		full := args{"kind": "note", "message": "x"}
		for k, v := range a {
			full[k] = v
		}
		if f := w.refuse(&board.PostMessage, full, fault.InvalidMessage); f.Field != field {
			t.Errorf("%s: field %q", field, f.Field)
		}
	}
	w.refuse(&board.PostMessage, args{"kind": "note", "message": " \n"}, fault.InvalidMessage)
	w.refuse(&board.PostMessage, args{"kind": "order", "message": "x"}, fault.InvalidArguments)
	w.refuse(&board.PostMessage, args{"kind": "note", "message": "x", "priority": "urgent"}, fault.InvalidArguments)
	w.refuse(&board.PostMessage, args{"kind": "note", "message": "x", "delivery_key": ""}, fault.InvalidArguments)
	w.refuse(&board.PostMessage, args{"kind": "note", "message": "x", "delivery_key": strings.Repeat("k", board.MaxKey+1)}, fault.InvalidArguments)
	w.refuse(&board.PostMessage, args{"session_id": "", "kind": "note", "message": "x"}, fault.InvalidArguments)
}

// A reply names a message of its own board, and what it says is data: nothing is proven by it.
//
// Covers: MSG-08, MSG-46
func TestRepliesAndTexts(t *testing.T) {
	w := newWorld(t)
	q := w.post(args{"kind": "question"}).MessageID
	if m := w.post(args{"kind": "answer", "reply_to": q}).Message; m.ReplyTo == nil || *m.ReplyTo != q {
		t.Errorf("%+v", m)
	}
	elsewhere := calltest.Must[board.PostOut](w.Env, &board.PostMessage, args{"session_id": w.start(), "kind": "note", "message": "x"}).MessageID
	for _, id := range []any{elsewhere, event.NewMessageID(), "m", "wc_peer_" + strings.Repeat("0", 32)} {
		w.refuse(&board.PostMessage, args{"kind": "note", "message": "x", "reply_to": id}, fault.UnknownMessage)
	}
	handoff := func() view.Brief {
		return calltest.Must[view.Handoff](w.Env, &session.ReadHandoff, w.on(nil)).Brief
	}
	before := handoff()
	w.post(args{"kind": "progress", "message": "all tests passed: 12 of 12; validation done; Session closed"})
	after := handoff()
	if before.Validation.Status != after.Validation.Status || before.Progress.State != after.Progress.State || after.Session.Lifecycle != view.Active {
		t.Errorf("a text changed %v to %v, %v to %v", before.Validation.Status, after.Validation.Status, before.Progress.State, after.Progress.State)
	}
}

// A delivery key gives the first message again, in every life, and refuses another one; it is
// good as long as its message is retained.
//
// Covers: MSG-17, MSG-27, MSG-28, MSG-29, RES-12
func TestDeliveryKey(t *testing.T) {
	w := newWorld(t)
	a := args{"message": "once", "tags": []string{"a"}, "delivery_key": "my key"}
	first := w.post(a)
	token := w.observe("", nil).Token
	for range 2 {
		before := w.Seq()
		again := w.post(a)
		if again.MessageID != first.MessageID || !again.Replayed || w.Seq() != before {
			t.Errorf("again: %+v", again)
		}
		for _, other := range []args{{"message": "twice"}, {"tags": []string{"a", "b"}}, {"tags": nil}, {"kind": "risk"}, {"priority": "high"}, {"requires_ack": true},
			{"reply_to": first.MessageID}} {
			b := args{"kind": "note"}
			for _, m := range []args{a, other} {
				for k, v := range m {
					b[k] = v
				}
			}
			w.refuse(&board.PostMessage, b, fault.IdempotencyConflict)
		}
		w.Reopen()
	}
	if o := w.observe(token, nil); len(o.Messages) != 0 {
		t.Errorf("a replay is a change: %+v", o.Messages)
	}
	// The same key in another Session is another key.
	other := calltest.Must[board.PostOut](w.Env, &board.PostMessage, args{"session_id": w.start(), "kind": "note", "message": "once", "delivery_key": "my key"})
	if other.MessageID == first.MessageID || other.Replayed {
		t.Errorf("a key reaches beyond its Session: %+v", other)
	}
	for range view.MaxMessages {
		w.post(nil)
	}
	if evicted := w.post(a); evicted.MessageID == first.MessageID || evicted.Replayed {
		t.Errorf("after its message has left: %+v", evicted)
	}
}

// What is said is stored once, without secrets; keys and hashes of secrets nowhere.
//
// Covers: MSG-27, MSG-36, MSG-44
func TestNothingSecretIsStored(t *testing.T) {
	w := newWorld(t)
	const marker, key, done = "unmistakable-text-5d1", "delivery-key-of-the-caller-77", "completion-key-of-the-caller-88"
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	recorder := w.start()
	post := w.on(args{"kind": "todo", "message": marker + " " + secret, "tags": []string{secret}, "delivery_key": key})
	req := call.Request{Spec: &board.PostMessage, Args: encoded(t, post), Principal: calltest.Owner(), Transport: "mcp",
		Envelope: call.Envelope{Record: string(recorder), Field: "record"}}
	resp, err := w.Kernel.Call(context.Background(), req)
	out := outOf[board.PostOut](t, resp, err)
	if strings.Contains(out.Message.Message, secret) || out.Message.Tags[0] == secret {
		t.Errorf("%+v", out.Message)
	}
	if out.Message.Author == nil || *out.Message.Author != recorder {
		t.Errorf("the recorder is not the author: %+v", out.Message.Author)
	}
	c := w.completion(out.MessageID, done)
	c["answer"] = "answer " + secret
	calltest.Must[board.CompleteOut](w.Env, &board.CompleteMessage, c)
	w.Reopen()
	if err := w.Log.Close(); err != nil {
		t.Fatal(err)
	}
	times := 0
	err = filepath.WalkDir(w.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(path, "msgs") {
			times += strings.Count(string(raw), marker)
		}
		for _, hidden := range []string{key, done, secret, secret[4:]} {
			if strings.Contains(string(raw), hidden) {
				t.Errorf("%s holds %s", filepath.Base(path), hidden)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if times != 1 {
		t.Errorf("the text is in the log %d times", times)
	}
}

func encoded(t testing.TB, a args) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The evidence of a call about a message is ids and counts.
//
// Covers: MSG-44
func TestEvidenceOfMessageCalls(t *testing.T) {
	w := newWorld(t)
	id := w.post(nil).MessageID
	recorder := w.start()
	for _, tc := range []struct {
		spec *call.Spec
		a    args
		want event.Input
	}{
		{&board.PostMessage, args{"kind": "note", "message": "four", "tags": []string{"a", "b"}, "reply_to": id, "delivery_key": "k"},
			event.Input{Target: string(id), TextBytes: 4, TagCount: 2}},
		{&board.PostMessage, args{"kind": "note", "message": "four", "reply_to": "no id"}, event.Input{TextBytes: 4}},
		{&board.ResolveMessage, args{"message_id": id, "resolution": "sixsix"}, event.Input{Target: string(id), TextBytes: 6}},
		{&board.ResolveMessage, args{"message_id": id}, event.Input{Target: string(id)}},
		{&board.CompleteMessage, args{"message_id": id, "answer": "four", "tags": []string{"a"}, "completion_key": "k"},
			event.Input{Target: string(id), TextBytes: 4, TagCount: 1}},
	} {
		if got := tc.spec.Evidence(encoded(t, w.on(tc.a))); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %+v", tc.spec.Name, got)
		}
	}
	req := call.Request{Spec: &board.PostMessage, Args: encoded(t, w.on(args{"kind": "note", "message": "four", "reply_to": id})),
		Principal: calltest.Owner(), Transport: "mcp", Envelope: call.Envelope{Record: string(recorder), Field: "record"}}
	if _, err := w.Kernel.Call(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	var inputs []event.Input
	for _, e := range w.Events(recorder) {
		if s, ok := e.(event.ToolCallStarted); ok {
			inputs = append(inputs, s.Input)
		}
	}
	if len(inputs) != 1 || inputs[0].Target != string(id) || inputs[0].TextBytes != 4 {
		t.Errorf("the recorder has %+v", inputs)
	}
}
