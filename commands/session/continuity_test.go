package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/attention"
	"webcodex/commands/board"
	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// looked leaves n reads of a file each in a Session.
func looked(e *calltest.Env, id event.SessionID, n int) {
	e.T.Helper()
	for i := range n {
		c := event.NewCallID()
		e.Append(id, event.ToolCallStarted{Call: c, Role: event.RoleBusiness, Tool: "read_files"},
			event.ToolCallFinished{Call: c, Role: event.RoleBusiness, Tool: "read_files", Status: event.StatusSucceeded, Observed: []string{fmt.Sprintf("f%d.go", i)}})
	}
}

// A start shows as many paths of the attempt before as its detail says, the closeout and the
// diagnostic handoff more; each says how many there are.
//
// Covers: CON-16
func TestADetailSaysHowManyPathsAStartShows(t *testing.T) {
	for detail, want := range map[string]int{"": 12, session.DetailStandard: 12, session.DetailMinimal: 3} {
		e := calltest.New(t, nil)
		id := begun(e)
		looked(e, id, 120)
		a := args{"session_id": string(id), "instruction": "go on"}
		if detail != "" {
			a["detail"] = detail
		}
		full := calltest.Must[view.Finish](e, &session.FinishTask, args{"session_id": id, "project": alpha}).Feedback
		diagnostic := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id, "diagnostic": true, "limit": 1}).Feedback
		for of, tc := range map[string]struct {
			f    *view.Feedback
			want int
		}{"start": {feedbackOf(start(e, a)), want}, "closeout": {full, 100}, "handoff": {diagnostic, 100}} {
			p := tc.f.Attempt.Exploration.Paths
			if p.Total != 120 || p.Returned != tc.want || len(p.Items) != tc.want || !p.Truncated || p.Items[0] != "f119.go" {
				t.Errorf("detail %q, %s: %d of %d, %v", detail, of, p.Returned, p.Total, p.Items)
			}
		}
	}
	e := calltest.New(t, nil)
	id := begun(e)
	looked(e, id, 2)
	if p := start(e, args{"session_id": string(id), "detail": session.DetailMinimal}).Feedback.Attempt.Exploration.Paths; p.Total != 2 || p.Returned != 2 || p.Truncated {
		t.Errorf("%+v", p)
	}
	e.Refused(calltest.Owner(), &session.WorkOnProject, args{"project": alpha, "instruction": "x", "detail": "full"}, fault.InvalidArguments)
}

func feedbackOf(w session.WorkOut) *view.Feedback { return &w.Feedback }

// members calls fn with the path and the name of each member of a JSON value.
func members(t *testing.T, raw json.RawMessage, fn func(path, name string)) {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for k, m := range v {
				fn(path, k)
				walk(m, path+"."+k)
			}
		case []any:
			for _, m := range v {
				walk(m, path+"[]")
			}
		}
	}
	walk(v, "")
}

// windowed is a call of a window, which may have a recorder.
func windowed(e *calltest.Env, w event.WindowID, spec *call.Spec, a args, env call.Envelope) json.RawMessage {
	e.T.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		e.T.Fatal(err)
	}
	resp, err := e.Kernel.Call(context.Background(), call.Request{Spec: spec, Args: raw, Principal: calltest.Owner(), Transport: "mcp", Window: w, Envelope: env})
	if err != nil {
		e.T.Fatal(err)
	}
	return resp.Output
}

// A brief comes from the two tools that are asked for it and from nothing else: not from a start,
// not from a resume, not beside an answer of whatever window. It is no baseline either: what it
// showed is shown and observed afterwards as if nobody had read it.
//
// Covers: HND-01, HND-06, HND-11, ACK-27, HND-41
func TestNoHandoffComesByItselfAndNoneIsARead(t *testing.T) {
	e := calltest.New(t, nil)
	e.Ambient = []call.Ambient{attention.New(nil)}
	e.Reopen()
	id := begun(e)
	window := event.WindowID(strings.Repeat("7", 64))
	for _, kind := range []string{"guidance", "question", "todo", "risk"} {
		calltest.Must[board.PostOut](e, &board.PostMessage, args{"session_id": id, "kind": kind, "message": "about " + kind, "requires_ack": true})
	}
	on := args{"session_id": id}
	record := call.Envelope{Record: string(id), Field: "record"}
	for _, w := range []event.WindowID{"", window} {
		for name, raw := range map[string]json.RawMessage{
			"start":      windowed(e, w, &session.WorkOnProject, args{"project": alpha, "instruction": "x"}, call.Envelope{}),
			"resume":     windowed(e, w, &session.WorkOnProject, args{"session_id": id, "instruction": "x"}, record),
			"list":       windowed(e, w, &session.ListSessions, args{"project": alpha}, record),
			"summary":    windowed(e, w, &session.ReadSummary, on, record),
			"validation": windowed(e, w, &session.ReadValidation, args{"session_id": id, "project": alpha}, record),
			"messages":   windowed(e, w, &board.ListMessages, on, record),
			"discussion": windowed(e, w, &board.ReadDiscussion, on, record),
		} {
			members(t, raw, func(path, name2 string) {
				if strings.Contains(name2, "handoff") || name2 == "basis" {
					t.Errorf("%s has %s.%s", name, path, name2)
				}
			})
		}
	}
	attends := func() string {
		var out struct {
			A json.RawMessage `json:"session_attention"`
		}
		if err := json.Unmarshal(windowed(e, window, &session.ListSessions, args{"project": alpha}, record), &out); err != nil || len(out.A) < 100 {
			t.Fatalf("%s %v", out.A, err)
		}
		return string(out.A)
	}
	token := calltest.Must[board.ObserveOut](e, &board.ObserveMessages, on).Token
	boardOf := func() view.Board {
		v, err := e.Store.Load(id)
		if err != nil {
			t.Fatal(err)
		}
		return v.Board
	}
	before, stored := attends(), boardOf()
	baseline := regexp.MustCompile(`^ack|token|fence|cursor|baseline|unread|delivered`)
	for _, env := range []call.Envelope{{}, record} {
		for _, diagnostic := range []bool{false, true} {
			raw := windowed(e, window, &session.ReadHandoff, args{"session_id": id, "diagnostic": diagnostic}, env)
			members(t, raw, func(path, name string) {
				if !strings.HasPrefix(path, ".session_attention") && baseline.MatchString(name) {
					t.Errorf("a handoff hands out %s.%s", path, name)
				}
			})
		}
	}
	for _, ev := range e.Events(id) {
		switch ev.(type) {
		case event.MessagesAcknowledged, event.MessageResolved, event.MessageCompleted:
			t.Errorf("a read left %T", ev)
		}
	}
	if after := attends(); after != before {
		t.Errorf("attention before and after:\n%s\n%s", before, after)
	}
	after := calltest.Must[board.ObserveOut](e, &board.ObserveMessages, args{"session_id": id, "after_observation_token": token})
	if after.Changed || len(after.Messages) > 0 || boardOf().Revision != stored.Revision {
		t.Errorf("reading changed the board: %+v", after)
	}
}

// The brief tells where the work stands. It does not repeat what was said or done, beyond what is
// decided, reached or left to do, and it does not say that the work is done, however the closeout
// judges.
//
// Covers: HND-09, HND-17, HND-39
func TestABriefIsNoReplayAndNoVerdict(t *testing.T) {
	e := calltest.New(t, nil)
	id := begun(e)
	looked(e, id, 30)
	for _, kind := range []string{"answer", "note", "proposal"} {
		calltest.Must[board.PostOut](e, &board.PostMessage, args{"session_id": id, "kind": kind, "message": "SAID-" + kind})
	}
	judges := regexp.MustCompile(`^(verdict|done|finished|completed|passed|success|outcome|blockers|hard_blockers|advisories|approved|ready)$`)
	replays := regexp.MustCompile(`^(events|ledger|messages|transcript|conversation|history|calls|arguments_json|stdout|stderr|input|output|reasoning)$`)
	claims := regexp.MustCompile(`generation|revision|snapshot|atomic|fence|^etag$`)
	for _, closed := range []bool{false, true} {
		if closed {
			calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
		}
		raw := mustOutput(e, &session.ReadHandoff, args{"session_id": id})
		members(t, raw, func(path, name string) {
			if judges.MatchString(name) || replays.MatchString(name) || claims.MatchString(name) {
				t.Errorf("the brief has %s.%s", path, name)
			}
		})
		if strings.Contains(string(raw), "SAID-") {
			t.Errorf("the brief repeats what was said: %s", raw)
		}
		b := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id}).Brief
		if !b.Deterministic || b.LLMSummary || b.Progress.Recent.Returned != view.MaxBriefRecent || b.Progress.Recent.Total != 30 || !b.Progress.Recent.Truncated {
			t.Errorf("%+v", b.Progress.Recent)
		}
	}
}

// What the Runner says of the working tree is a look of its own: one that changes while the brief
// is made moves no fence of the Session, and the brief claims nothing about the two together.
//
// Covers: HND-39
func TestTheFenceSaysNothingOfTheWorkingTree(t *testing.T) {
	e := calltest.New(t, nil)
	id := begun(e)
	changed := 0
	e.Fleet.OnAsk = func(op wire.Op, _ json.RawMessage) (any, error) {
		changed++
		return wire.ObserveWorkspaceOut{Status: "dirty", Branch: "main", ChangedFiles: changed}, nil
	}
	one := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id}).Brief
	two := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id}).Brief
	if *one.Workspace.ChangedFiles == *two.Workspace.ChangedFiles || len(raced(one)) > 0 || len(raced(two)) > 0 {
		t.Errorf("%+v %v, %+v %v", one.Workspace, one.Basis, two.Workspace, two.Basis)
	}
}

// A Closed Session that is retained can be handed on: its state is closed, whatever else is open.
//
// Covers: HND-45
func TestAClosedSessionIsHandedOn(t *testing.T) {
	e := calltest.New(t, nil)
	id := begun(e)
	looked(e, id, 3)
	calltest.Must[board.PostOut](e, &board.PostMessage, args{"session_id": id, "kind": "risk", "message": "open"})
	open := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id}).Brief
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": id})
	for range 2 { // and after a restart
		b := calltest.Must[view.Handoff](e, &session.ReadHandoff, args{"session_id": id}).Brief
		if open.Progress.State != view.StateBlocked || b.Progress.State != view.StateClosed || b.Session.Lifecycle != view.Closed ||
			!slices.Equal(b.Progress.Recent.Items, open.Progress.Recent.Items) || b.Task.Root.Text != open.Task.Root.Text {
			t.Errorf("%+v, then %+v", open.Progress, b.Progress)
		}
		if b.Continuation.Tool != "work_on_project" || b.Continuation.Arguments["session_id"] != nil {
			t.Errorf("it goes on with what takes no work: %+v", b.Continuation)
		}
		e.Reopen()
	}
}

// A new window starts a Session of its own and reads the old one's handoff by its name: nothing of
// the one gets into the other. To go on with the old one is an exact resume, under the same rules
// as ever.
//
// Covers: HND-44
func TestANewWindowReadsTheOldOrResumesItExactly(t *testing.T) {
	e := calltest.New(t, nil)
	one, two := event.WindowID(strings.Repeat("1", 64)), event.WindowID(strings.Repeat("2", 64))
	work := func(w event.WindowID, a args) (out session.WorkOut) {
		if err := json.Unmarshal(windowed(e, w, &session.WorkOnProject, a, call.Envelope{}), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	old := work(one, args{"project": alpha, "instruction": "the old task"})
	looked(e, old.SessionID, 2)
	fresh := work(two, args{"project": alpha, "instruction": "a new task"})
	if fresh.SessionID == old.SessionID || fresh.Continuation != session.Created {
		t.Fatalf("%+v", fresh)
	}
	events, mine := len(e.Events(old.SessionID)), len(e.Events(fresh.SessionID))
	var h view.Handoff
	if err := json.Unmarshal(windowed(e, two, &session.ReadHandoff, args{"session_id": old.SessionID}, call.Envelope{}), &h); err != nil {
		t.Fatal(err)
	}
	if h.SessionID != old.SessionID || h.Brief.Task.Latest.Text != "the old task" || h.Brief.Progress.Recent.Total != 2 ||
		len(e.Events(old.SessionID)) != events || len(e.Events(fresh.SessionID)) != mine {
		t.Errorf("%+v", h.Brief.Task)
	}
	if h.Brief.Continuation.Tool != "work_on_project" || h.Brief.Continuation.Arguments["session_id"] != string(old.SessionID) {
		t.Errorf("%+v", h.Brief.Continuation)
	}
	resumed := work(two, args{"session_id": string(old.SessionID), "project": alpha, "instruction": "on with it"})
	if resumed.SessionID != old.SessionID || resumed.Continuation != session.Resumed {
		t.Errorf("%+v", resumed)
	}
	guarded := work(one, args{"project": alpha, "instruction": "look only", "session_mode": "read_only"})
	if again := work(two, args{"session_id": string(guarded.SessionID), "instruction": "still"}); !again.Session.Guards.DenyWrite {
		t.Errorf("a resume lifted the guard: %+v", again.Session)
	}
	closed := work(one, args{"project": alpha, "instruction": "done"})
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": closed.SessionID})
	on := func(id event.SessionID, extra args) args {
		a := args{"session_id": string(id), "instruction": "x"}
		for k, v := range extra {
			a[k] = v
		}
		return a
	}
	e.Refused(calltest.Someone("b"), &session.WorkOnProject, on(old.SessionID, nil), fault.SessionAuthorityDenied)
	e.Refused(calltest.Owner(), &session.WorkOnProject, on(closed.SessionID, nil), fault.SessionClosed)
	e.Refused(calltest.Owner(), &session.WorkOnProject, on(old.SessionID, args{"project": beta}), fault.SessionProjectMismatch)
	e.Refused(calltest.Owner(call.ScopeProjectWrite), &session.WorkOnProject, on(guarded.SessionID, args{"session_mode": "normal"}), fault.UpgradeDenied)
}
