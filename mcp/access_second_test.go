package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/call"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp/client"
	"webcodex/mcp/schema"
	principals "webcodex/projections/access"
)

// issue makes a second principal that may do what these tests' tools need.
func (r *rig) issue(kind string) access.Issued {
	r.t.Helper()
	in := access.CreateIn{Kind: kind, Name: "somebody", Scopes: []string{"runtime:read", "project:read"}, Projects: []string{"all"}}
	i, err := r.second.Create(context.Background(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	return i
}

// as gives a request another token; empty: none.
func as(token string, q request) request {
	h := map[string]string{"Authorization": ""}
	if token != "" {
		h["Authorization"] = "Bearer " + token
	}
	for k, v := range q.header {
		h[k] = v
	}
	q.header = h
	return q
}

func (r *rig) initializeAs(token string) string {
	r.t.Helper()
	resp := r.send(as(token, request{body: stdioInit}))
	id := resp.header.Get("Mcp-Session-Id")
	if resp.status != http.StatusOK || id == "" {
		r.t.Fatalf("initialize: %d %s", resp.status, resp.body)
	}
	r.send(as(token, request{body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`, header: legacyHeader(legacy2, id)}))
	return id
}

// TestSecondTokens: a good token comes in; one that never was, was revoked, rotated away or has
// expired gets one and the same answer, and so does everybody where the record of the tokens is
// damaged.
//
// Covers: AUTH-11
func TestSecondTokens(t *testing.T) {
	r := newRig(t)
	call := modernCall("echo", `{"text":"x"}`, "")
	refused := r.send(as("wcx_"+strings.Repeat("A", 43), call))
	if refused.status != http.StatusUnauthorized || strings.TrimSpace(refused.body) != `{"error":"invalid_token"}` ||
		refused.header.Get("WWW-Authenticate") != `Bearer realm="webcodex", error="invalid_token"` {
		t.Fatalf("%d %q %v", refused.status, refused.body, refused.header)
	}
	out := func(token, why string) {
		t.Helper()
		got := r.send(as(token, call))
		if got.status != refused.status || got.body != refused.body || got.header.Get("WWW-Authenticate") != refused.header.Get("WWW-Authenticate") {
			t.Errorf("%s: %d %q", why, got.status, got.body)
		}
	}
	in := func(token, why string) {
		t.Helper()
		if got := r.send(as(token, call)); got.status != http.StatusOK || last(t, got).Result.IsError {
			t.Errorf("%s: %d %q", why, got.status, got.body)
		}
	}
	a, b := r.issue("user"), r.issue("shared-key")
	in(a.Token, "fresh")
	in(b.Token, "fresh")
	for _, s := range []string{string(a.ID), a.Token[:20], a.Token + "x", strings.ToUpper(a.Token), principals.HashToken(a.Token), "wcx_"} {
		out(s, "not the token")
	}
	a2, err := r.second.Rotate(t.Context(), access.RotateIn{ID: string(a.ID)})
	if err != nil {
		t.Fatal(err)
	}
	out(a.Token, "rotated away")
	in(a2.Token, "rotated in")
	if _, err := r.second.Revoke(t.Context(), access.RevokeIn{ID: string(a.ID)}); err != nil {
		t.Fatal(err)
	}
	out(a2.Token, "revoked")
	in(b.Token, "another one")
	r.clock.Store(int64(access.DefaultTokenLife + time.Minute))
	out(b.Token, "expired")
	in(r.access.Token(), "the owner")
	r.clock.Store(0)
	in(b.Token, "not yet expired")
	r.access.second.Intact = func() error { return context.Canceled }
	out(b.Token, "damaged record")
	in(r.access.Token(), "the owner, damaged record")
}

// TestEndOfToken: what a token has open ends with it, in both eras, whichever way it ends; a
// call in flight comes to its end; the owner's own streams go on.
func TestEndOfToken(t *testing.T) {
	for name, end := range map[string]func(*rig, access.Issued) error{
		"revoke": func(r *rig, i access.Issued) error {
			_, err := r.second.Revoke(t.Context(), access.RevokeIn{ID: string(i.ID)})
			return err
		},
		"rotate": func(r *rig, i access.Issued) error {
			_, err := r.second.Rotate(t.Context(), access.RotateIn{ID: string(i.ID)})
			return err
		},
		"expire": func(r *rig, _ access.Issued) error {
			r.clock.Store(int64(access.DefaultTokenLife + time.Minute))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			i := r.issue("user")
			id := r.begin(event.Actor{Authority: authorityOf(t, r, i), Principal: strings.Repeat("b", 64)})
			listen := func(token string, id event.SessionID) <-chan string {
				q := as(token, request{body: `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` +
					handoffPrefix + string(id) + handoffSuffix + `"]},` + modernMeta + `}}`,
					header: map[string]string{"Mcp-Protocol-Version": Modern, "Mcp-Method": "subscriptions/listen"}})
				q.header["Accept"] = "application/json, text/event-stream"
				lines := r.stream(t.Context(), q)
				for l := soon(t, lines, "acknowledgement"); !strings.Contains(l, "acknowledged"); l = soon(t, lines, "acknowledgement") {
					if strings.Contains(l, `"error"`) {
						t.Fatal(l)
					}
				}
				return lines
			}
			ses := r.initializeAs(i.Token)
			get := r.stream(t.Context(), as(i.Token, request{method: http.MethodGet, header: legacyHeader(legacy2, ses)}))
			soon(t, get, "GET stream")
			modern := listen(i.Token, id)
			own := listen(r.access.Token(), r.begin(r.access.Principal().Actor))
			flying := r.stream(t.Context(), as(i.Token, modernCall("wait", `{}`, "")))
			soon(t, r.probe.entered, "call")
			if err := end(r, i); err != nil {
				t.Fatal(err)
			}
			ended(t, get, "the legacy stream")
			ended(t, modern, "the modern stream")
			r.srv.Sweep() // one that began before has ended
			if n := r.legacyCount(); n != 0 {
				t.Errorf("%d legacy sessions are left", n)
			}
			if got := r.send(as(i.Token, legacyCall("echo", `{}`, legacyHeader(legacy2, ses)))); got.status != http.StatusUnauthorized {
				t.Errorf("the next message: %d", got.status)
			}
			if got := r.send(legacyCall("echo", `{}`, legacyHeader(legacy2, ses))); got.status != http.StatusNotFound {
				t.Errorf("its session with another token: %d", got.status)
			}
			close(r.probe.release)
			answered := false
			for l := range flying {
				answered = answered || strings.Contains(l, "released")
			}
			if !answered {
				t.Error("the call in flight lost its answer")
			}
			select {
			case l, ok := <-own:
				if !ok {
					t.Errorf("the owner's stream ended: %s", l)
				}
			default:
			}
		})
	}
}

func authorityOf(t *testing.T, r *rig, i access.Issued) string {
	t.Helper()
	k, ok := r.tokens.Get(i.ID)
	if !ok {
		t.Fatal("no such token")
	}
	return k.Authority
}

// ended fails unless the stream comes to its end.
func ended(t *testing.T, lines <-chan string, what string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		select {
		case _, ok := <-lines:
			if !ok {
				return
			}
		case <-limit:
			t.Fatalf("%s did not end", what)
		}
	}
}

// TestLegacySessionIsItsOpeners: the id of a session is no authority: with another good token,
// the owner's included, there is no such session; its opener goes on.
//
// Covers: AUTH-11
func TestLegacySessionIsItsOpeners(t *testing.T) {
	r := newRig(t)
	a, b := r.issue("user"), r.issue("user")
	ses := r.initializeAs(a.Token)
	for who, token := range map[string]string{"another user": b.Token, "the owner": r.access.Token()} {
		for _, q := range []request{legacyCall("echo", `{}`, legacyHeader(legacy2, ses)), {method: http.MethodGet, header: legacyHeader(legacy2, ses)},
			{method: http.MethodDelete, header: legacyHeader(legacy2, ses)}, {body: stdioInit, header: legacyHeader(legacy2, ses)}} {
			got, none := r.send(as(token, q)), q
			none.header = legacyHeader(legacy2, strings.Repeat("X", len(ses)))
			want := r.send(as(token, none))
			if got.status != http.StatusNotFound || got.body != want.body {
				t.Errorf("%s %s: %d %q, and %d %q where there is none", who, q.method, got.status, got.body, want.status, want.body)
			}
		}
	}
	if got := r.send(as(a.Token, legacyCall("echo", `{}`, legacyHeader(legacy2, ses)))); got.status != http.StatusOK {
		t.Errorf("the opener: %d %s", got.status, got.body)
	}
}

// TestLegacyBoundIsPerPrincipal: one caller's sessions take no place of another's.
func TestLegacyBoundIsPerPrincipal(t *testing.T) {
	r := newRig(t)
	a, b := r.issue("user"), r.issue("user")
	ses := r.initializeAs(a.Token)
	for range MaxLegacySessions + 3 {
		r.initializeAs(b.Token)
	}
	if n := r.legacyCount(); n != MaxLegacySessions+1 {
		t.Errorf("%d sessions", n)
	}
	if got := r.send(as(a.Token, legacyCall("echo", `{}`, legacyHeader(legacy2, ses)))); got.status != http.StatusOK {
		t.Errorf("the other caller's session has gone: %d", got.status)
	}
}

// TestForeignHandoffIsNotListenedTo: whoever may not read a Session's handoff hears nothing of
// it, in both eras, and cannot tell it from one that never was.
//
// Covers: AUTH-11, AUTH-15
func TestForeignHandoffIsNotListenedTo(t *testing.T) {
	r := newRig(t)
	own, b := r.begin(r.access.Principal().Actor), r.issue("user")
	ses := r.initializeAs(b.Token)
	answers := map[string][]string{}
	for what, id := range map[string]string{"foreign": string(own), "none": string(event.NewSessionID())} {
		uri := handoffPrefix + id + handoffSuffix
		listen := request{body: `{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + uri + `"]},` + modernMeta + `}}`,
			header: map[string]string{"Mcp-Protocol-Version": Modern, "Mcp-Method": "subscriptions/listen"}}
		subscribe := request{body: `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`, header: legacyHeader(legacy2, ses)}
		for _, q := range []request{listen, subscribe} {
			got := r.send(as(b.Token, q))
			if m := last(t, got); m.Error == nil {
				t.Errorf("%s: %s", what, got.body)
			}
			answers[what] = append(answers[what], strings.ReplaceAll(got.body, id, "ID"))
		}
	}
	for i := range answers["none"] {
		if answers["none"][i] != answers["foreign"][i] {
			t.Errorf("%q and %q", answers["foreign"][i], answers["none"][i])
		}
	}
}

// TestToolWithoutScope: a tool that declares no scope is open to the owner alone.
//
// Covers: AUTH-10
func TestToolWithoutScope(t *testing.T) {
	ran := 0
	bare := Tool{Spec: &call.Spec{Name: "bare", Plane: call.PlaneRuntime, Class: call.Mutate, In: struct{}{},
		Run: func(context.Context, *call.Call) (call.Result, error) {
			ran++
			return call.Result{Output: struct{}{}}, nil
		}},
		Title: "bare", Description: "bare", Category: "runtime", Direct: true, Input: schema.Object()}
	r := newRig(t, func(c *Config) { c.Tools = append(c.Tools, bare) })
	for _, kind := range []string{"user", "shared-key"} {
		in := access.CreateIn{Kind: kind, Name: "all", Scopes: call.ScopeNames(), Projects: []string{"all"}}
		i, err := r.second.Create(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for how, q := range map[string]request{"direct": modernCall("bare", `{}`, ""), "by name": modernCall("call_runtime_tool", `{"tool":"bare"}`, "")} {
			m := last(t, r.send(as(i.Token, q)))
			if !m.Result.IsError || !strings.Contains(string(m.Result.Structured), `"error_kind":"insufficient_scope"`) {
				t.Errorf("%s, %s: %s", kind, how, m.Result.Structured)
			}
		}
	}
	if ran != 0 {
		t.Errorf("it ran %d times", ran)
	}
	if m := last(t, r.send(modernCall("bare", `{}`, ""))); m.Result.IsError || ran != 1 {
		t.Errorf("the owner: %s", m.Result.Structured)
	}
}

// TestCallerWithoutIdentity: a token of the log that says no group or nobody creates and owns
// nothing, whatever its scopes are.
//
// Covers: AUTH-05
func TestCallerWithoutIdentity(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ authority, principal, kind string }{
		{"", strings.Repeat("b", 64), "session_authority_identity_unavailable"},
		{strings.Repeat("a", 64), "", "session_owner_identity_unavailable"},
	} {
		token := principals.NewToken()
		head, err := r.log.Head(event.AccessAggregate())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.log.Append(t.Context(), eventlog.Draft{ID: event.NewCommandID(), Aggregate: event.AccessAggregate(), Expect: head, At: time.Now(),
			Events: []event.Event{event.TokenCreated{Token: event.NewTokenID(), Kind: event.TokenUser, Name: "x", Hash: principals.HashToken(token),
				Scopes: call.ScopeNames(), AllProjects: true, Authority: c.authority, Principal: c.principal}}}); err != nil {
			t.Fatal(err)
		}
		m := last(t, r.send(as(token, modernCall("wait", `{}`, ""))))
		if !m.Result.IsError || !strings.Contains(string(m.Result.Structured), `"error_kind":"`+c.kind+`"`) {
			t.Errorf("%s: %s", c.kind, m.Result.Structured)
		}
	}
}

// TestSecondTokenInURL: whose token it is, in a URL it lets nobody in.
func TestSecondTokenInURL(t *testing.T) {
	r := newRig(t)
	i := r.issue("user")
	for _, path := range []string{"/mcp?x=" + i.Token, "/mcp/" + i.Token, "/mcp?" + i.Token, "/mcp?x=%77cx_" + i.Token[4:]} {
		if got := r.send(as(i.Token, request{path: path, body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`})); got.status != http.StatusUnauthorized {
			t.Errorf("%d", got.status)
		}
	}
}

// TestSecondClient: the SDK's client works with a second principal's token, and tells when it
// is refused.
func TestSecondClient(t *testing.T) {
	r := newRig(t)
	i := r.issue("user")
	for _, version := range versions {
		c, err := client.Connect(t.Context(), client.Options{URL: r.url, Token: i.Token, Version: version})
		if err != nil {
			t.Fatal(err)
		}
		if res, err := c.CallTool(t.Context(), "echo", map[string]any{"text": "x"}); err != nil || res.IsError {
			t.Errorf("%s: %v %s", version, err, res.Text)
		}
		_ = c.Close()
	}
	if _, err := r.second.Revoke(t.Context(), access.RevokeIn{ID: string(i.ID)}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Connect(t.Context(), client.Options{URL: r.url, Token: i.Token}); err == nil {
		t.Error("a revoked token connected")
	}
}

// FuzzBearer: whatever stands in the header, it names one token or none, and only the right one
// comes in.
func FuzzBearer(f *testing.F) {
	a := newAccess("wcx_"+strings.Repeat("t", 43), strings.Repeat("ab", 16))
	fold := principals.NewTokens()
	good := principals.NewToken()
	fold.Apply(1, "", event.Commit{Aggregate: event.AccessAggregate(), Version: 1, Events: []event.Event{event.TokenCreated{Token: event.NewTokenID(),
		Kind: event.TokenUser, Hash: principals.HashToken(good), Scopes: []string{"runtime:read"}, AllProjects: true}}})
	a.Admit(Second{Tokens: fold, Intact: func() error { return nil }, Now: time.Now})
	for _, s := range []string{"", "Bearer", "Bearer ", "bearer " + good, "Bearer " + good + " ", "Bearer  " + good, "Bearer " + good + "," + good,
		"Basic " + good, good, "Bearer\t" + good, "Bearer " + good + "\x00", "Bearer " + a.token} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header["Authorization"] = []string{value}
		token, ok := bearer(r.Header)
		if !ok {
			return
		}
		if token == "" || strings.ContainsAny(token, " \t,") || !strings.HasSuffix(strings.TrimSpace(value), token) {
			t.Errorf("%q gives %q", value, token)
		}
		if _, in := a.authenticate(token); in != (token == good || token == a.token) {
			t.Errorf("%q: let in %v", value, in)
		}
	})
}
