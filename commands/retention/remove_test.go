package retention_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	tombs "webcodex/projections/retention"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

// bounded is a server that retains limit Closed Sessions.
func bounded(t *testing.T, limit int) *calltest.Env {
	t.Helper()
	e := calltest.New(t, nil)
	e.Limit = limit
	e.Reopen()
	return e
}

func begin(e *calltest.Env) session.WorkOut {
	e.T.Helper()
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, args{"project": alpha, "instruction": "do it"})
}

func end(e *calltest.Env, id event.SessionID) {
	e.T.Helper()
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
}

// finished starts and closes n Sessions, each at a time of its own.
func finished(e *calltest.Env, n int) (out []session.WorkOut) {
	e.T.Helper()
	for range n {
		s := begin(e)
		end(e, s.SessionID)
		out = append(out, s)
		waitTick()
	}
	return out
}

// listed are all Sessions of a lifecycle, newest update first.
func listed(e *calltest.Env, l view.Lifecycle) []view.Core {
	e.T.Helper()
	all, total, err := e.Store.Select(view.Filter{AnyAuthority: true, Lifecycle: l}, 0, 1000)
	if err != nil || total != len(all) {
		e.T.Fatal(total, err)
	}
	return all
}

// waitTick leaves the millisecond, so that two closes have two times.
func waitTick() {
	for at := time.Now().UnixMilli(); time.Now().UnixMilli() == at; {
		time.Sleep(100 * time.Microsecond)
	}
}

func colleague() call.Principal {
	p := calltest.Someone("b")
	p.Actor.Authority = calltest.Owner().Actor.Authority
	return p
}

func sessionIDs(list []tombs.Tombstone) (out []event.SessionID) {
	for _, t := range list {
		out = append(out, t.Session)
	}
	return out
}

func idsOf(list []session.WorkOut) (out []event.SessionID) {
	for _, s := range list {
		out = append(out, s.SessionID)
	}
	return out
}

// Closed history is bounded, the oldest leave, Active ones never; what is left of a removed
// Session is a tombstone, of which there are no more than that either.
//
// Covers: SES-33, SES-34, SES-36, SES-40
func TestClosedHistoryIsBounded(t *testing.T) {
	e := bounded(t, 3)
	active := []session.WorkOut{begin(e), begin(e), begin(e), begin(e), begin(e)}
	done := finished(e, 5)
	retained := func(want ...event.SessionID) {
		t.Helper()
		var got []event.SessionID
		for _, c := range listed(e, view.Closed) {
			got = append(got, c.ID)
		}
		slices.Reverse(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if n := e.Store.Totals(); n.Active != len(active) || n.Closed != len(want) || n.Sessions != n.Active+n.Closed {
			t.Errorf("%+v", n)
		}
	}
	retained(idsOf(done[2:])...)
	if d := cmp.Diff(idsOf(done[:2]), sessionIDs(e.Tombstones.All())); d != "" {
		t.Error(d)
	}
	done = append(done, finished(e, 8)...)
	retained(idsOf(done[10:])...)
	if d := cmp.Diff(idsOf(done[7:10]), sessionIDs(e.Tombstones.All())); d != "" {
		t.Error(d)
	}
	e.Reopen()
	retained(idsOf(done[10:])...)
	if d := cmp.Diff(idsOf(done[7:10]), sessionIDs(e.Tombstones.All())); d != "" {
		t.Error(d)
	}
	for _, s := range active {
		if c, ok := e.Store.Core(s.SessionID); !ok || c.Lifecycle != view.Active {
			t.Errorf("%s is %q", s.SessionID, c.Lifecycle)
		}
	}
	e.Limit = 1 // and a smaller bound from the next start on
	e.Reopen()
	retained(done[12].SessionID)
	if d := cmp.Diff(idsOf(done[11:12]), sessionIDs(e.Tombstones.All())); d != "" {
		t.Error(d)
	}
}

// However many Sessions come and go, with nothing kept in memory and nothing closed retained:
// every Active one is there, at the end and after a restart, with all its commits.
//
// Covers: SES-40, NEG-07
func TestActiveSessionsAreNeverRemoved(t *testing.T) {
	e := bounded(t, 0)
	e.Store.SetHotTarget(0)
	rounds := 6
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds = 600
	}
	var active []session.WorkOut
	for range rounds {
		active = append(active, begin(e))
		for range 3 {
			end(e, begin(e).SessionID)
		}
		calltest.Must[session.WorkOut](e, &session.WorkOnProject, args{"session_id": active[0].SessionRef, "instruction": "go on"})
	}
	for range 2 {
		for i, s := range active {
			core, ok := e.Store.Core(s.SessionID)
			if want := len(e.Commits(s.SessionID)); !ok || core.Lifecycle != view.Active || core.Version != uint64(want) {
				t.Errorf("Session %d is %q at version %d of %d", i, core.Lifecycle, core.Version, want)
			}
			if _, gone := e.Tombstones.Find(s.SessionID); gone {
				t.Errorf("Session %d has a tombstone", i)
			}
		}
		if n := e.Store.Totals(); n.Active != rounds || n.Closed != 0 {
			t.Errorf("%+v", n)
		}
		e.Reopen()
	}
}

// A limit of 0 keeps nothing closed: the close is answered and the Session is gone.
//
// Covers: SES-39
func TestNothingClosedIsRetained(t *testing.T) {
	e := bounded(t, 0)
	s := begin(e)
	out := calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": s.SessionID})
	if out.Lifecycle != view.Closed || out.AlreadyClosed {
		t.Errorf("%+v", out)
	}
	e.Refused(calltest.Owner(), &session.CloseSession, args{"session_id": s.SessionID}, fault.UnknownSessionID)
	e.Refused(calltest.Owner(), &session.CloseSession, args{"session_id": s.SessionRef}, fault.UnknownSessionRef)
}

func told(e *calltest.Env, p call.Principal, spec *call.Spec, selector any, kind fault.Kind) string {
	e.T.Helper()
	return refusalText(e.T, e.Refused(p, spec, args{"session_id": selector, "instruction": "go on"}, kind))
}

// refusalText is a refusal as it goes out.
func refusalText(t testing.TB, err error) string {
	t.Helper()
	b, merr := json.Marshal(fault.As(err))
	if merr != nil {
		t.Fatal(merr)
	}
	return string(b)
}

// The owning principal is told that its Session has expired, by id and by its own ref, with the
// canonical id; anybody else gets what an id that never was gets, byte by byte, and so does the
// owner once the tombstone has left.
//
// Covers: SES-12, SES-37, SES-38, SES-39, AUTH-15, RES-12
func TestWhoIsToldOfATombstone(t *testing.T) {
	e := bounded(t, 1)
	s := begin(e)
	// The colleague has a ref to it too.
	resp, err := e.CallAs(context.Background(), colleague(), &session.ReadHandoff, args{"session_id": s.SessionID})
	if err != nil {
		t.Fatal(err)
	}
	var theirs view.Handoff
	if err := json.Unmarshal(resp.Output, &theirs); err != nil || theirs.SessionRef != "~s1" {
		t.Fatal(theirs.SessionRef, err)
	}
	end(e, s.SessionID)
	finished(e, 1)
	specs := []*call.Spec{&session.ReadHandoff, &session.ReadSummary, &session.WorkOnProject, &session.CloseSession}
	for range 2 { // before and after a restart
		for _, spec := range specs {
			byID, byRef := told(e, calltest.Owner(), spec, s.SessionID, fault.SessionExpired), told(e, calltest.Owner(), spec, s.SessionRef, fault.SessionExpired)
			var f fault.Error
			if err := json.Unmarshal([]byte(byRef), &f); err != nil || f.Details["session_id"] != string(s.SessionID) || byID != byRef {
				t.Errorf("%s: by id %s, by ref %s", spec.Name, byID, byRef)
			}
			never := told(e, calltest.Owner(), spec, event.NewSessionID(), fault.UnknownSessionID)
			for _, p := range []call.Principal{colleague(), calltest.Someone("c")} {
				for _, id := range []any{s.SessionID, event.NewSessionID(), "wc_sess_x", "x"} {
					if got := told(e, p, spec, id, fault.UnknownSessionID); got != never {
						t.Errorf("%s of %v: %s\nwant %s", spec.Name, id, got, never)
					}
				}
			}
			told(e, colleague(), spec, theirs.SessionRef, fault.UnknownSessionRef)
		}
		e.Reopen()
	}
	finished(e, 1) // a second tombstone, where one is kept
	if n := len(e.Tombstones.All()); n != 1 {
		t.Fatalf("%d tombstones", n)
	}
	for _, spec := range specs {
		if a, b := told(e, calltest.Owner(), spec, s.SessionID, fault.UnknownSessionID), told(e, calltest.Owner(), spec, event.NewSessionID(), fault.UnknownSessionID); a != b {
			t.Errorf("%s: %s\nwant %s", spec.Name, a, b)
		}
		told(e, calltest.Owner(), spec, s.SessionRef, fault.UnknownSessionRef)
	}
}

// Removed Sessions stand in no row and no total, get no ref and have no filter; Closed ones
// are read and take no more work; looking changes no Session.
//
// Covers: LST-09, LST-10, LST-11
func TestTheListKnowsNoTombstones(t *testing.T) {
	e := bounded(t, 2)
	begin(e)
	done := finished(e, 4)
	page := calltest.Must[view.Page](e, &session.ListSessions, args{"project": alpha})
	if page.Total != 3 || page.Returned != 3 {
		t.Errorf("%+v", page)
	}
	before := map[event.SessionID]uint64{}
	for _, r := range page.Sessions {
		if slices.Contains(idsOf(done[:2]), r.SessionID) {
			t.Errorf("a removed Session is listed: %+v", r)
		}
		head, _ := e.Log.Head(event.SessionAggregate(r.SessionID))
		before[r.SessionID] = head.Version
	}
	for _, p := range []call.Principal{calltest.Owner(), colleague()} {
		if _, err := e.CallAs(context.Background(), p, &session.ListSessions, args{"project": alpha}); err != nil {
			t.Fatal(err)
		}
	}
	for id, v := range before {
		if head, _ := e.Log.Head(event.SessionAggregate(id)); head.Version != v {
			t.Errorf("listing wrote to %s", id)
		}
	}
	e.Refused(calltest.Owner(), &session.ListSessions, args{"project": alpha, "lifecycle": "expired"}, fault.InvalidArguments)
	if h := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": done[3].SessionRef}); h.SessionID != done[3].SessionID {
		t.Errorf("%+v", h)
	}
	e.Refused(calltest.Owner(), &session.WorkOnProject, args{"session_id": done[3].SessionID, "instruction": "x"}, fault.SessionClosed)
}

// A live Session counts, whatever tombstone carries its id.
//
// Covers: RES-06
func TestALiveSessionCounts(t *testing.T) {
	e := bounded(t, 3)
	s := begin(e)
	core, _ := e.Store.Core(s.SessionID)
	// Only the tombstones see this: as a row that a damaged history left there.
	stray := tombs.New()
	stray.Apply(1, "", event.Commit{Aggregate: event.RetentionAggregate(), Version: 1, Events: []event.Event{event.SessionRemoved{Session: s.SessionID,
		Authority: core.Authority, Principal: core.Principal, Incarnation: event.Incarnation(core.ID, core.Nonce), Ordinal: 1}}})
	k := call.NewKernel(call.Config{Log: e.Log, Sessions: e.Store, Refs: e.Refs, Tombstones: stray, Fleet: e.Fleet, Server: e.Server, Now: time.Now})
	for _, selector := range []string{string(s.SessionID), s.SessionRef} {
		if _, err := k.Call(context.Background(), call.Request{Spec: &session.ReadHandoff, Principal: calltest.Owner(),
			Args: json.RawMessage(`{"session_id":"` + selector + `"}`)}); err != nil {
			t.Errorf("%s: %v", selector, err)
		}
	}
}

// A Closed Session with an open Job waits for its end, which is recorded; it leaves after that,
// and what comes later still changes and resurrects nothing.
//
// Covers: SES-34, SES-40
func TestALateEndIsAwaitedAndNothingIsResurrected(t *testing.T) {
	e := bounded(t, 1)
	var late func(context.Context, wire.Result) error
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		late = x.Late
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	run := &call.Spec{Name: "some_run", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Execute,
		Run: func(ctx context.Context, c *call.Call) (call.Result, error) {
			out, err := c.Effect(ctx, wire.OpProcess, wire.ProcessIn{Executable: "true"}, call.EffectOptions{Timeout: time.Minute, Grace: time.Second})
			return call.Result{Facts: call.Facts{Promoted: out.Promoted}}, err
		}}
	s := begin(e)
	if _, err := e.Call(run, args{"project": alpha, "session_id": s.SessionID}); err != nil {
		t.Fatal(err)
	}
	end(e, s.SessionID)
	waitTick()
	done := finished(e, 2)
	if _, ok := e.Store.Core(s.SessionID); !ok {
		t.Fatal("a Session with an open Job was removed")
	}
	if d := cmp.Diff(idsOf(done[:2]), sessionIDs(e.Tombstones.All())); d == "" {
		t.Log("both others left in its place")
	}
	r := wire.Result{ID: e.Fleet.Starts()[0], State: wire.JTerminal, Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: new(int)}}
	if err := late(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	finished(e, 2)
	if _, ok := e.Store.Core(s.SessionID); ok {
		t.Fatal("the Session stays although its Job has ended")
	}
	before := e.Seq()
	if err := late(context.Background(), r); err != nil { // the Runner repeats itself
		t.Errorf("a late end of a removed Session: %v", err)
	}
	if e.Seq() != before {
		t.Error("a late end was written to a removed Session")
	}
	// Even a commit that gets through changes nothing.
	e.Append(s.SessionID, event.ExecutionReconciled{Execution: r.ID}, event.InstructionAccepted{Text: "x", Continuation: "resumed", Mode: event.ModeNormal})
	for range 2 {
		if _, ok := e.Store.Core(s.SessionID); ok {
			t.Error("a removed Session is back")
		}
		if n := e.Store.Totals(); n.Active != 0 || n.Closed != 1 {
			t.Errorf("%+v", n)
		}
		e.Reopen()
	}
}

// Resumes, closes and reads of Sessions that are about to be removed, all at once: each has one
// outcome of a serial order, and nothing that was removed has a newer commit than its removal.
//
// Covers: SES-33, SES-37
func TestRemovalAgainstEverybodyElse(t *testing.T) {
	e := bounded(t, 2)
	var sessions []session.WorkOut
	for range 8 {
		sessions = append(sessions, begin(e))
	}
	var wg sync.WaitGroup
	errs := make(chan error, 1024)
	for _, s := range sessions {
		for i := range 3 {
			wg.Go(func() {
				selector := any(s.SessionID)
				if i%2 == 0 {
					selector = s.SessionRef
				}
				for n := range 4 {
					spec, a := &session.WorkOnProject, args{"session_id": selector, "instruction": fmt.Sprint(i, n)}
					if i == 2 && n == 2 {
						spec, a = &session.CloseSession, args{"session_id": selector}
					}
					resp, err := e.Call(spec, a)
					switch fault.KindOf(err) {
					case "":
						var out struct {
							SessionID event.SessionID `json:"session_id"`
						}
						if err := json.Unmarshal(resp.Output, &out); err != nil || out.SessionID != s.SessionID {
							errs <- fmt.Errorf("%v came to %s (%v)", selector, out.SessionID, err)
						}
					case fault.SessionClosed, fault.SessionExpired, fault.UnknownSessionID, fault.UnknownSessionRef:
					default:
						errs <- err
					}
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if n := e.Store.Totals(); n.Active != 0 || n.Closed != 2 {
		t.Errorf("%+v", n)
	}
	for _, s := range sessions {
		commits := e.Commits(s.SessionID)
		for i, c := range commits {
			if c.Version != uint64(i)+1 {
				t.Errorf("%s has version %d in place %d", s.SessionID, c.Version, i)
			}
		}
		if _, closed := commits[len(commits)-1].Events[0].(event.SessionClosed); !closed {
			t.Errorf("%s ends with %+v", s.SessionID, commits[len(commits)-1].Events)
		}
	}
	before := listed(e, "")
	e.Reopen()
	if d := cmp.Diff(before, listed(e, "")); d != "" {
		t.Errorf("another fold: %s", d)
	}
}
