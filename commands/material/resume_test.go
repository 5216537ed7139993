package material_test

import (
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/material"
	"webcodex/eventlog/event"
)

// However many Sessions colleagues of the same group have begun since, the caller's own are
// there; and all of them get their refs in one commit.
//
// Covers: AUTH-15, SES-06
func TestColleaguesDoNotHideWorkToResume(t *testing.T) {
	e := env(t, material.Options{})
	colleague := calltest.Owner()
	colleague.Actor.Principal = strings.Repeat("c", 64)
	var mine []event.SessionID
	begin := func(p call.Principal) event.SessionID {
		id := event.NewSessionID()
		e.Append(id, event.SessionCreated{Nonce: event.NewNonce(), Authority: p.Actor.Authority, Principal: p.Actor.Principal, Project: calltest.Alpha,
			Mode: event.ModeNormal})
		return id
	}
	for range 3 {
		mine = append(mine, begin(calltest.Owner()))
	}
	for range 5 * material.MaxSessions {
		begin(colleague)
	}
	before := e.Seq()
	resp, err := e.CallWith(t.Context(), calltest.Owner(), reads, onAlpha, call.Envelope{Context: []string{"workflow.resume"}})
	if err != nil {
		t.Fatal(err)
	}
	var out material.Resume
	if err := json.Unmarshal(materials(e, resp)["workflow.resume"].Content, &out); err != nil || len(out.Sessions) != len(mine) {
		t.Fatalf("%+v %v", out, err)
	}
	for _, s := range out.Sessions {
		if s.SessionRef == "" {
			t.Errorf("%+v", s)
		}
	}
	if n := e.Seq() - before; n != 2 { // of the Sessions and of the Project
		t.Errorf("%d commits", n)
	}
}
