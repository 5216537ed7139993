package mcp

import (
	"slices"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/mcp/client"
)

// A list of ids is read as far as its bound, and what is behind that is as if it were not there,
// in both eras.
//
// Covers: ACK-01, ACK-11, ACK-24
func TestAnAckListIsReadAsFarAsItsBound(t *testing.T) {
	if call.MaxAcks != 32 {
		t.Fatalf("%d ids", call.MaxAcks)
	}
	r := catalogueRig(t)
	for _, version := range versions {
		c := r.connect(version)
		w := started(t, c)
		m := posted(t, c, w, "note", "x")
		shown := func(before int) int {
			ids := []string{}
			for range before {
				ids = append(ids, string(event.NewMessageID()))
			}
			args := object{legacyRecord: w, legacyAck: append(ids, m)}
			if version == Modern {
				args = object{envelopeName: object{"record": w, "ack": append(ids, m)}}
			}
			return attends(t, callTool(t, c, "list_projects", args))
		}
		if got := []int{shown(0), shown(call.MaxAcks - 1), shown(call.MaxAcks), shown(1000)}; !slices.Equal(got, []int{0, 0, 1, 1}) {
			t.Errorf("%s: %v bodies", version, got)
		}
	}
}

// attends counts the bodies that an answer shows; the call works in any case.
func attends(t *testing.T, res client.Result) int {
	t.Helper()
	var out struct {
		Attention struct {
			Messages []struct{} `json:"messages"`
			Ref      string     `json:"ack_ref"`
		} `json:"session_attention"`
	}
	if err := res.Decode(&out); err != nil || res.IsError || out.Attention.Ref == "" {
		t.Fatalf("%s %v", res.Text, err)
	}
	return len(out.Attention.Messages)
}

// Everything that a caller gets to give back is of one use: in the field of another it is refused,
// or, where a field is never refused, it is nothing.
//
// Covers: ACK-25, MSG-13, MSG-48
func TestWhatIsGivenBackIsOfOneUse(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	w := started(t, c)
	m := posted(t, c, w, "todo", "x")
	values := map[string]string{"message": m, "session": w, "completion key": "the-key-of-a-completion",
		"token": gateway(t, c, "observe_session_messages", object{"session_id": w})["observation_token"].(string),
		"fence": gateway(t, c, "get_session_assignment", object{"session_id": w, "message_id": m})["assignment_fence"].(string)}
	var out struct {
		Attention struct {
			AckRef string `json:"ack_ref"`
			Ref    string `json:"session_ref"`
		} `json:"session_attention"`
	}
	if err := callTool(t, c, "list_projects", object{envelopeName: object{"record": w}}).Decode(&out); err != nil || out.Attention.AckRef == "" || out.Attention.Ref == "" {
		t.Fatalf("%+v %v", out, err)
	}
	values["ack_ref"], values["session ref"] = out.Attention.AckRef, out.Attention.Ref
	tool := func(name string, args object) client.Result {
		return callTool(t, c, "call_runtime_tool", object{"tool": name, "arguments": args})
	}
	for field, tc := range map[string]struct {
		own  []string
		send func(v string) client.Result
	}{
		"after_observation_token": {[]string{"token"}, func(v string) client.Result {
			return tool("observe_session_messages", object{"session_id": w, "after_observation_token": v})
		}},
		"session_id": {[]string{"session", "session ref"}, func(v string) client.Result { return tool("read_session_summary", object{"session_id": v}) }},
		"_wc.record": {[]string{"session", "session ref"}, func(v string) client.Result {
			return callTool(t, c, "list_projects", object{envelopeName: object{"record": v}})
		}},
		"message_id": {[]string{"message"}, func(v string) client.Result {
			return tool("get_session_assignment", object{"session_id": w, "message_id": v})
		}},
		"reply_to": {[]string{"message"}, func(v string) client.Result {
			return tool("post_session_message", object{"session_id": w, "kind": "note", "message": "x", "reply_to": v, "delivery_key": v})
		}},
	} {
		for of, v := range values {
			if res := tc.send(v); res.IsError == slices.Contains(tc.own, of) {
				t.Errorf("the %s as %s: %s", of, field, res.Text)
			}
		}
	}
	// The reply has made the fence an old one.
	values["fence"] = gateway(t, c, "get_session_assignment", object{"session_id": w, "message_id": m})["assignment_fence"].(string)
	for of, v := range values {
		for field, own := range map[string]string{"ack": "message", "ack_ref": "ack_ref"} {
			env := object{"record": w, field: v}
			if field == "ack" {
				env[field] = []string{v}
			}
			if shown := attends(t, callTool(t, c, "list_projects", object{envelopeName: env})); (shown == 0) != (of == own) {
				t.Errorf("the %s as %s: %d bodies", of, field, shown)
			}
		}
		if of == "fence" {
			continue
		}
		res := tool("complete_session_message", object{"session_id": w, "message_id": m, "answer": "x", "completion_key": "k", "expected_assignment_fence": v})
		refusedAt(t, res, "invalid_assignment_fence", "expected_assignment_fence")
	}
	if res := tool("complete_session_message", object{"session_id": w, "message_id": m, "answer": "x", "completion_key": "k", "expected_assignment_fence": values["fence"]}); res.IsError {
		t.Error(res.Text)
	}
}

// No tool knows of the envelope or of what stands in its place: to each of them both are fields that
// it does not have, so that whatever a tool gets went through the edge.
//
// Covers: REC-05, REC-17
func TestNoToolKnowsTheEnvelope(t *testing.T) {
	for _, tool := range Catalogue() {
		for _, name := range []string{envelopeName, legacyRecord, legacyAck} {
			_, err := tool.Input.Normalise([]byte(`{"` + name + `":{}}`))
			if f := fault.As(err); err == nil || f.Kind != fault.InvalidArguments || f.Field != name {
				t.Errorf("%s takes %s: %v", tool.Spec.Name, name, err)
			}
		}
		if p, ok := tool.Input.Prop("session_id"); ok && strings.Contains(p.Schema.Description, "record") {
			t.Errorf("%s says that session_id records: %s", tool.Spec.Name, p.Schema.Description)
		}
	}
}
