package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
)

// catalogueRig serves the product's own tools.
func catalogueRig(t testing.TB, opts ...rigOption) *rig {
	return newRig(t, append([]rigOption{func(c *Config) { c.Tools = nil }}, opts...)...)
}

// legacyAll are the revisions before the modern one.
var legacyAll = []string{legacy1, legacy2}

// call makes one tool call through the SDK's client.
func callTool(t testing.TB, c *client.Client, tool string, args map[string]any) client.Result {
	t.Helper()
	res, err := c.CallTool(context.Background(), tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return res
}

// started is a fresh Session without a Project.
func started(t testing.TB, c *client.Client) string {
	t.Helper()
	var out struct {
		ID string `json:"session_id"`
	}
	res := callTool(t, c, "start_session", nil)
	if err := res.Decode(&out); err != nil || res.IsError || out.ID == "" {
		t.Fatalf("%s %v", res.Text, err)
	}
	return out.ID
}

// stored are the events of a Session.
func (r *rig) stored(id string) (out []event.Event) {
	r.t.Helper()
	err := r.log.Replay(context.Background(), eventlog.Range{Aggregate: event.SessionAggregate(event.SessionID(id))}, func(x eventlog.Entry) error {
		out = append(out, x.Commit.Events...)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func pairs(events []event.Event) (n int) {
	for _, e := range events {
		if _, is := e.(event.ToolCallFinished); is {
			n++
		}
	}
	return n
}

// refusedAt checks a refusal of arguments at a field.
func refusedAt(t *testing.T, res client.Result, kind, field string) {
	t.Helper()
	var o struct {
		Kind  string `json:"error_kind"`
		Field string `json:"field"`
	}
	if err := res.Decode(&o); err != nil || !res.IsError || o.Kind != kind || o.Field != field {
		t.Errorf("%s, want %s at %s", res.Text, kind, field)
	}
}

// The modern era lists exactly one optional closed envelope in each tool, within the bound of
// the whole list; the legacy eras list none.
//
// Covers: CTL-01, CTX-18, REC-04, REC-13
func TestTheEnvelopeIsListedInTheModernEraAlone(t *testing.T) {
	r := catalogueRig(t)
	want := []string{"ack", "ack_ref", "context", "control", "record", "reply", "resolve"}
	for _, version := range versions {
		for _, full := range []bool{false, true} {
			c, err := client.Connect(context.Background(), client.Options{URL: r.url, Token: r.access.Token(), Version: version, Full: full})
			if err != nil {
				t.Fatal(err)
			}
			tools, err := c.ListTools(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(map[string]any{"tools": tools})
			if err != nil {
				t.Fatal(err)
			}
			if version != Modern {
				if strings.Contains(string(body), envelopeName) || strings.Contains(string(body), legacyRecord) || strings.Contains(string(body), legacyAck) {
					t.Errorf("%s shows what is beside the arguments", version)
				}
				continue
			}
			t.Logf("%d tools, %d bytes", len(tools), len(body))
			if !full && (len(body) > MaxEnvelopedBytes || len(tools) > MaxTools) {
				t.Errorf("%d tools in %d bytes", len(tools), len(body))
			}
			for _, tool := range tools {
				var in struct {
					Properties map[string]struct {
						Type       string                     `json:"type"`
						Properties map[string]json.RawMessage `json:"properties"`
						Required   []string                   `json:"required"`
						Closed     *bool                      `json:"additionalProperties"`
					} `json:"properties"`
					Required []string `json:"required"`
				}
				raw, _ := json.Marshal(tool.InputSchema)
				if err := json.Unmarshal(raw, &in); err != nil {
					t.Fatal(err)
				}
				env, ok := in.Properties[envelopeName]
				if !ok || env.Type != "object" || env.Closed == nil || *env.Closed || len(env.Required) > 0 || slices.Contains(in.Required, envelopeName) {
					t.Errorf("%s: %s", tool.Name, raw)
				}
				if got := slices.Sorted(maps.Keys(env.Properties)); !slices.Equal(got, want) {
					t.Errorf("%s: %v", tool.Name, got)
				}
				if strings.Contains(string(raw), legacyRecord) {
					t.Errorf("%s has %s", tool.Name, legacyRecord)
				}
			}
			_ = c.Close()
		}
	}
}

// A recorder reaches the kernel in the form of its era, for any tool and through the gateway;
// the tool sees nothing of it, and the next call has none.
//
// Covers: REC-01, REC-02, REC-05, REC-07, REC-17
func TestARecorderOfEachEra(t *testing.T) {
	r := catalogueRig(t)
	for _, version := range versions {
		c := r.connect(version)
		w := started(t, c)
		with := func(args map[string]any, record string) map[string]any {
			args = maps.Clone(args)
			if version == Modern {
				args[envelopeName] = map[string]any{"record": record}
			} else {
				args[legacyRecord] = record
			}
			return args
		}
		n := 0
		for _, call := range []struct {
			tool string
			args map[string]any
		}{
			{"get_runtime_status", nothing}, {"list_projects", nothing}, {"read_session_summary", map[string]any{"session_id": w}},
			{"call_runtime_tool", map[string]any{"tool": "read_session_summary", "arguments": map[string]any{"session_id": w}}},
		} {
			res := callTool(t, c, call.tool, with(call.args, w))
			if res.IsError || !strings.Contains(res.Text, `"session_recorded":true`) {
				t.Fatalf("%s %s: %s", version, call.tool, res.Text)
			}
			if n++; pairs(r.stored(w)) != n {
				t.Fatalf("%s %s: %d pairs, want %d", version, call.tool, pairs(r.stored(w)), n)
			}
			callTool(t, c, call.tool, call.args)
			if pairs(r.stored(w)) != n {
				t.Errorf("%s %s: the recorder was remembered", version, call.tool)
			}
		}
		last := r.stored(w)
		if f := last[len(last)-1].(event.ToolCallFinished); f.Role != event.RoleRecorder || f.Tool != "read_session_summary" {
			t.Errorf("the gateway's call stands as %+v", f)
		}
		refusedAt(t, callTool(t, c, "list_projects", with(nothing, "~s99")), "unknown_session_ref", map[bool]string{true: "_wc.record", false: legacyRecord}[version == Modern])
	}
}

var nothing = map[string]any{}

// Each form belongs to its own era; alone the other's is no field of the tool. Beside its own it
// counts once where both say the same.
//
// Covers: CTX-18, REC-01, REC-13, REC-16
func TestEachFormBelongsToItsEra(t *testing.T) {
	r := catalogueRig(t)
	modern := r.connect(Modern)
	w := started(t, modern)
	for field, args := range map[string]map[string]any{
		legacyRecord:   {legacyRecord: w},
		legacyAck:      {legacyAck: []string{"wc_msg_x"}},
		envelopeRecord: {legacyRecord: started(t, modern), envelopeName: map[string]any{"record": w}},
	} {
		refusedAt(t, callTool(t, modern, "list_projects", args), "invalid_arguments", field)
	}
	refusedAt(t, callTool(t, modern, "list_projects", map[string]any{legacyRecord: 7, envelopeName: map[string]any{"record": w}}),
		"invalid_arguments", envelopeRecord)
	// A ref may be of the same Session: two spellings are two values, and not two Sessions.
	if res := callTool(t, modern, "list_projects", map[string]any{legacyRecord: "~s1", envelopeName: map[string]any{"record": w}}); !res.IsError ||
		strings.Contains(res.Text, "different Sessions") {
		t.Errorf("two spellings: %s", res.Text)
	}
	for _, version := range legacyAll {
		c := r.connect(version)
		for _, env := range []any{map[string]any{}, map[string]any{"record": w}, map[string]any{"context": []string{"webcodex.workflow"}}, nil, "x"} {
			if env == nil {
				continue // null is absence in every era
			}
			refusedAt(t, callTool(t, c, "list_projects", map[string]any{envelopeName: env}), "invalid_arguments", envelopeName)
		}
		refusedAt(t, callTool(t, c, "list_projects", map[string]any{envelopeName: map[string]any{"record": w}, legacyRecord: w}), "invalid_arguments", envelopeName)
		refusedAt(t, callTool(t, c, "list_projects", map[string]any{legacyRecord: 7}), "invalid_arguments", legacyRecord)
		refusedAt(t, callTool(t, c, "list_projects", map[string]any{legacyRecord: ""}), "invalid_arguments", legacyRecord)
	}
	if n := pairs(r.stored(w)); n != 0 {
		t.Errorf("refusals left %d pairs", n)
	}
	if res := callTool(t, modern, "list_projects", map[string]any{legacyRecord: w, envelopeName: map[string]any{"record": w}}); res.IsError {
		t.Errorf("both forms, alike: %s", res.Text)
	}
	if n := pairs(r.stored(w)); n != 1 {
		t.Errorf("both forms, alike, left %d pairs", n)
	}
}

// An envelope that is not one is refused with its field before anything is looked up; what is
// wrong with an ACK never is.
//
// Covers: ACK-11, CTL-02, REC-04
func TestABrokenEnvelopeIsRefused(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	w := started(t, c)
	type m = map[string]any
	for field, env := range map[string]any{
		"_wc":                              7,
		"_wc.foo":                          m{"foo": 1},
		"_wc.Record":                       m{"Record": w},
		"_wc.record":                       m{"record": ""},
		"_wc.context":                      m{"context": strings.Split("a b c d e f g h i", " ")},
		"_wc.context[0]":                   m{"context": []string{strings.Repeat("k", 65)}},
		"_wc.reply.extra":                  m{"record": w, "reply": m{"reply_to": "x", "message": "y", "extra": 1}},
		"_wc.reply.message":                m{"record": w, "reply": m{"reply_to": "x"}},
		"_wc.resolve.message_id":           m{"record": w, "resolve": m{"resolution": "x"}},
		"_wc.control.later":                m{"control": m{"later": m{}}},
		"_wc.control.before.reboot":        m{"control": m{"before": m{"reboot": m{}}}},
		"_wc.control.after_success":        m{"control": m{"after_success": m{"session_close": m{"session_id": w}, "todo_completion": m{}}}},
		"_wc.control.before":               m{"control": m{"before": m{"goal_progress": m{}, "session_context_update": m{}}}},
		"_wc.control.before.session_close": m{"control": m{"before": m{"session_close": m{"session_id": w}}}},
		"_wc.control.after_success.session_close.mode": m{"control": m{"after_success": m{"session_close": m{"session_id": w, "mode": 1}}}},
	} {
		before := r.log.Status().Seq
		refusedAt(t, callTool(t, c, "list_projects", m{envelopeName: env}), "invalid_arguments", field)
		if r.log.Status().Seq != before {
			t.Errorf("%s: the refusal wrote", field)
		}
	}
	for _, env := range []m{{"ack": "nonsense"}, {"ack": 7}, {"ack": []any{1, nil}}, {"ack": slices.Repeat([]string{"x"}, 300)}, {"ack_ref": strings.Repeat("x", 4000)},
		{"ack_ref": m{}}, {"ack": nil, "ack_ref": nil}, {"ack": `["a"]`, "ack_ref": "💥"}} {
		env["record"] = w
		if res := callTool(t, c, "list_projects", m{envelopeName: env}); res.IsError {
			t.Errorf("%v: %s", env, res.Text)
		}
	}
	wrong := callTool(t, c, "list_projects", m{envelopeName: m{"foo": 1}})
	if !strings.Contains(wrong.Text, "_wc.foo is not a field of _wc") || !strings.Contains(wrong.Text, "record, ack, ack_ref, reply, resolve, context, control") {
		t.Error(wrong.Text)
	}
	// A host that sends objects as text is understood.
	if res := callTool(t, c, "list_projects", m{envelopeName: `{"record":"` + w + `"}`}); res.IsError {
		t.Error(res.Text)
	}
	twice := r.send(modernCall("list_projects", `{"_wc":{"record":"`+w+`"},"_wc":{"record":"x"}}`, ""))
	if !strings.Contains(twice.body, "given twice") {
		t.Error(twice.body)
	}
	inner := callTool(t, c, "call_runtime_tool", m{"tool": "list_projects", "arguments": m{envelopeName: m{"record": w}}})
	refusedAt(t, inner, "invalid_arguments", envelopeName)
}

// A caller's transport session says nothing about who records (REC-12).
//
// Covers: REC-11, REC-12
func TestATransportSessionIsNoRecorder(t *testing.T) {
	r := catalogueRig(t)
	c := r.connect(Modern)
	w := started(t, c)
	before := r.log.Status().Seq
	var bodies []string
	for _, stray := range []string{"", w, "left-over"} {
		q := modernCall("list_projects", `{}`, "")
		if stray != "" {
			q.header["Mcp-Session-Id"] = stray
		}
		bodies = append(bodies, string(last(t, r.send(q)).Result.Structured))
	}
	if bodies[0] != bodies[1] || bodies[1] != bodies[2] || r.log.Status().Seq != before {
		t.Errorf("%q", bodies)
	}
}
