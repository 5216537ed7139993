package session_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

var baseCommit = strings.Repeat("b", 40)

// worktrees makes the scripted Runner one whose worktree of Alpha is Beta. It gives the offers.
func worktrees(e *calltest.Env) *[]wire.Offer {
	var offers []wire.Offer
	e.Fleet.Capabilities = []string{string(wire.OpCreateWorktree)}
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		offers = append(offers, x.Offer)
		body, _ := json.Marshal(wire.CreateWorktreeOut{Project: wire.Project{ID: calltest.Beta.Project, Root: strings.Repeat("r", 64)},
			BaseCommit: baseCommit, Created: true, FiltersDisabled: true})
		return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Body: body}}, nil
	}
	return &offers
}

// What goes to the Runner is the fence of the source as the server knows it, an id of its own and
// the revision: no path, and nothing that says where. The Session is of the worktree's Project.
// Covers: WTR-02, WTR-07, WTR-12
func TestWorktreeIsFenced(t *testing.T) {
	e := calltest.New(t, nil)
	offers := worktrees(e)
	seq := e.Store.Totals()
	out := start(e, args{"project": alpha, "mode": "worktree", "base_ref": "main"})
	if out.Project != beta || out.Worktree == nil || *out.Worktree != (session.WorktreeOut{BaseCommit: baseCommit, Source: alpha, FiltersDisabled: true}) {
		t.Errorf("%+v %+v", out, out.Worktree)
	}
	if len(*offers) != 1 {
		t.Fatal(len(*offers))
	}
	o := (*offers)[0]
	target, err := e.Fleet.Target(calltest.Alpha)
	if err != nil {
		t.Fatal(err)
	}
	if want := (wire.Fence{Client: "local", Instance: target.Instance, Project: calltest.Alpha.Project, Root: target.Root}); o.Fence != want || o.Op != wire.OpCreateWorktree {
		t.Errorf("%+v", o)
	}
	var body map[string]string
	if err := json.Unmarshal(o.Body, &body); err != nil || len(body) != 2 || body["base_ref"] != "main" || len(body["operation"]) != 32 {
		t.Errorf("%s %v", o.Body, err)
	}
	core, ok := e.Store.Core(out.SessionID)
	if !ok || core.Project != calltest.Beta || e.Store.Totals().Active != seq.Active+1 {
		t.Errorf("%+v %+v", core.Project, e.Store.Totals())
	}
	for _, c := range e.Commits(out.SessionID) {
		if b, _ := json.Marshal(c); strings.Contains(string(b), string(calltest.Alpha.Project)) {
			t.Errorf("the Session tells of the source: %s", b)
		}
	}
	recorder := start(e, args{"project": alpha})
	resp, err := e.CallWith(t.Context(), calltest.Owner(), &session.WorkOnProject, args{"project": alpha, "mode": "worktree", "instruction": "x"},
		call.Envelope{Record: string(recorder.SessionID), Field: "recording_session_id"})
	if err != nil || !strings.Contains(string(resp.Output), `"session_recorded":true`) {
		t.Errorf("with a recorder: %v %s", err, resp.Output)
	}
	again := start(e, args{"project": alpha, "mode": "worktree"})
	if o2 := (*offers)[2]; o2.ID == o.ID || strings.Contains(string(o2.Body), body["operation"]) || again.SessionID == out.SessionID {
		t.Error("two starts are one operation")
	}
}

// Where the worktree is not made, or is not known how, there is no Session at all; where it was made
// and the Session was not, the answer names the Project.
// Covers: WTR-06
func TestNoSessionWithoutWorktree(t *testing.T) {
	e := calltest.New(t, nil)
	worktrees(e)
	made := e.Fleet.OnRun
	before := e.Store.Totals()
	for name, tc := range map[string]struct {
		run  func(context.Context, call.Execution) (call.Outcome, error)
		kind fault.Kind
	}{
		"refused": {func(_ context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JRefused, Fault: fault.New(fault.WorktreeRootUnavailable, "no")}}, nil
		}, fault.WorktreeRootUnavailable},
		"failed": {func(_ context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Fault: fault.New(fault.GitFailed, "no")}}, nil
		}, fault.GitFailed},
		"unknown": {func(context.Context, call.Execution) (call.Outcome, error) { return call.Outcome{Unknown: true}, nil }, fault.OutcomeUnknown},
		"says nothing": {func(_ context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Body: []byte(`{"base_commit":"x"}`)}}, nil
		}, fault.Internal},
		"says the source": {func(_ context.Context, x call.Execution) (call.Outcome, error) {
			body, _ := json.Marshal(wire.CreateWorktreeOut{Project: wire.Project{ID: calltest.Alpha.Project, Root: strings.Repeat("r", 64)}, BaseCommit: baseCommit})
			return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Body: body}}, nil
		}, fault.Internal},
	} {
		e.Fleet.OnRun = tc.run
		if _, err := e.Call(&session.WorkOnProject, args{"project": alpha, "mode": "worktree", "instruction": "x"}); fault.KindOf(err) != tc.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The Runner of the worktree goes before the Session is made.
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		defer e.Fleet.Disconnect(calltest.Beta)
		return made(ctx, x)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.CallAs(ctx, calltest.Owner(), &session.WorkOnProject, args{"project": alpha, "mode": "worktree", "instruction": "x"})
	if f := fault.As(err); f == nil || f.Kind != fault.RunnerUnavailable || !f.StateChanged || f.Details["project"] != beta {
		t.Errorf("%+v", f)
	}
	if after := e.Store.Totals(); after != before {
		t.Errorf("Sessions before %+v, after %+v", before, after)
	}
}

// A Session of the checkout takes no worktree, a recorder selects none, and a credential that is
// limited, or may not write, makes none: nothing is asked of the Runner.
// Covers: WTR-11, WTR-14
func TestWorktreeNeedsAFreshStart(t *testing.T) {
	e := calltest.New(t, nil)
	offers := worktrees(e)
	mine := start(e, args{"project": alpha})
	ask := e.Fleet.OnAsk
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		if op == wire.OpObserveWorktree {
			return wire.ObserveWorktreeOut{}, nil
		}
		return ask(op, body)
	}
	limited := calltest.Owner()
	limited.Only = call.NewProjectSet([]event.ProjectRef{calltest.Alpha})
	for name, tc := range map[string]struct {
		p    call.Principal
		a    args
		kind fault.Kind
	}{
		"a Session of the source":       {calltest.Owner(), args{"session_id": string(mine.SessionID), "mode": "worktree"}, fault.SessionProjectMismatch},
		"with its project":              {calltest.Owner(), args{"session_id": string(mine.SessionID), "project": alpha, "mode": "worktree"}, fault.SessionProjectMismatch},
		"with another":                  {calltest.Owner(), args{"session_id": string(mine.SessionID), "project": beta, "mode": "worktree"}, fault.SessionProjectMismatch},
		"base_ref without":              {calltest.Owner(), args{"project": alpha, "base_ref": "main"}, fault.InvalidArguments},
		"base_ref that is none":         {calltest.Owner(), args{"project": alpha, "mode": "worktree", "base_ref": "a\nb"}, fault.InvalidArguments},
		"limited":                       {limited, args{"project": alpha, "mode": "worktree"}, fault.InsufficientScope},
		"may not write":                 {calltest.Owner(call.ScopeProjectWrite), args{"project": alpha, "mode": "worktree", "session_mode": "read_only"}, fault.InsufficientScope},
		"no project, a managed op's id": {calltest.Owner(), args{"mode": "worktree"}, fault.InvalidArguments},
	} {
		a := args{"instruction": "x"}
		for k, v := range tc.a {
			a[k] = v
		}
		t.Run(name, func(t *testing.T) { e.Refused(tc.p, &session.WorkOnProject, a, tc.kind) })
	}
	record := call.Envelope{Record: string(mine.SessionID), Field: "recording_session_id"}
	if _, err := e.CallWith(t.Context(), calltest.Owner(), &session.WorkOnProject, args{"instruction": "x", "mode": "worktree"}, record); fault.KindOf(err) != fault.InvalidArguments {
		t.Errorf("a recorder selects a source: %v", err)
	}
	if len(*offers) != 0 {
		t.Errorf("%d offers", len(*offers))
	}
	// What goes on in a worktree goes on after a look at it, in the same Session.
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		if op == wire.OpObserveWorktree {
			return wire.ObserveWorktreeOut{Managed: true, BaseCommit: baseCommit}, nil
		}
		return ask(op, body)
	}
	got := start(e, args{"session_id": string(mine.SessionID), "mode": "worktree", "base_ref": "main"})
	if got.SessionID != mine.SessionID || got.Continuation != session.Resumed || got.Worktree.BaseCommit != baseCommit || len(*offers) != 0 {
		t.Errorf("%+v", got)
	}
}
