package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// begin puts a Session of the given owner into the log.
func (r *rig) begin(actor event.Actor) event.SessionID {
	r.t.Helper()
	id := event.NewSessionID()
	_, err := r.log.Append(context.Background(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: event.SessionAggregate(id),
		At: time.Now(), Actor: actor, Invocation: event.NewInvocationID(), Events: []event.Event{
			event.SessionCreated{Nonce: event.NewNonce(), Authority: actor.Authority, Principal: actor.Principal, Title: "work", Mode: event.ModeNormal},
			event.InstructionAccepted{Text: "mend the sum", Continuation: "created", Mode: event.ModeNormal}}})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// TestSessionsAsPromptResourceAndCompletion: a host finds a Session by completion, reads its
// handoff as a resource and continues it by the prompt; a foreign one does not exist.
func TestSessionsAsPromptResourceAndCompletion(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Tools = append([]Tool{readSessionHandoff}, c.Tools...) })
	id := string(r.begin(r.access.Principal().Actor))
	foreign := string(r.begin(event.Actor{Authority: strings.Repeat("0", 64), Principal: strings.Repeat("0", 64), Credential: "owner"}))
	call := func(method, params string) response {
		return r.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`})
	}
	for _, ref := range []string{`{"type":"ref/prompt","name":"continue_session"},"argument":{"name":"session_id"`,
		`{"type":"ref/resource","uri":"webcodex://session/{id}/handoff"},"argument":{"name":"id"`} {
		for value, want := range map[string]bool{"": true, "wc_sess_": true, id[:20]: true, "wc_sess_zz": false, foreign: false} {
			resp := call("completion/complete", `{"ref":`+ref+`,"value":"`+value+`"}}`)
			if strings.Contains(resp.body, id) != want || strings.Contains(resp.body, `"`+foreign+`"`) {
				t.Errorf("completion of %q: %s", value, resp.body)
			}
		}
	}
	if resp := call("completion/complete", `{"ref":{"type":"ref/prompt","name":"other"},"argument":{"name":"x","value":""}}`); !strings.Contains(resp.body, `"values":[]`) {
		t.Errorf("completion of another prompt: %s", resp.body)
	}

	resp := call("resources/read", `{"uri":"webcodex://session/`+id+`/handoff"}`)
	if !strings.Contains(resp.body, "mend the sum") || !strings.Contains(resp.body, "handoff_brief") {
		t.Errorf("handoff: %s", resp.body)
	}
	for _, uri := range []string{"webcodex://session/" + foreign + "/handoff", "webcodex://session/" + string(event.NewSessionID()) + "/handoff",
		"webcodex://session/../handoff", "webcodex://session//handoff", "webcodex://session/x/handoff", "webcodex://session/" + id + "/other", "file:///etc/passwd"} {
		m := last(t, call("resources/read", `{"uri":"`+uri+`"}`))
		if m.Error == nil || m.Error.Code != -32002 && m.Error.Code != codeInvalidParams {
			t.Errorf("%s: %+v", uri, m)
		}
	}

	resp = call("prompts/get", `{"name":"continue_session","arguments":{"session_id":"`+id+`","instruction":"go \"on\" <now>"}}`)
	if !strings.Contains(resp.body, "work_on_project") || !strings.Contains(resp.body, "mend the sum") {
		t.Errorf("prompt: %s", resp.body)
	}
	// The handoff has shown the caller's ref; by it the prompt names the Session by its id.
	if resp = call("prompts/get", `{"name":"continue_session","arguments":{"session_id":"~s1"}}`); !strings.Contains(resp.body, "Continue the WebCodex Session "+id) {
		t.Errorf("prompt by ref: %s", resp.body)
	}
	for _, args := range []string{`{}`, `{"session_id":"x"}`, `{"session_id":"~s2"}`, `{"session_id":"~s01"}`, `{"session_id":"~p1"}`, `{"session_id":"` + foreign + `"}`, `{"session_id":"` + string(event.NewSessionID()) + `"}`} {
		m := last(t, call("prompts/get", `{"name":"continue_session","arguments":`+args+`}`))
		if m.Error == nil || m.Error.Code != codeInvalidParams {
			t.Errorf("%s: %+v", args, m)
		}
	}
	if r.store.Applied() == 0 || r.store.Totals().Sessions != 2 {
		t.Error("the fixtures are not in the log")
	}
}

// TestHandoffSubscription: a legacy subscriber hears once that a handoff has changed.
func TestHandoffSubscription(t *testing.T) {
	r := newRig(t)
	id := r.begin(r.access.Principal().Actor)
	uri := handoffPrefix + string(id) + handoffSuffix
	ses := r.initialize(legacy2)
	get := r.getStream(t.Context(), ses)
	if resp := r.send(request{header: legacyHeader(legacy2, ses),
		body: `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`}); last(t, resp).Error != nil {
		t.Fatal(resp.body)
	}
	if resp := r.send(request{header: legacyHeader(legacy2, ses),
		body: `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"` + strings.Repeat("x", maxURI+1) + `"}}`}); last(t, resp).Error == nil {
		t.Error("an endless URI was kept")
	}
	for range 5 {
		r.srv.sessionChanged(id)
	}
	r.srv.sessionChanged("not a session")
	for {
		l := soon(t, get, "notification")
		data, ok := strings.CutPrefix(l, "data: ")
		if !ok {
			continue
		}
		var m rpc
		if err := json.Unmarshal([]byte(data), &m); err != nil || m.Method != "notifications/resources/updated" || !strings.Contains(string(m.Params), uri) {
			t.Fatalf("%s", l)
		}
		break
	}
	select {
	case l := <-get:
		if strings.HasPrefix(l, "data: ") {
			t.Errorf("a second notification: %s", l)
		}
	case <-time.After(updateDelay + 200*time.Millisecond):
	}
}

// TestScopesOfPromptAndResource: who may not list Sessions is not told their ids by a completion,
// and who may not read a handoff does not hear when it changes.
//
// Covers: AUTH-10
func TestScopesOfPromptAndResource(t *testing.T) {
	r := newRig(t)
	for _, lacking := range []string{"runtime:read", "project:read", ""} {
		in := access.CreateIn{Kind: "shared-key", Name: "somebody", Projects: []string{"all"}, Scopes: []string{"session:collaborate"}}
		for _, scope := range []string{"runtime:read", "project:read"} {
			if scope != lacking {
				in.Scopes = append(in.Scopes, scope)
			}
		}
		i, err := r.second.Create(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		own := string(r.begin(event.Actor{Authority: authorityOf(t, r, i), Principal: strings.Repeat("0", 64), Credential: "owner"}))
		resp := r.send(as(i.Token, request{body: `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":` +
			`{"ref":{"type":"ref/prompt","name":"continue_session"},"argument":{"name":"session_id","value":""}}}`}))
		if got := strings.Contains(resp.body, own); got != (lacking == "") || !strings.Contains(resp.body, `"values"`) {
			t.Errorf("completion without %q: %s", lacking, resp.body)
		}
		opened := r.initializeAs(i.Token)
		resp = r.send(as(i.Token, request{header: legacyHeader(legacy2, opened),
			body: `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"webcodex://session/` + own + `/handoff"}}`}))
		if got := !strings.Contains(resp.body, `"error"`); resp.status != http.StatusOK || got != (lacking != "runtime:read") {
			t.Errorf("subscription without %q: %d %s", lacking, resp.status, resp.body)
		}
	}
}
