package session_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha, beta = calltest.Alpha.String(), calltest.Beta.String()

func start(e *calltest.Env, a args) session.WorkOut {
	e.T.Helper()
	if a["instruction"] == nil {
		a["instruction"] = "do it"
	}
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, a)
}

// Covers: STA-03, STA-10, SES-02, SES-21
func TestAFreshStartIsOneCommitAndAlwaysAFreshSession(t *testing.T) {
	e := calltest.New(t, nil)
	first, second := start(e, args{"project": alpha}), start(e, args{"project": alpha})
	if first.SessionID == second.SessionID {
		t.Fatal("the second start continued the first")
	}
	for _, out := range []session.WorkOut{first, second} {
		if !out.SessionID.Valid() || out.Continuation != "created" || out.Session.Lifecycle != view.Active {
			t.Errorf("%+v", out)
		}
		commits := e.Commits(out.SessionID)
		if len(commits) != 1 || len(commits[0].Events) != 3 { // created, instruction, ref
			t.Fatalf("%d commits", len(commits))
		}
		c, _ := commits[0].Events[0].(event.SessionCreated)
		if c.Nonce == "" || c.Authority == "" || c.Principal == "" || c.Root == "" || commits[0].Invocation == "" || commits[0].Server != e.Server {
			t.Errorf("identity is missing: %+v %+v", c, commits[0])
		}
	}
}

// Covers: STA-04, STA-05, STA-06, STA-21
func TestExactResume(t *testing.T) {
	e := calltest.New(t, nil)
	want, other := start(e, args{"project": alpha}), start(e, args{"project": alpha})
	got := start(e, args{"session_id": string(want.SessionID), "instruction": "go on"})
	if got.SessionID != want.SessionID || got.Continuation != "resumed" || got.Project != alpha {
		t.Errorf("%+v", got)
	}
	start(e, args{"session_id": string(want.SessionID), "project": alpha, "instruction": "and on"})
	if n, m := len(e.Commits(want.SessionID)), len(e.Commits(other.SessionID)); n != 3 || m != 1 {
		t.Errorf("%d commits in the named, %d in the other", n, m)
	}
	e.Refused(calltest.Owner(), &session.WorkOnProject, args{"session_id": string(want.SessionID), "project": beta, "instruction": "x"}, fault.SessionProjectMismatch)
}

// Covers: STA-07, STA-08, STA-11, STA-21
func TestNothingIsSelectedInstead(t *testing.T) {
	e := calltest.New(t, nil)
	mine := start(e, args{"project": alpha})
	closed := start(e, args{"project": alpha})
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": closed.SessionID})
	loose := calltest.Must[session.StartOut](e, &session.StartSession, args{"title": "no project"})
	before := e.Store.Totals()
	for name, tc := range map[string]struct {
		p    call.Principal
		a    args
		kind fault.Kind
	}{
		"neither":                           {calltest.Owner(), args{"instruction": "x"}, fault.InvalidArguments},
		"missing":                           {calltest.Owner(), args{"instruction": "x", "session_id": string(event.NewSessionID())}, fault.UnknownSessionID},
		"closed":                            {calltest.Owner(), args{"instruction": "x", "session_id": string(closed.SessionID)}, fault.SessionClosed},
		"inaccessible":                      {calltest.Someone("b"), args{"instruction": "x", "session_id": string(mine.SessionID)}, fault.SessionAuthorityDenied},
		"unknown project":                   {calltest.Owner(), args{"instruction": "x", "project": "agent:a:b"}, fault.UnknownProject},
		"too long":                          {calltest.Owner(), args{"instruction": strings.Repeat("x", 4001), "project": alpha}, fault.InvalidInstruction},
		"empty":                             {calltest.Owner(), args{"instruction": " ", "project": alpha}, fault.InvalidInstruction},
		"worktree, no project":              {calltest.Owner(), args{"instruction": "x", "mode": "worktree"}, fault.InvalidArguments},
		"worktree of a Session without one": {calltest.Owner(), args{"instruction": "x", "session_id": string(loose.SessionID), "mode": "worktree"}, fault.InvalidArguments},
		"project for a Session without one": {calltest.Owner(), args{"instruction": "x", "session_id": string(loose.SessionID), "project": alpha}, fault.SessionProjectMismatch},
		"worktree":                          {calltest.Owner(), args{"instruction": "x", "project": alpha, "mode": "worktree"}, fault.CapabilityUnavailable},
		"bad defaults":                      {calltest.Owner(), args{"instruction": "x", "project": alpha, "execution_context": args{"default_cwd": "/x"}}, fault.InvalidContext},
		"no write scope":                    {calltest.Owner(call.ScopeProjectWrite), args{"instruction": "x", "project": alpha}, fault.InsufficientScope},
		"no read scope":                     {calltest.Owner(call.ScopeProjectRead), args{"instruction": "x", "project": alpha}, fault.InsufficientScope},
		"context, no project":               {calltest.Owner(), args{"instruction": "x", "session_id": string(loose.SessionID), "execution_context": args{"default_cwd": "x"}}, fault.ContextNeedsProject},
	} {
		t.Run(name, func(t *testing.T) { e.Refused(tc.p, &session.WorkOnProject, tc.a, tc.kind) })
	}
	if after := e.Store.Totals(); after != before {
		t.Errorf("Sessions before %+v, after %+v", before, after)
	}
	e.Fleet.Disconnect(calltest.Alpha)
	e.Refused(calltest.Owner(), &session.WorkOnProject, args{"instruction": "x", "project": alpha}, fault.RunnerUnavailable)
}

// Covers: SES-22, SES-23
func TestCloseIsFinal(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha})
	one := calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": s.SessionID})
	two := calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": s.SessionID})
	if one.AlreadyClosed || !two.AlreadyClosed || one.Lifecycle != view.Closed || two.Lifecycle != view.Closed {
		t.Errorf("%+v, then %+v", one, two)
	}
	closings := 0
	for _, ev := range e.Events(s.SessionID) {
		if _, ok := ev.(event.SessionClosed); ok {
			closings++
		}
	}
	if closings != 1 {
		t.Errorf("%d session_closed events", closings)
	}
	before := e.Seq()
	calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": s.SessionID})
	calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": s.SessionID})
	e.Refused(calltest.Owner(), &session.WorkOnProject, args{"session_id": string(s.SessionID), "instruction": "x", "session_mode": "normal"}, fault.SessionClosed)
	if e.Seq() != before {
		t.Error("a Closed Session changed")
	}
	e.Refused(calltest.Owner(call.ScopeCollaborate), &session.CloseSession, args{"session_id": string(s.SessionID)}, fault.InsufficientScope)
}

// Next actions carry the Session, so that a model passes it on by itself.
func TestNextActionsCarryTheSession(t *testing.T) {
	e := calltest.New(t, nil)
	out := start(e, args{"project": alpha})
	again := start(e, args{"session_id": string(out.SessionID), "instruction": "go on"})
	for _, n := range append(out.Next, again.Next...) {
		if n.Arguments["session_id"] != string(out.SessionID) {
			t.Errorf("next action %s does not carry the Session: %v", n.Tool, n.Arguments)
		}
	}
}

func TestARunnerThatCannotTellHoldsNobodyUp(t *testing.T) {
	e := calltest.New(t, nil)
	e.Fleet.OnAsk = func(wire.Op, json.RawMessage) (any, error) { return nil, fault.New(fault.Timeout, "slow") }
	if out := start(e, args{"project": alpha}); out.Workspace.Status != "unavailable" || out.Continuation != "created" {
		t.Errorf("%+v", out.Workspace)
	}
}

func keys(t *testing.T, raw json.RawMessage) []string {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

// Covers: HND-01, HND-02, HND-03, HND-07
func TestHandoff(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha})
	e.Refused(calltest.Owner(), &session.ReadHandoff, args{}, fault.InvalidArguments)
	e.Refused(calltest.Owner(), &session.ReadHandoff, args{"project": alpha}, fault.InvalidArguments)
	resp, err := e.Call(&session.ReadHandoff, args{"session_id": s.SessionID})
	if err != nil {
		t.Fatal(err)
	}
	if got := keys(t, resp.Output); !slices.Equal(got, []string{"handoff_brief", "project", "session_id", "session_ref"}) {
		t.Errorf("members %q", got)
	}
	h := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": s.SessionID})
	f := calltest.Must[view.Finish](e, &session.FinishTask, args{"session_id": s.SessionID, "project": alpha})
	if f.Brief == nil || h.Brief.Version != view.BriefVersion {
		t.Fatal("no brief")
	}
	if d := cmp.Diff(h.Brief, *f.Brief); d != "" {
		t.Error(d)
	}
	if core, _ := e.Store.Core(s.SessionID); core.Lifecycle != view.Active {
		t.Error("the closeout closed the Session")
	}
	for _, raw := range []json.RawMessage{mustOutput(e, &session.ListSessions, args{"project": alpha}), mustOutput(e, &session.ReadSummary, args{"session_id": s.SessionID})} {
		if strings.Contains(string(raw), "handoff") {
			t.Error("an unrelated result carries a handoff")
		}
	}
	asks := len(e.Fleet.Asks())
	calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": s.SessionID, "include_workspace": false})
	if len(e.Fleet.Asks()) != asks {
		t.Error("the working tree was queried although it was not asked for")
	}
}

func mustOutput(e *calltest.Env, spec *call.Spec, a args) json.RawMessage {
	e.T.Helper()
	resp, err := e.Call(spec, a)
	if err != nil {
		e.T.Fatal(err)
	}
	return resp.Output
}

// Covers: LST-01, LST-02, LST-05
func TestListSessions(t *testing.T) {
	e := calltest.New(t, nil)
	var ids []event.SessionID
	for range 12 {
		ids = append(ids, start(e, args{"project": alpha}).SessionID)
	}
	start(e, args{"project": beta})
	time.Sleep(5 * time.Millisecond) // updates are told apart by the millisecond
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": ids[3]})
	page := func(a args) view.Page { return calltest.Must[view.Page](e, &session.ListSessions, a) }
	if p := page(args{"project": alpha}); p.Total != 12 || p.Returned != 10 || p.Limit != 10 || p.NextOffset == nil {
		t.Errorf("%+v", p)
	}
	if p := page(args{"project": alpha, "limit": 21}); p.Limit != 20 || p.Returned != 12 || p.Sessions[0].SessionID != ids[3] {
		t.Errorf("limit 21: %+v", p)
	}
	if p := page(args{"project": alpha, "limit": 0}); p.Limit != 1 {
		t.Errorf("limit 0: %d", p.Limit)
	}
	if p := page(args{"project": alpha, "limit": -1}); p.Limit != 1 {
		t.Errorf("limit -1: %d", p.Limit)
	}
	if p := page(args{"project": alpha, "lifecycle": "closed"}); p.Total != 1 || p.Sessions[0].SessionID != ids[3] {
		t.Errorf("closed: %+v", p)
	}
	other := calltest.Someone("b")
	resp, err := e.CallAs(t.Context(), other, &session.ListSessions, args{"project": alpha})
	if err != nil || !strings.Contains(string(resp.Output), `"total":0`) {
		t.Errorf("another authority sees %s, %v", resp.Output, err)
	}
	e.Refused(calltest.Owner(), &session.ListSessions, args{}, fault.InvalidArguments)
	e.Refused(calltest.Owner(), &session.ListSessions, args{"project": alpha, "lifecycle": "archived"}, fault.InvalidArguments)
	e.Refused(calltest.Owner(call.ScopeProjectRead), &session.ListSessions, args{"project": alpha}, fault.InsufficientScope)
}

// Covers: EVT-06, EVT-22
func TestInstructionsAndCountsSurviveARestart(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha, "instruction": "use token=abcdef0123456789abcdef please"})
	start(e, args{"session_id": string(s.SessionID), "instruction": "now read only", "session_mode": "read_only"})
	before := calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": s.SessionID})
	e.Reopen()
	after := calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": s.SessionID})
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	if after.EventsObserved != 2 {
		t.Errorf("observed %d", after.EventsObserved)
	}
	in := after.Events[1].Instruction
	if in == nil || in.PreviousMode != event.ModeNormal || in.Mode != event.ModeReadOnly || !in.CapabilityChanged || !in.Guards.DenyShell || in.Continuation != "resumed" {
		t.Errorf("%+v", in)
	}
	if strings.Contains(after.Events[0].Instruction.Text, "abcdef0123456789abcdef") {
		t.Error("a secret was kept")
	}
}
