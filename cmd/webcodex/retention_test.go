package main

import (
	"encoding/json"
	"testing"

	"webcodex/commands/access"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	listed "webcodex/projections/session"
)

// body is everything that a refusal says.
func (p *person) body(tool string, a args) string {
	p.w.t.Helper()
	r := p.call(tool, a)
	b, err := json.Marshal([]any{r.IsError, r.Text, r.Output})
	if err != nil {
		p.w.t.Fatal(err)
	}
	return string(b)
}

// What is left of a removed Session, over MCP and for every tool that takes one: its owner is
// told that it has expired, by id and by ref; another user of the same Project hears what an id
// that never was gets, in the same bytes; and after its tombstone so does the owner.
//
// Covers: SES-12, SES-13, SES-33, SES-36, SES-37, SES-38, SES-39, LST-11
func TestExpiredSessionsOverMCP(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process", func(c *Config) { c.RetainedSessions = 2 })
	ada, bob := w.admit(access.CreateIn{Kind: "user", Name: "Ada"}), w.admit(access.CreateIn{Kind: "user", Name: "Bob"})
	finish := func() session.WorkOut {
		s := ada.work(w.project)
		ask[struct{}](ada, "close_session", args{"session_id": s.SessionRef})
		return s
	}
	s := finish()
	finish()
	bob.refused("read_session_handoff", args{"session_id": s.SessionID}, "session_authority_denied") // retained and foreign
	finish()
	if n := w.srv.store.Totals(); n.Closed != 2 || len(w.srv.tombstones.All()) != 1 {
		t.Fatalf("%+v", n)
	}
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		selected := func(selector any) args { return with(sample[name], project(tool, w), args{"session_id": selector}) }
		for _, selector := range []any{s.SessionID, s.SessionRef} {
			ada.refused(name, selected(selector), "session_retention_expired")
			var out struct {
				SessionID event.SessionID `json:"session_id"`
			}
			if err := ada.call(name, selected(selector)).Decode(&out); err != nil || out.SessionID != s.SessionID {
				t.Errorf("%s of %v names %q (%v)", name, selector, out.SessionID, err)
			}
		}
		bob.refused(name, selected(s.SessionID), "unknown_session_id")
		if tomb, never := bob.body(name, selected(s.SessionID)), bob.body(name, selected(event.NewSessionID())); tomb != never {
			t.Errorf("%s:\n%s\n%s", name, tomb, never)
		}
		if foreign, missing := bob.body(name, selected(s.SessionRef)), bob.body(name, selected("~s77")); foreign != missing {
			t.Errorf("%s:\n%s\n%s", name, foreign, missing)
		}
	}
	if page := ask[listed.Page](ada, "list_sessions", args{"project": w.project}); page.Total != 2 {
		t.Errorf("%+v", page)
	}
	ada.refused("list_sessions", args{"project": w.project, "lifecycle": "expired"}, "invalid_arguments")
	finish()
	finish() // the tombstone ages out
	if bobs, adas := bob.body("read_session_summary", args{"session_id": s.SessionID}), ada.body("read_session_summary", args{"session_id": s.SessionID}); bobs != adas {
		t.Errorf("%s\n%s", bobs, adas)
	}
	ada.refused("read_session_summary", args{"session_id": s.SessionRef}, "unknown_session_ref")
}
