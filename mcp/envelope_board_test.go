package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/material"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
)

type object = map[string]any

// gateway calls a tool that the list leaves out.
func gateway(t testing.TB, c *client.Client, tool string, args object) map[string]any {
	t.Helper()
	res := callTool(t, c, "call_runtime_tool", object{"tool": tool, "arguments": args})
	var out map[string]any
	if err := res.Decode(&out); err != nil || res.IsError {
		t.Fatalf("%s: %s %v", tool, res.Text, err)
	}
	return out
}

// posted puts a message that asks for an ACK on a board.
func posted(t testing.TB, c *client.Client, id, kind, text string) string {
	t.Helper()
	return gateway(t, c, "post_session_message", object{"session_id": id, "kind": kind, "message": text, "requires_ack": true})["message_id"].(string)
}

type controlled struct {
	Kind    string         `json:"kind"`
	Success bool           `json:"success"`
	Output  map[string]any `json:"output"`
	Error   string         `json:"error_kind"`
	Field   string         `json:"field"`
}

func controlOf(t testing.TB, res client.Result) map[string]controlled {
	t.Helper()
	var out struct {
		Control map[string]controlled `json:"control"`
	}
	if err := res.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out.Control
}

const marker = "MARKER-of-the-envelope"

// A reply, a resolve and a completion that travel with another call are those of the tools;
// sent again they are not made again, and their text is in their own event alone.
//
// Covers: CTL-01, CTL-03, CTL-04, CTL-08, CTL-09, CTL-10, REC-19
func TestMessagesTravelWithACall(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	w := started(t, c)
	q := posted(t, c, w, "question", "which way?")
	todo := posted(t, c, w, "todo", "do it")
	other := posted(t, c, w, "risk", "it may rain")
	fence := func() string {
		return gateway(t, c, "get_session_assignment", object{"session_id": w, "message_id": todo})["assignment_fence"].(string)
	}()
	send := func() client.Result {
		return callTool(t, c, "list_projects", object{envelopeName: object{"record": w,
			"reply":   object{"reply_to": q, "message": "left " + marker},
			"resolve": object{"message_id": other, "resolution": "sunny " + marker},
			"control": object{"after_success": object{"todo_completion": object{"session_id": w, "message_id": todo, "answer": "done " + marker,
				"completion_key": "key-" + marker, "expected_assignment_fence": fence}}}}})
	}
	first := send()
	got := controlOf(t, first)
	if first.IsError || !got["reply"].Success || !got["resolve"].Success || !got["after_success"].Success || got["after_success"].Kind != "todo_completion" {
		t.Fatalf("%s", first.Text)
	}
	again := controlOf(t, send())
	if again["reply"].Output["message_id"] != got["reply"].Output["message_id"] || again["reply"].Output["replayed"] != true ||
		again["resolve"].Output["changed"] != false || again["after_success"].Output["replayed"] != true ||
		again["after_success"].Output["answer_message_id"] != got["after_success"].Output["answer_message_id"] {
		t.Errorf("%+v\n%+v", got, again)
	}
	// The tools themselves find what the envelope did, as they would have done it.
	alone := gateway(t, c, "complete_session_message", object{"session_id": w, "message_id": todo, "answer": "done " + marker,
		"completion_key": "key-" + marker, "expected_assignment_fence": fence})
	if alone["replayed"] != true || alone["completion_id"] != got["after_success"].Output["completion_id"] {
		t.Errorf("%v", alone)
	}
	if resolved := gateway(t, c, "resolve_session_message", object{"session_id": w, "message_id": other, "resolution": "sunny " + marker}); resolved["changed"] != false {
		t.Errorf("%v", resolved)
	}
	reply := gateway(t, c, "list_session_messages", object{"session_id": w, "reply_to": q})["messages"].([]any)
	if len(reply) != 1 || reply[0].(map[string]any)["message_id"] != got["reply"].Output["message_id"] || reply[0].(map[string]any)["message"] != "left "+marker {
		t.Errorf("%v", reply)
	}
	if strings.Contains(first.Text, marker) {
		t.Errorf("the answer repeats what was sent: %s", first.Text)
	}
	counts := map[string]int{}
	err := r.log.Replay(context.Background(), eventlog.Range{}, func(x eventlog.Entry) error {
		for _, e := range x.Commit.Events {
			raw, _ := json.Marshal(e)
			switch e := e.(type) {
			case event.MessagePosted:
				if strings.Contains(e.Text, marker) {
					if counts["reply"]++; e.ReplyTo != event.MessageID(q) || e.Author != event.SessionID(w) || e.Kind != event.MessageAnswer {
						t.Errorf("%+v", e)
					}
				}
			case event.MessageResolved:
				if counts["resolve"]++; e.Message != event.MessageID(other) || !strings.Contains(e.Resolution, marker) {
					t.Errorf("%+v", e)
				}
			case event.MessageCompleted:
				if counts["complete"]++; e.Author != event.SessionID(w) || strings.Contains(string(raw), "key-"+marker) {
					t.Errorf("%+v", e)
				}
			default:
				if strings.Contains(string(raw), marker) {
					t.Errorf("%T holds the text: %s", e, raw)
				}
			}
		}
		return nil
	})
	if err != nil || counts["reply"] != 1 || counts["resolve"] != 1 || counts["complete"] != 1 {
		t.Errorf("%v %v", counts, err)
	}
	if n := pairs(r.stored(w)); n != 2 {
		t.Errorf("%d pairs of two recorded calls", n)
	}
}

// What the tool refuses, the envelope refuses with the same kind, before the main tool; and
// every member without a record leaves no evidence of a call.
//
// Covers: CTL-03, CTL-08, REC-19
func TestARefusedMessageStopsTheCall(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	w, closed := started(t, c), started(t, c)
	mine, late := posted(t, c, w, "note", "x"), posted(t, c, closed, "note", "x")
	gateway(t, c, "close_session", object{"session_id": closed})
	for name, tc := range map[string]struct {
		env         object
		kind, field string
	}{
		"unknown message": {object{"record": w, "reply": object{"reply_to": late, "message": "x"}}, "unknown_message_id", "_wc.reply.reply_to"},
		"no board":        {object{"reply": object{"reply_to": mine, "message": "x"}}, "invalid_arguments", "_wc.record"},
		"empty":           {object{"record": w, "reply": object{"reply_to": mine, "message": ""}}, "invalid_session_message", "_wc.reply.message"},
		"too long":        {object{"record": w, "resolve": object{"message_id": mine, "resolution": strings.Repeat("x", 8001)}}, "invalid_session_message", "_wc.resolve.resolution"},
		"closed":          {object{"record": closed, "resolve": object{"message_id": late}}, "session_closed", "_wc.record"},
	} {
		res := callTool(t, c, "list_projects", object{envelopeName: tc.env})
		var o struct {
			Kind  string `json:"error_kind"`
			Field string `json:"field"`
		}
		if err := res.Decode(&o); err != nil || !res.IsError || o.Kind != tc.kind || o.Field != tc.field {
			t.Errorf("%s: %s at %q, want %s at %s: %s", name, o.Kind, o.Field, tc.kind, tc.field, res.Text)
		}
	}
	res := callTool(t, c, "read_session_discussion", object{"session_id": w, envelopeName: object{"resolve": object{"message_id": mine}}})
	if got := controlOf(t, res)["resolve"]; res.IsError || !got.Success || got.Output["changed"] != true || pairs(r.stored(w)) > 1 {
		t.Errorf("on the board that the call names: %s, %d pairs", res.Text, pairs(r.stored(w)))
	}
	for _, env := range []object{{"ack": []string{mine}}, {"ack_ref": "x"}, {"context": []string{"webcodex.workflow"}}, {"control": object{}}} {
		before := r.log.Status().Seq
		if res := callTool(t, c, "list_projects", object{envelopeName: env}); res.IsError || r.log.Status().Seq != before {
			t.Errorf("%v: %s", env, res.Text)
		}
	}
	for slot, kind := range map[string]string{"before": "goal_progress", "after_success": "goal_completion"} {
		res := callTool(t, c, "list_projects", object{envelopeName: object{"control": object{slot: object{kind: object{}}}}})
		if got := controlOf(t, res)[slot]; got.Error != "unavailable" || res.IsError != (slot == "before") {
			t.Errorf("%s: %s", kind, res.Text)
		}
	}
}

// Both eras see the recorder's attention, and each acknowledges in its own form.
//
// Covers: ACK-01, ACK-02, ACK-24, ACK-25
func TestAttentionInBothEras(t *testing.T) {
	r := catalogueRig(t)
	for _, version := range versions {
		c := r.connect(version)
		w := started(t, c)
		m1, m2 := posted(t, c, w, "guidance", "first"), posted(t, c, w, "todo", "second")
		call := func(ack []string, ref string) (shown []string, next string) {
			args := object{legacyRecord: w}
			if ack != nil {
				args[legacyAck] = ack
			}
			if version == Modern {
				env := object{"record": w}
				if ack != nil {
					env["ack"] = ack
				}
				if ref != "" {
					env["ack_ref"] = ref
				}
				args = object{envelopeName: env}
			}
			res := callTool(t, c, "list_projects", args)
			var out struct {
				Attention struct {
					SessionID string `json:"session_id"`
					Ref       string `json:"ack_ref"`
					Messages  []struct {
						ID string `json:"message_id"`
					} `json:"messages"`
				} `json:"session_attention"`
			}
			if err := res.Decode(&out); err != nil || res.IsError || out.Attention.SessionID != w {
				t.Fatalf("%s: %s", version, res.Text)
			}
			for _, m := range out.Attention.Messages {
				shown = append(shown, m.ID)
			}
			return shown, out.Attention.Ref
		}
		is := func(got []string, want ...string) {
			t.Helper()
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s shows %v, want %v", version, got, want)
			}
		}
		shown, _ := call(nil, "")
		is(shown, m1, m2)
		shown, ref := call([]string{m1}, "")
		is(shown, m2)
		if version == Modern {
			shown, _ = call(nil, ref)
			is(shown)
			for _, foreign := range []string{m1, w, "~s1"} { // of another domain
				shown, _ = call([]string{ref}, foreign)
				is(shown, m1, m2)
			}
		}
		shown, _ = call([]string{m1, m2}, "")
		is(shown)
	}
}

// A host tells its profile by a header, request by request.
//
// Covers: PRO-03, PRO-11
func TestAHostTellsItsProfile(t *testing.T) {
	for _, deployment := range []string{"", "direct", "host_code_mode"} {
		r := catalogueRig(t, func(c *Config) { c.Profile = deployment })
		for _, header := range []string{"", "direct", "host_code_mode"} {
			want := "direct"
			for _, p := range []string{header, deployment} {
				if p != "" {
					want = p
					break
				}
			}
			q := modernCall("list_projects", `{"_wc":{"context":["webcodex.workflow"]}}`, "")
			if header != "" {
				q.header[profileHeader] = header
			}
			if got := r.send(q); !strings.Contains(got.body, `\"guidance_profile\":\"`+want+`\"`) {
				t.Errorf("deployment %q, header %q: %s", deployment, header, got.body)
			}
		}
	}
}

// The manifest explains every member of the envelope once, to the era that has it.
//
// Covers: CTX-19
func TestTheManifestExplainsTheEnvelope(t *testing.T) {
	r := catalogueRig(t)
	for _, version := range versions {
		c := r.connect(version)
		var out struct {
			Envelope *struct {
				Properties map[string]struct{ Description string }
			} `json:"invocation_envelope"`
			Next *int `json:"next_offset"`
		}
		res := callTool(t, c, "read_tool_manifest", nil)
		if err := res.Decode(&out); err != nil || len(res.Text) > 40_000 {
			t.Fatalf("%d bytes, %v", len(res.Text), err)
		}
		if (out.Envelope != nil) != (version == Modern) || version != Modern && strings.Contains(res.Text, envelopeName) {
			t.Fatalf("%s: %v", version, out.Envelope)
		}
		if version != Modern {
			continue
		}
		for name, p := range out.Envelope.Properties {
			if p.Description == "" {
				t.Errorf("%s has no words", name)
			}
		}
		for _, key := range material.Keys() {
			if !strings.Contains(out.Envelope.Properties["context"].Description, key) {
				t.Errorf("%s is not told", key)
			}
		}
		if out.Next == nil || strings.Contains(callTool(t, c, "read_tool_manifest", object{"offset": *out.Next}).Text, "invocation_envelope") {
			t.Error("on a later page too")
		}
	}
}

// A reply is told apart by its words as they are stored, so that nothing in the log depends on a
// secret in it.
//
// Covers: CTL-10
func TestAReplyIsKeyedByItsStoredWords(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	w := started(t, c)
	q := posted(t, c, w, "question", "which token?")
	send := func(text string) controlled {
		return controlOf(t, callTool(t, c, "list_projects", object{envelopeName: object{"record": w, "reply": object{"reply_to": q, "message": text}}}))["reply"]
	}
	first := send("use ghp_R4nD0mT0kenValue1234567890abcdefAB")
	for text, replayed := range map[string]bool{"use ghp_R4nD0mT0kenValue1234567890abcdefAB": true, "use ghp_0therT0kenValue1234567890abcdefAB": true, "use none": false} {
		got := send(text)
		if !got.Success || got.Output["replayed"] != replayed || (got.Output["message_id"] == first.Output["message_id"]) != replayed {
			t.Errorf("%q: %+v after %+v", text, got, first)
		}
	}
}
