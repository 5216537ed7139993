package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	"webcodex/mcp"
	"webcodex/mcp/client"
	"webcodex/mcp/schema"
	listed "webcodex/projections/session"
)

// person is a second principal with a connection of their own.
type person struct {
	w      *world
	issued access.Issued
	client *client.Client
}

// admit makes a second principal. Without scopes it has all that tools ask for.
func (w *world) admit(in access.CreateIn) *person {
	w.t.Helper()
	if in.Name == "" {
		in.Name = "somebody"
	}
	if in.Scopes == nil {
		in.Scopes = call.ScopeNames()
	}
	if in.Projects == nil {
		in.Projects = []string{"all"}
	}
	i, err := w.srv.second.Create(context.Background(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := client.Connect(context.Background(), client.Options{URL: "http://" + w.srv.tcpListener.Addr().String() + "/mcp", Token: i.Token, Full: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return &person{w, i, c}
}

func (p *person) call(tool string, a args) client.Result {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := p.client.CallTool(ctx, tool, a)
	if err != nil {
		p.w.t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// refused makes a call that has to be refused, with nothing written (AUTH-18).
func (p *person) refused(tool string, a args, kind string) {
	p.w.t.Helper()
	before := p.w.srv.log.Status().Seq
	r := p.call(tool, a)
	if !r.IsError || r.Kind() != kind {
		p.w.t.Errorf("%s %v: %q, want %s: %s", tool, a, r.Kind(), kind, r.Text)
	}
	if after := p.w.srv.log.Status().Seq; after != before {
		p.w.t.Errorf("%s: the refusal wrote %d commits", tool, after-before)
	}
}

func ask[Out any](p *person, tool string, a args) Out {
	p.w.t.Helper()
	r := p.call(tool, a)
	var out Out
	if r.IsError {
		p.w.t.Fatalf("%s: %s", tool, r.Text)
	}
	if err := r.Decode(&out); err != nil {
		p.w.t.Fatal(err)
	}
	return out
}

func (p *person) work(project string) session.WorkOut {
	return ask[session.WorkOut](p, "work_on_project", args{"project": project, "instruction": "do it"})
}

// sampleOf is the least that a schema accepts. Project and Session are those given.
func sampleOf(s *schema.Schema, name, project, session string) any {
	switch {
	case name == "project":
		return project
	case name == "session_id":
		return session
	case s.Type == "object":
		out := args{}
		for _, p := range s.Props {
			if p.Required || p.Name == "project" || p.Name == "session_id" {
				out[p.Name] = sampleOf(p.Schema, p.Name, project, session)
			}
		}
		return out
	case s.Type == "array":
		out := []any{}
		for range max(1, s.MinItems) {
			out = append(out, sampleOf(s.Items, "", project, session))
		}
		return out
	case s.Type == "integer" && s.Min != nil:
		return *s.Min
	case s.Type == "integer":
		return 1
	case s.Type == "boolean":
		return false
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Pattern == board.FenceForm:
		return "wsa1_" + strings.Repeat("0", 43)
	}
	return strings.Repeat("a", max(1, s.MinLength))
}

func argsOf(t mcp.Tool, project, session string) args {
	return sampleOf(t.Input, "", project, session).(args)
}

// TestScopeMatrix: for every tool of the catalogue and every kind of principal, each of the
// tool's scopes is needed, and a call without one is refused before anything is written or
// started; with all of them it is the Project that counts.
//
// Covers: AUTH-10, AUTH-18, LST-03
func TestScopeMatrix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	own := w.work(args{})
	const nowhere = "agent:nobody:none"
	for _, kind := range []string{"user", "project", "shared-key"} {
		in := access.CreateIn{Kind: kind}
		if kind == "project" {
			in.Projects = []string{w.project}
		}
		whole := w.admit(in)
		lacking := map[call.Scope]*person{}
		for _, tool := range mcp.Catalogue() {
			if len(tool.Spec.Scopes) == 0 {
				t.Errorf("%s declares no scope", tool.Spec.Name)
			}
			if tool.Spec.Name == "call_runtime_tool" {
				continue // resolved before the kernel: its target's scopes count
			}
			for _, scope := range tool.Spec.Scopes {
				if lacking[scope] == nil {
					in.Scopes = without(call.ScopeNames(), string(scope))
					lacking[scope] = w.admit(in)
				}
				a := argsOf(tool, w.project, string(own.SessionID))
				lacking[scope].refused(tool.Spec.Name, a, "insufficient_scope")
				lacking[scope].refused("call_runtime_tool", args{"tool": tool.Spec.Name, "arguments": a}, "insufficient_scope")
			}
			if r := whole.call(tool.Spec.Name, argsOf(tool, nowhere, "")); r.Kind() == "insufficient_scope" {
				t.Errorf("%s: %s with every scope: %s", kind, tool.Spec.Name, r.Text)
			}
		}
	}
}

func without(all []string, one string) (out []string) {
	for _, s := range all {
		if s != one {
			out = append(out, s)
		}
	}
	return out
}

// TestScopesAreShown: the manifest shows exactly the scopes that are checked.
//
// Covers: AUTH-12
func TestScopesAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	p := w.admit(access.CreateIn{Kind: "user", Scopes: []string{"runtime:read"}})
	type page struct {
		Tools []struct {
			Name   string       `json:"name"`
			Scopes []call.Scope `json:"scopes"`
		} `json:"tools"`
		Next *int `json:"next_offset"`
	}
	shown := map[string]string{}
	for offset := new(int); offset != nil; {
		got := ask[page](p, "read_tool_manifest", args{"offset": *offset})
		for _, m := range got.Tools {
			shown[m.Name] = fmt.Sprint(m.Scopes)
		}
		offset = got.Next
	}
	for _, tool := range mcp.Catalogue() {
		if shown[tool.Spec.Name] != fmt.Sprint(tool.Spec.Scopes) || len(tool.Spec.Scopes) == 0 {
			t.Errorf("%s: shown %s, checked %v", tool.Spec.Name, shown[tool.Spec.Name], tool.Spec.Scopes)
		}
	}
	if shown["list_sessions"] != "[runtime:read project:read]" {
		t.Errorf("list_sessions: %s", shown["list_sessions"])
	}
}

// TestNoWayAround: no tool knows an argument that would let a call cross Projects.
//
// Covers: AUTH-08
func TestNoWayAround(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	own := w.work(args{})
	for _, tool := range mcp.Catalogue() {
		for _, name := range []string{"allow_cross_project_session", "allow_cross_project", "force", "ignore_project", "_session_id"} {
			for _, p := range tool.Input.Props {
				if p.Name == name {
					t.Errorf("%s has %s", tool.Spec.Name, name)
				}
			}
			a := argsOf(tool, w.other, string(own.SessionID))
			a[name] = true
			w.refused(tool.Spec.Name, a, "invalid_arguments", name)
		}
	}
}

// TestTwoUsersOnOneProject: both work on it, and neither sees, reaches, counts or stops
// anything of the other, whatever ids they know.
//
// Covers: AUTH-03, AUTH-11, AUTH-15, LST-03, LST-04
func TestTwoUsersOnOneProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	a, b := w.admit(access.CreateIn{Kind: "user", Name: "Ada"}), w.admit(access.CreateIn{Kind: "user", Name: "Ada"})
	sa, sb := a.work(w.project), b.work(w.project)
	job := ask[struct {
		ID string `json:"job_id"`
	}](a, "run_shell", args{"project": w.project, "session_id": sa.SessionID, "command": "sleep 20", "sync_wait_secs": 0})
	if job.ID == "" {
		t.Fatal("no Job")
	}
	for _, tool := range mcp.Catalogue() {
		takes := false
		for _, p := range tool.Input.Props {
			takes = takes || p.Name == "session_id"
		}
		if takes {
			b.refused(tool.Spec.Name, argsOf(tool, w.project, string(sa.SessionID)), "session_authority_denied")
			w.refused(tool.Spec.Name, argsOf(tool, w.project, string(sa.SessionID)), "session_authority_denied", "")
		}
	}
	seen := ask[struct {
		Items []struct {
			Success bool   `json:"success"`
			Kind    string `json:"error_kind"`
		} `json:"items"`
	}](b, "observe_jobs", args{"items": []args{{"job_id": job.ID}}})
	if len(seen.Items) != 1 || seen.Items[0].Success || seen.Items[0].Kind != "unknown_job" {
		t.Errorf("%+v", seen)
	}
	b.refused("stop_job", args{"project": w.project, "job_id": job.ID}, "unknown_job")
	for range 3 {
		a.work(w.project)
	}
	list := ask[listed.Page](b, "list_sessions", args{"project": w.project})
	if list.Total != 1 || len(list.Sessions) != 1 || list.Sessions[0].SessionID != sb.SessionID {
		t.Errorf("%+v", list)
	}
	if list := ask[listed.Page](a, "list_sessions", args{"project": w.project, "limit": 3}); list.Total != 4 || list.Returned != 3 {
		t.Errorf("%+v", list)
	}
	ask[struct{}](a, "stop_job", args{"project": w.project, "job_id": job.ID})
	core, _ := w.srv.store.Core(sa.SessionID)
	owner := w.srv.access.Principal().Actor
	if !event.ValidFingerprint(core.Authority) || core.Authority == owner.Authority || core.Authority == core.Principal {
		t.Errorf("%+v", core)
	}
}

// TestOneRefTwoCallers: ~s1 of two principals are unrelated Sessions, and nothing for a third.
//
// Covers: SES-07, AUTH-15
func TestOneRefTwoCallers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	a, b, c := w.admit(access.CreateIn{Kind: "user"}), w.admit(access.CreateIn{Kind: "user"}), w.admit(access.CreateIn{Kind: "user"})
	sa, sb := a.work(w.project), b.work(w.project)
	for p, want := range map[*person]event.SessionID{a: sa.SessionID, b: sb.SessionID} {
		if got := ask[struct {
			ID event.SessionID `json:"session_id"`
		}](p, "read_session_summary", args{"session_id": "~s1"}); got.ID != want {
			t.Errorf("~s1 is %s, want %s", got.ID, want)
		}
	}
	c.refused("read_session_summary", args{"session_id": "~s1"}, "unknown_session_ref")
}

// TestSharedKeyGroup: holders of one group share its Sessions, each with refs of their own; one
// limited to another Project has no access to it and to what was done there. A second shared
// key, and the owner, are other groups.
//
// Covers: AUTH-03, AUTH-13, AUTH-15
func TestSharedKeyGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	first := w.admit(access.CreateIn{Kind: "shared-key"})
	second := w.admit(access.CreateIn{Kind: "shared-key", Group: string(first.issued.ID), Scopes: []string{"runtime:read", "project:read", "session:collaborate"}})
	limited := w.admit(access.CreateIn{Kind: "shared-key", Group: string(first.issued.ID), Projects: []string{w.other}})
	stranger := w.admit(access.CreateIn{Kind: "shared-key"})
	s := ask[session.WorkOut](first, "work_on_project", args{"project": w.project, "instruction": "look", "session_mode": "read_only"})
	id := string(s.SessionID)
	before, _ := w.srv.store.Core(s.SessionID)

	// A ref is its holder's own, also within the group.
	second.refused("read_session_summary", args{"session_id": "~s1"}, "unknown_session_ref")
	if l := ask[listed.Page](second, "list_sessions", args{"project": w.project}); l.Total != 1 || l.Sessions[0].SessionID != s.SessionID {
		t.Errorf("%+v", l)
	}
	// Without the write scope nobody makes it a normal one; with it its identity stays.
	again := args{"session_id": id, "instruction": "write", "session_mode": "normal"}
	second.refused("work_on_project", again, "session_capability_upgrade_denied")
	if r := second.call("work_on_project", args{"session_id": id, "instruction": "go on"}); r.IsError {
		t.Errorf("a member of the group: %s", r.Text)
	}
	// Nor other defaults for the commands of those who may run them.
	second.refused("work_on_project", args{"session_id": id, "instruction": "x", "execution_context": args{"default_shell": "bash"}}, "insufficient_scope")
	if r := first.call("work_on_project", again); r.IsError {
		t.Errorf("with the write scope: %s", r.Text)
	}
	after, _ := w.srv.store.Core(s.SessionID)
	if after.Mode != event.ModeNormal || after.Authority != before.Authority || after.Principal != before.Principal || after.ID != before.ID {
		t.Errorf("%+v", after)
	}
	for _, tool := range mcp.Catalogue() {
		for _, p := range tool.Input.Props {
			if p.Name != "session_id" {
				continue
			}
			stranger.refused(tool.Spec.Name, argsOf(tool, w.project, id), "session_authority_denied")
			limited.refused(tool.Spec.Name, argsOf(tool, w.project, id), "unknown_project")
			a := argsOf(tool, w.other, id)
			limited.refused(tool.Spec.Name, a, "unknown_project") // and not that it is of another Project
		}
	}
	limited.refused("read_session_handoff", args{"session_id": id}, "unknown_project")
	limited.refused("list_sessions", args{"project": w.project}, "unknown_project")
	projects := ask[struct {
		Projects []struct {
			Project string `json:"project"`
		} `json:"projects"`
		Matched int `json:"matched_count"`
	}](limited, "list_projects", args{})
	if projects.Matched != 1 || len(projects.Projects) != 1 || projects.Projects[0].Project != w.other {
		t.Errorf("%+v", projects)
	}
	if limited.work(w.other); w.srv.store.Count(listed.Filter{Authority: before.Authority}) != (listed.Retained{Active: 2}) {
		t.Error("it cannot work where it may")
	}
}

// TestStatusTellsNobodyElse: what the server says of itself to one caller names and counts
// nothing of another.
//
// Covers: AUTH-15
func TestStatusTellsNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	const marker = "ZebraMarkerName"
	a := w.admit(access.CreateIn{Kind: "user", Name: marker})
	b := w.admit(access.CreateIn{Kind: "project", Projects: []string{w.other}})
	for range 3 {
		a.work(w.project)
	}
	b.work(w.other)
	type status struct {
		Sessions listed.Totals     `json:"sessions"`
		Projects int               `json:"projects"`
		Runners  []call.RunnerInfo `json:"runners"`
	}
	if st := ask[status](b, "get_runtime_status", args{}); st.Sessions.Sessions != 1 || st.Projects != 1 || len(st.Runners) != 1 || st.Runners[0].Projects != 1 {
		t.Errorf("%+v", st)
	} else if whole := w.srv.store.Totals(); whole.HotTarget == 0 || st.Sessions.HotTarget != whole.HotTarget ||
		st.Sessions.MaxSessions != whole.MaxSessions || st.Sessions.MaxTail != whole.MaxTail {
		t.Errorf("the limits are %+v to one and %+v to another", whole, st.Sessions)
	}
	var said strings.Builder
	s := streams{out: &said, err: &said}
	_ = doctor(t.Context(), s, w.dir, true)
	_ = doctor(t.Context(), s, w.dir, false)
	for _, tool := range []string{"get_runtime_status", "list_projects", "read_tool_manifest"} {
		said.WriteString(b.call(tool, args{}).Text)
		said.WriteString(w.call(tool, args{}).Text)
	}
	k, _ := w.srv.tokens.Get(a.issued.ID)
	for _, secret := range []string{marker, a.issued.Token, string(a.issued.ID), k.Hash, k.Authority, k.Principal} {
		if strings.Contains(said.String(), secret) {
			t.Errorf("%s is told", secret)
		}
	}
}

// TestNoIdentityIsStored: no byte of a token is at rest, and a name stands in the record of the
// tokens alone: no Session, commit or ref is anybody's by name.
//
// Covers: AUTH-01, AUTH-02
func TestNoIdentityIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "always")
	const marker = "ZebraMarkerName"
	var secrets []string
	for _, in := range []access.CreateIn{{Kind: "user"}, {Kind: "shared-key"}, {Kind: "project", Projects: []string{w.project}}} {
		in.Name = marker
		p := w.admit(in)
		s := p.work(w.project)
		p.call("run_process", args{"project": w.project, "session_id": s.SessionID, "executable": "echo", "args": []string{p.issued.Token}})
		p.call("list_sessions", args{"project": w.project})
		secrets = append(secrets, p.issued.Token)
	}
	secrets = append(secrets, w.srv.access.Token())
	err := w.srv.log.Replay(t.Context(), eventlog.Range{}, func(e eventlog.Entry) error {
		body, err := e.Commit.Encode()
		if err != nil {
			return err
		}
		if named := strings.Contains(string(body), marker); named && e.Commit.Aggregate != event.AccessAggregate() {
			t.Errorf("commit %d of %s holds a name", e.Seq, e.Commit.Aggregate)
		}
		if c := e.Commit; c.Aggregate.Domain == event.DomainSession && (!event.ValidFingerprint(c.Actor.Authority) || !event.ValidFingerprint(c.Actor.Principal)) {
			t.Errorf("commit %d: %+v", e.Seq, c.Actor)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	files := filesAtRest(t, w.dir)
	if len(files) < 5 {
		t.Fatalf("only %d files", len(files))
	}
	for name, body := range files {
		for _, secret := range secrets {
			if name == "/"+mcp.TokenFile {
				continue
			}
			for _, form := range forms(strings.TrimPrefix(secret, "wcx_")) {
				if strings.Contains(body, form) {
					t.Errorf("%s holds a token", name)
				}
			}
		}
	}
	for _, secret := range secrets {
		if strings.Contains(w.said.String(), secret) {
			t.Error("the server said a token")
		}
	}
}

// TestOwnerAfterForgery: a call whose arguments claim an identity is the caller's all the same.
func TestOwnerAfterForgery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	a := w.admit(access.CreateIn{Kind: "user"})
	owner := w.srv.access.Principal().Actor
	forged, _ := json.Marshal(map[string]any{"authority": owner.Authority, "principal": owner.Principal})
	if r := a.call("work_on_project", args{"project": w.project, "instruction": string(forged), "_wc": json.RawMessage(forged)}); r.Kind() != "invalid_arguments" {
		t.Errorf("an envelope with an identity: %s", r.Text)
	}
	r := a.call("work_on_project", args{"project": w.project, "instruction": string(forged)})
	var out session.WorkOut
	if err := r.Decode(&out); err != nil || r.IsError {
		t.Fatalf("%v %s", err, r.Text)
	}
	if core, _ := w.srv.store.Core(out.SessionID); core.Authority == owner.Authority || core.Principal == owner.Principal {
		t.Error("the Session is the owner's")
	}
}
