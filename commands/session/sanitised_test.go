package session_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
)

// leaks are a secret in the forms in which a foreign program might have stored it.
const secretBody = "q7Zk2Mx9Wd4Rt6Yb1Nc8"

var leaks = []string{"ghp_" + secretBody, "use password=" + secretBody, "https://bob:" + secretBody + "@host/x", "Bearer " + secretBody}

// foreign are the events of a Session as a program without bounds would have written them.
func foreign(leak string, mode event.Mode) []event.Event {
	long := leak + " " + strings.Repeat("ä", 300)
	many := make([]string, 0, 500)
	for i := range 250 {
		many = append(many, fmt.Sprintf("dir/%d.go", i))
	}
	paths := append([]string{"/etc/" + leak, "../" + leak, leak, "a/" + leak + "/b", strings.Repeat("x/", 400)}, many...)
	in := event.Input{Executable: long, Language: long, Shell: long, Cwd: "/" + leak, Purpose: long, Paths: paths, Packages: many, Target: long,
		Expectation: long, Features: []string{long}, Flags: leaks}
	call := event.CallID("wc_call_00000000000000000000000000000001")
	open := event.CallID("wc_call_00000000000000000000000000000002")
	v := &event.Validation{Kind: long, TargetID: long, Scope: long, Parser: long}
	bad := event.ExecutionContext{DefaultCwd: "/" + leak, DefaultShell: leak, Resource: long}
	return []event.Event{
		event.SessionCreated{Nonce: "n", Authority: calltest.Owner().Actor.Authority, Principal: calltest.Owner().Actor.Principal, Project: calltest.Alpha,
			Root: long, Title: long, Mode: mode, Context: event.ExecutionContext{DefaultCwd: "sub", DefaultShell: leak, Resource: long}},
		event.InstructionAccepted{Text: long + strings.Repeat("ä", 5000), Continuation: long, Transport: long, Mode: mode, RequestedMode: event.Mode(leak), PreviousMode: event.Mode(leak)},
		event.InstructionsObserved{Sources: []event.InstructionFile{{Path: "/" + leak}, {Path: leak, SHA256: leak}, {Path: "AGENTS.md", SHA256: "00"}}},
		event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "sub", DefaultShell: leak, Resource: long}, Previous: bad},
		event.ToolCallStarted{Call: call, Tool: long, Role: event.Role(leak), Transport: long, Input: in, At: long},
		event.ToolCallFinished{Call: call, Tool: long, Role: event.Role(leak), Transport: long, Status: long, ErrorKind: long, FailureKind: long,
			ErrorSummary: long, Changed: paths, Observed: paths, Expectation: long, Validation: v, Effect: event.Effect{State: event.ExecutionState(leak)}},
		event.ToolCallStarted{Call: open, Tool: long, Input: in, Execution: &event.Execution{ID: event.ExecutionID(long), Op: long, Root: long}},
		event.ExecutionFinished{Execution: "wc_exec_00000000000000000000000000000003", Call: open, Tool: long, FailureKind: long, Expectation: long, Validation: v},
	}
}

// readAll is everything that can be read of a Session, as text.
func readAll(t *testing.T, e *calltest.Env, id event.SessionID) string {
	t.Helper()
	var out []any
	for _, spec := range []*call.Spec{&session.ReadSummary, &session.ReadHandoff} {
		for _, a := range []args{{"session_id": id}, {"session_id": id, "limit": 100}} {
			r, err := e.Call(spec, a)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r.Output)
		}
	}
	r, err := e.Call(&session.ListSessions, args{"project": alpha})
	if err != nil {
		t.Fatal(err)
	}
	v, err := e.Store.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	_, carried := view.Carry(v)
	for i, c := range e.Commits(id) {
		out = append(out, view.NewStep(view.Stored{Seq: uint64(i + 1), Commit: c}))
	}
	for _, it := range v.Tail.Items() {
		out = append(out, it.Event())
	}
	b, err := json.Marshal(append(out, r.Output, v.Core))
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + string(carried)
}

// What a program without bounds, redaction and path rules has stored comes out of no read, from
// memory or from rows; what is valid beside it stays, and the next command goes on.
//
// Covers: RES-13, RES-10
func TestForeignCommitsAreReadSanitised(t *testing.T) {
	for _, leak := range leaks {
		t.Run(leak[:6], func(t *testing.T) {
			e := calltest.New(t, nil)
			id := event.NewSessionID()
			for _, ev := range foreign(leak, event.ModeReadOnly) {
				e.Commit(event.SessionAggregate(id), ev)
			}
			for range 2 { // hot, then from what a start reads
				got := readAll(t, e, id)
				if i := strings.Index(got, secretBody); i >= 0 {
					t.Fatalf("it comes out: %s", got[max(0, i-200):i+60])
				}
				if strings.Contains(got, "/etc/") || strings.Contains(got, "../") || strings.Contains(got, strings.Repeat("ä", 4001)) {
					t.Fatal("a path that is none, or a text beyond its bound, comes out")
				}
				c, _ := e.Store.Core(id)
				if c.Context != (event.ExecutionContext{DefaultCwd: "sub"}) || len(c.Instructions) != 1 || !c.Edited || !c.Guards.DenyShell || !c.Guards.DenyWrite {
					t.Fatalf("%+v %+v", c.Context, c)
				}
				e.Reopen()
			}
			start(e, args{"session_id": string(id), "instruction": "go on"})
		})
	}
}

// A Session with a mode that is none is discarded, wherever the mode stands, never taken for
// another; the others stay.
//
// Covers: RES-07
func TestUnknownModeDiscardsTheSession(t *testing.T) {
	e := calltest.New(t, nil)
	born, turned := event.NewSessionID(), start(e, args{"project": alpha}).SessionID
	for _, ev := range foreign("x", "inspect") {
		e.Commit(event.SessionAggregate(born), ev)
	}
	other := start(e, args{"project": alpha}).SessionID
	e.Commit(event.SessionAggregate(turned), event.InstructionAccepted{Text: "x", Mode: "inspect"})
	for range 2 {
		for _, id := range []event.SessionID{born, turned} {
			e.Refused(calltest.Owner(), &session.ReadSummary, args{"session_id": id}, fault.UnknownSessionID)
			e.Refused(calltest.Owner(), &session.WorkOnProject, args{"session_id": string(id), "instruction": "x"}, fault.UnknownSessionID)
		}
		list, _, err := e.Store.Select(view.Filter{AnyAuthority: true}, 0, 10)
		if err != nil || len(list) != 1 || list[0].ID != other || e.Store.Totals().Sessions != 1 {
			t.Fatalf("%d listed, %+v", len(list), e.Store.Totals())
		}
		e.Reopen()
	}
}

// What the commands store is within all bounds, so that reading it changes nothing.
//
// Covers: RES-13
func TestSanitisingChangesNothingOfOurs(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom(leaks), rapid.StringMatching(`([a-z:= ]{1,8}|token|password|-p ){1,30}`),
		rapid.StringMatching(`[A-Za-z0-9/._-]{1,300}`))
	rapid.Check(t, func(t *rapid.T) {
		in := session.ContextIn{DefaultCwd: text.Draw(t, "cwd"), DefaultShell: "sh"}
		ctx, err := in.Event(true)
		if err != nil {
			ctx = &event.ExecutionContext{}
		}
		mode := rapid.SampledFrom([]event.Mode{event.ModeNormal, event.ModeReadOnly}).Draw(t, "mode")
		o := calltest.Owner()
		events, err := session.DecideStart(session.Start{Actor: o.Actor, Nonce: "n", Project: calltest.Alpha,
			Title: text.Draw(t, "title"), Instruction: text.Draw(t, "instruction"), Mode: mode, Context: *ctx, Transport: "mcp"})
		if err != nil {
			t.Fatal(err)
		}
		paths := rapid.SliceOfN(text, 0, 10)
		events = append(events, event.ToolCallStarted{Call: event.NewCallID(), Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp",
			Input: call.BoundInput(event.Input{Executable: text.Draw(t, "exe"), Cwd: text.Draw(t, "at"), Paths: paths.Draw(t, "paths"), Packages: paths.Draw(t, "packages"), Target: string(event.NewExecutionID())})})
		v := view.View{}.Apply(1, "h", event.Commit{Aggregate: event.SessionAggregate("s"), Version: 1, At: time.Unix(1, 0), Events: slices.Clone(events)})
		var got []event.Event
		for _, it := range v.Tail.Items() {
			got = append(got, it.Event())
		}
		created := events[0].(event.SessionCreated)
		if diff := cmp.Diff(events[len(events)-len(got):], got); diff != "" {
			t.Fatal(diff)
		}
		if c := v.Core; c.Title != created.Title || c.Context != created.Context || c.Guards != created.Guards || c.Mode != created.Mode {
			t.Fatalf("%+v of %+v", c, created)
		}
	})
}
