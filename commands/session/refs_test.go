package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/access"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// runs is a tool that runs a command, reads one that reads files.
var (
	runs = &call.Spec{Name: "some_run", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
		Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
			_, err := c.Effect(ctx, wire.OpProcess, wire.ProcessIn{Executable: "true"}, call.EffectOptions{Timeout: 1e9})
			return call.Result{}, err
		}}
	reads = &call.Spec{Name: "some_read", Scopes: []call.Scope{call.ScopeProjectRead}, Plane: call.PlaneProject, Class: call.Observe,
		Run: func(_ context.Context, c *call.Call) (call.Result, error) {
			return call.Result{Output: map[string]any{"project": c.Project.Project, "session": c.Session.ID}}, nil
		}}
)

func list(e *calltest.Env, p call.Principal, a args) view.Page {
	e.T.Helper()
	return as[view.Page](e, p, &session.ListSessions, a)
}

func as[Out any](e *calltest.Env, p call.Principal, spec *call.Spec, a args) Out {
	e.T.Helper()
	resp, err := e.CallAs(context.Background(), p, spec, a)
	if err != nil {
		e.T.Fatalf("%s %v: %v", spec.Name, a, err)
	}
	var out Out
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		e.T.Fatal(err)
	}
	return out
}

// colleague is another principal of the owner's authority group.
func colleague() call.Principal {
	p := calltest.Someone("b")
	p.Actor.Authority = calltest.Owner().Actor.Authority
	return p
}

// Every issuer of refs gives one and the same for one Session, beside the canonical id, and
// each principal has numbers of its own.
//
// Covers: SES-06, SES-07, SES-18, AUTH-15
func TestOneRefPerPrincipalAndIncarnation(t *testing.T) {
	e := calltest.New(t, nil)
	w := start(e, args{"project": alpha})
	time.Sleep(2 * time.Millisecond) // which is the newer is told by the millisecond
	s := calltest.Must[session.StartOut](e, &session.StartSession, args{"project": alpha})
	if w.SessionRef != "~s1" || s.SessionRef != "~s2" || w.ProjectRef != "~p1" || s.ProjectRef != "~p1" {
		t.Fatalf("%+v %+v", w, s)
	}
	before := e.Seq()
	for range 2 {
		rows := map[event.SessionID]string{}
		for _, r := range list(e, calltest.Owner(), args{"project": alpha}).Sessions {
			rows[r.SessionID] = r.SessionRef
		}
		if d := cmp.Diff(map[event.SessionID]string{w.SessionID: "~s1", s.SessionID: "~s2"}, rows); d != "" {
			t.Error(d)
		}
		if h := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": w.SessionID}); h.SessionRef != "~s1" {
			t.Errorf("the handoff gives %q", h.SessionRef)
		}
	}
	if after := e.Seq(); after != before {
		t.Errorf("showing refs that there are wrote %d commits", after-before)
	}
	// The newest comes first, so the other principal's numbers stand the other way round.
	rows := list(e, colleague(), args{"project": alpha}).Sessions
	if len(rows) != 2 || rows[0].SessionID != s.SessionID || rows[0].SessionRef != "~s1" || rows[1].SessionRef != "~s2" {
		t.Errorf("%+v", rows)
	}
	if after := e.Seq(); after != before+1 {
		t.Errorf("one page of new refs took %d commits", after-before)
	}
	mine, theirs := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": "~s1"}),
		as[view.Handoff](e, colleague(), &session.ReadHandoff, args{"session_id": "~s1"})
	if mine.SessionID != w.SessionID || theirs.SessionID != s.SessionID {
		t.Errorf("~s1 is %s and %s", mine.SessionID, theirs.SessionID)
	}
}

// Whatever is denied to the canonical id is denied to its ref, in the same words; and what is
// written through a ref is what the id would have written.
//
// Covers: SES-09, SES-10, SES-17, SES-53
func TestARefIsItsIDInEveryCheck(t *testing.T) {
	e := calltest.New(t, nil)
	open, closed := start(e, args{"project": alpha}), start(e, args{"project": alpha, "session_mode": "read_only"})
	guarded := start(e, args{"project": alpha, "session_mode": "read_only"})
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": closed.SessionRef})
	// A principal whose ref leads to a Session of another authority group.
	stranger := calltest.Someone("c")
	core, _ := e.Store.Core(open.SessionID)
	pin := access.SessionTarget(core.ID, core.Nonce)
	e.Commit(event.RefsAggregate(stranger.Actor.Principal, event.RefSession, 1),
		event.RefBound{Principal: stranger.Actor.Principal, Kind: event.RefSession, Number: 1, Session: pin.Session, Pin: pin.Pin})
	type form struct{ id, ref any }
	o, c, g := form{open.SessionID, open.SessionRef}, form{closed.SessionID, closed.SessionRef}, form{guarded.SessionID, guarded.SessionRef}
	for name, tc := range map[string]struct {
		p    call.Principal
		spec *call.Spec
		s    form
		a    args
		kind fault.Kind
	}{
		"scope":                       {calltest.Owner(call.ScopeJobRun), runs, o, args{"project": alpha}, fault.InsufficientScope},
		"scope of a read":             {calltest.Owner(call.ScopeProjectRead), reads, o, args{"project": alpha}, fault.InsufficientScope},
		"another project":             {calltest.Owner(), runs, o, args{"project": beta}, fault.SessionProjectMismatch},
		"unknown project":             {calltest.Owner(), runs, o, args{"project": "agent:local:none-00000000"}, fault.UnknownProject},
		"foreign authority":           {stranger, runs, form{open.SessionID, "~s1"}, args{"project": alpha}, fault.SessionAuthorityDenied},
		"foreign authority, a read":   {stranger, &session.ReadHandoff, form{open.SessionID, "~s1"}, args{}, fault.SessionAuthorityDenied},
		"foreign authority, a resume": {stranger, &session.WorkOnProject, form{open.SessionID, "~s1"}, args{"instruction": "x"}, fault.SessionAuthorityDenied},
		"closed and guarded":          {calltest.Owner(), runs, c, args{"project": alpha}, fault.SessionClosed},
		"closed, a resume":            {calltest.Owner(), &session.WorkOnProject, c, args{"instruction": "x", "session_mode": "normal"}, fault.SessionClosed},
		"closed, its context":         {calltest.Owner(), &session.UpdateContext, c, args{"project": alpha, "execution_context": args{}}, fault.SessionClosed},
		"guarded":                     {calltest.Owner(), runs, g, args{"project": alpha}, fault.SessionGuardDenied},
		"upgrade":                     {calltest.Owner(call.ScopeProjectWrite), &session.WorkOnProject, g, args{"instruction": "x", "session_mode": "normal"}, fault.UpgradeDenied},
		"closed, a read":              {calltest.Owner(), reads, c, args{"project": alpha}, ""},
		"closed, its summary":         {calltest.Owner(), &session.ReadSummary, c, args{}, ""},
		"closed again":                {calltest.Owner(), &session.CloseSession, c, args{}, ""},
		"a read":                      {calltest.Owner(), &session.ReadSummary, o, args{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			for _, selector := range []any{tc.s.id, tc.s.ref} {
				a := maps.Clone(tc.a)
				a["session_id"] = selector
				resp, err := e.CallAs(context.Background(), tc.p, tc.spec, a)
				if fault.KindOf(err) != tc.kind {
					t.Errorf("%v: %v, want %s", selector, err, tc.kind)
				}
				b, _ := json.Marshal(fault.As(err))
				told = append(told, string(b)+string(resp.Output))
			}
			if name != "guarded" && told[0] != told[1] { // a guard's denial names its evidence
				t.Errorf("by id\n%s\nby ref\n%s", told[0], told[1])
			}
		})
	}
	if core, _ := e.Store.Core(closed.SessionID); core.Lifecycle != view.Closed {
		t.Error("a ref reopened a Session")
	}
	if len(e.Fleet.Starts()) != 0 {
		t.Error("something was started")
	}
}

// A credential or selector that is left out stands for nothing; a ref is none of either.
//
// Covers: SES-10, AUTH-09
func TestARefIsNoCredentialAndNoDefault(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha})
	for _, spec := range []*call.Spec{&session.ReadHandoff, &session.ReadSummary} {
		e.Refused(calltest.Owner(), spec, args{}, fault.InvalidArguments)
	}
	none := calltest.Owner(call.ScopeRuntimeRead, call.ScopeProjectRead, call.ScopeProjectWrite, call.ScopeJobRun, call.ScopeCollaborate)
	for _, spec := range []*call.Spec{&session.ReadHandoff, &session.WorkOnProject, &session.CloseSession, runs} {
		e.Refused(none, spec, args{"session_id": s.SessionRef, "project": "~p1", "instruction": "x"}, fault.InsufficientScope)
	}
	if fresh := start(e, args{"project": "~p1"}); fresh.SessionID == s.SessionID || fresh.Project != alpha {
		t.Errorf("%+v", fresh)
	}
}

// refusal is a refusal as it goes out.
func refusal(e *calltest.Env, p call.Principal, spec *call.Spec, a args, kind fault.Kind) string {
	e.T.Helper()
	b, err := json.Marshal(e.Refused(p, spec, a, kind))
	if err != nil {
		e.T.Fatal(err)
	}
	return string(b)
}

// removeAll closes the Sessions and lets history forget them.
func removeAll(e *calltest.Env, keep int, ids ...event.SessionID) {
	e.T.Helper()
	for _, id := range ids {
		out := calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
		for event.FormatTime(time.Now()) == out.UpdatedAt { // the next close has another time
			time.Sleep(100 * time.Microsecond)
		}
	}
	e.Limit = keep
	e.Reopen()
}

// Five causes keep a ref from naming a Session, and none of them shows in the answer.
//
// Covers: SES-08, SES-11, SES-13, AUTH-15
func TestUnknownRefsAreAllTheSame(t *testing.T) {
	e := calltest.New(t, nil)
	old, other, kept := start(e, args{"project": alpha}), start(e, args{"project": alpha}), start(e, args{"project": alpha})
	owner := calltest.Owner().Actor.Principal
	core, _ := e.Store.Core(kept.SessionID)
	e.Commit(event.RefsAggregate(owner, event.RefSession, 4), event.RefBound{Principal: owner, Kind: event.RefSession, Number: 4,
		Session: kept.SessionID, Pin: event.Incarnation(kept.SessionID, core.Nonce+"0")}) // of an earlier incarnation
	colleague := colleague()
	theirs := "" // Sessions of one millisecond have no order that is known
	for _, row := range list(e, colleague, args{"project": alpha}).Sessions {
		if row.SessionID == other.SessionID {
			theirs = row.SessionRef
		}
	}
	removeAll(e, 1, old.SessionID, other.SessionID)
	e.Refused(calltest.Owner(), &session.ReadHandoff, args{"session_id": old.SessionRef}, fault.SessionExpired)
	removeAll(e, 1, start(e, args{"project": alpha}).SessionID) // old's tombstone leaves for other's
	if n := len(e.Tombstones.All()); n != 1 {
		t.Fatalf("%d tombstones", n)
	}
	for _, spec := range []*call.Spec{&session.ReadHandoff, &session.WorkOnProject, &session.CloseSession, reads, runs} {
		a := args{"instruction": "go on"}
		if spec.Plane == call.PlaneProject {
			a["project"] = alpha
		}
		want := ""
		for _, ref := range []string{"~s99", "~s0", "~s01", "~S1", "~s", "~s-1", "~p1", "~sess", "~s1234567890", "~s 1", "~s４",
			"~s4",           // mismatched
			old.SessionRef,  // aged out
			"~s999999999"} { // missing
			a["session_id"] = ref
			got := refusal(e, calltest.Owner(), spec, a, fault.UnknownSessionRef)
			if want == "" {
				want = got
			}
			if got != want || strings.Contains(got, "wc_sess_") && !strings.Contains(got, "wc_sess_…") {
				t.Errorf("%s %s: %s\nwant %s", spec.Name, ref, got, want)
			}
		}
		for _, p := range []call.Principal{calltest.Someone("c"), colleague} { // foreign
			a["session_id"] = fmt.Sprintf("~s%d", 5)
			if got := refusal(e, p, spec, a, fault.UnknownSessionRef); got != want {
				t.Errorf("%s, foreign: %s\nwant %s", spec.Name, got, want)
			}
		}
	}
	// A colleague's ref to a Session that somebody else owned says no more than that.
	if got := e.Refused(colleague, &session.ReadHandoff, args{"session_id": theirs}, fault.UnknownSessionRef); theirs == "" || got == nil {
		t.Error("no refusal")
	}
}

// A project_ref pins the Project and its root, is the caller's own, and never is a Session's.
//
// Covers: SES-19
func TestProjectRefs(t *testing.T) {
	e := calltest.New(t, nil)
	a, b := start(e, args{"project": alpha}), start(e, args{"project": beta})
	if a.ProjectRef != "~p1" || b.ProjectRef != "~p2" {
		t.Fatalf("%+v %+v", a, b)
	}
	got := calltest.Must[map[string]any](e, reads, args{"project": "~p2", "session_id": b.SessionRef})
	if got["project"] != beta || got["session"] != string(b.SessionID) {
		t.Errorf("%v", got)
	}
	if page := list(e, calltest.Owner(), args{"project": "~p1"}); page.Total != 1 || page.Sessions[0].SessionID != a.SessionID {
		t.Errorf("%+v", page)
	}
	e.Refused(calltest.Owner(), reads, args{"project": "~p1", "session_id": b.SessionRef}, fault.SessionProjectMismatch)
	want := refusal(e, calltest.Owner(), reads, args{"project": "~p9"}, fault.UnknownProjectRef)
	unknown := func(p call.Principal, project string) {
		t.Helper()
		if got := refusal(e, p, reads, args{"project": project}, fault.UnknownProjectRef); got != want {
			t.Errorf("%s: %s", project, got)
		}
	}
	for _, ref := range []string{"~s1", "~p", "~p0", "~p01", "~P1", "~p1234567890", "~p1 "} {
		unknown(calltest.Owner(), ref)
	}
	unknown(colleague(), "~p1")
	e.Refused(calltest.Owner(), reads, args{"project": alpha, "session_id": "~p1"}, fault.UnknownSessionRef)
	e.Fleet.Move(calltest.Alpha, strings.Repeat("s", 64))
	unknown(calltest.Owner(), "~p1")
	if moved := start(e, args{"project": alpha}); moved.ProjectRef != "~p3" {
		t.Errorf("the moved Project is %q", moved.ProjectRef)
	}
	unknown(calltest.Owner(), "~p1")
	e.Fleet.Move(calltest.Alpha, "")
	if back := start(e, args{"project": "~p1"}); back.ProjectRef != "~p1" || back.Project != alpha {
		t.Errorf("%+v", back)
	}
}
