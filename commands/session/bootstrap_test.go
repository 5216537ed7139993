package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// project scripts what the Runner sees of instruction files: content by name, "" for none.
func instruct(e *calltest.Env, files map[string]string) {
	scripted := e.Fleet.OnAsk
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		out, err := scripted(op, body)
		w, ok := out.(wire.ObserveWorkspaceOut)
		if !ok || err != nil {
			return out, err
		}
		w.Instructions = &wire.InstructionSources{}
		for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
			s := wire.InstructionSource{Path: name, Status: wire.SourceNotFound}
			if digit := files[name]; digit != "" {
				s = wire.InstructionSource{Path: name, Status: wire.SourceLoaded, SHA256: strings.Repeat(digit, 64), Bytes: 12}
			}
			w.Instructions.Sources = append(w.Instructions.Sources, s)
		}
		return w, nil
	}
}

func observations(e *calltest.Env, id event.SessionID) (out []event.InstructionsObserved) {
	for _, ev := range e.Events(id) {
		if o, ok := ev.(event.InstructionsObserved); ok {
			out = append(out, o)
		}
	}
	return out
}

// At every start and resume the files are looked at anew; what the Session saw last survives
// restarts, and an equal look writes nothing.
//
// Covers: STA-14, STA-15, STA-16, SES-31
func TestInstructionFilesAreObservedAtEveryResume(t *testing.T) {
	for name, hot := range map[string]int{"hot": 100, "cold": 0} {
		t.Run(name, func(t *testing.T) { observedAtEveryResume(t, hot) })
	}
}

func observedAtEveryResume(t *testing.T, hot int) {
	e := calltest.New(t, nil)
	e.Store.SetHotTarget(hot)
	instruct(e, map[string]string{"AGENTS.md": "1"})
	s := start(e, args{"project": alpha})
	if s.Instructions.Status != session.FilesLoaded || s.Instructions.Sources[0].Status != session.FilesLoaded ||
		s.Instructions.Sources[0].SHA256 != strings.Repeat("1", 64) || s.Instructions.Sources[1].Status != session.FilesNotFound {
		t.Errorf("%+v", s.Instructions)
	}
	resume := func(want string) session.WorkOut {
		t.Helper()
		asks := len(e.Fleet.Asks())
		out := start(e, args{"session_id": string(s.SessionID), "instruction": "go on"})
		if out.Instructions.Status != want {
			t.Errorf("%+v, want %s", out.Instructions, want)
		}
		if len(e.Fleet.Asks()) != asks+1 {
			t.Error("the files were not looked at")
		}
		return out
	}
	resume(session.FilesReused)
	if n := len(observations(e, s.SessionID)); n != 1 {
		t.Errorf("%d observations stand", n)
	}
	e.Reopen() // another life and another window: neither is evidence that a model still knows
	e.Store.SetHotTarget(hot)
	instruct(e, map[string]string{"AGENTS.md": "1"})
	resume(session.FilesReused)
	instruct(e, map[string]string{"AGENTS.md": "2"})
	resume(session.FilesChanged)
	resume(session.FilesReused)
	instruct(e, nil)
	if out := resume(session.FilesNotFound); out.Instructions.Sources[0].SHA256 != "" {
		t.Errorf("%+v", out.Instructions)
	}
	instruct(e, map[string]string{"AGENTS.md": "2"})
	resume(session.FilesLoaded)
	if n := len(observations(e, s.SessionID)); n != 4 {
		t.Errorf("%d observations stand", n)
	}
	// Another Session of the same caller and window has seen nothing yet.
	if out := start(e, args{"project": alpha}); out.Instructions.Status != session.FilesLoaded {
		t.Errorf("%+v", out.Instructions)
	}
	e.Fleet.Disconnect(calltest.Alpha)
	e.Refused(calltest.Owner(), &session.WorkOnProject, args{"session_id": string(s.SessionID), "instruction": "x"}, fault.RunnerUnavailable)
}

// An observation is no tail event and no cursor; it stands in the commit of its instruction.
//
// Covers: STA-10, EVT-18
func TestAStartWithInstructionFilesIsOneCommit(t *testing.T) {
	e := calltest.New(t, nil)
	instruct(e, map[string]string{"AGENTS.md": "1", "CLAUDE.md": "2"})
	s := start(e, args{"project": alpha, "execution_context": args{"default_cwd": "pkg"}})
	commits := e.Commits(s.SessionID)
	if len(commits) != 1 || len(commits[0].Events) != 4 { // created, instruction, files, ref
		t.Fatalf("%+v", commits)
	}
	instruct(e, map[string]string{"AGENTS.md": "3"})
	start(e, args{"session_id": string(s.SessionID), "instruction": "next", "session_mode": "read_only", "execution_context": args{}})
	if commits = e.Commits(s.SessionID); len(commits) != 2 || len(commits[1].Events) != 3 {
		t.Fatalf("%+v", commits)
	}
	sum := calltest.Must[view.Summary](e, &session.ReadSummary, args{"session_id": s.SessionID})
	if sum.EventsObserved != 3 || len(sum.Events) != 3 { // two instructions, one change of defaults
		t.Errorf("%d events, %d observed", len(sum.Events), sum.EventsObserved)
	}
}

// What is refused is refused before the Runner is asked for anything, and writes nothing.
//
// Covers: STA-10, AUTH-13, SES-51
func TestARefusedStartAsksNothing(t *testing.T) {
	e := calltest.New(t, nil)
	s := start(e, args{"project": alpha, "session_mode": "read_only"})
	closed := start(e, args{"project": alpha})
	calltest.Must[session.CloseOut](e, &session.CloseSession, args{"session_id": closed.SessionID})
	asks := len(e.Fleet.Asks())
	for _, tc := range []struct {
		a    args
		kind fault.Kind
	}{
		{args{"session_id": string(s.SessionID), "instruction": "widen", "session_mode": "normal"}, fault.UpgradeDenied},
		{args{"session_id": string(s.SessionID), "instruction": "x", "execution_context": args{"default_shell": "fish"}}, fault.InvalidContext},
		{args{"session_id": string(closed.SessionID), "instruction": "x"}, fault.SessionClosed},
		{args{"session_id": string(event.NewSessionID()), "instruction": "x"}, fault.UnknownSessionID},
	} {
		f := e.Refused(calltest.Owner(call.ScopeProjectWrite), &session.WorkOnProject, tc.a, tc.kind)
		if f.StateChanged {
			t.Errorf("%v: state_changed", tc.a)
		}
	}
	if n := len(e.Fleet.Asks()) - asks; n != 0 {
		t.Errorf("the Runner was asked %d times", n)
	}
	before, _ := e.Store.Core(s.SessionID)
	out := start(e, args{"session_id": string(s.SessionID), "instruction": "widen", "session_mode": "normal"})
	after, _ := e.Store.Core(s.SessionID)
	if out.Session.Mode != event.ModeNormal || out.Session.Guards.DenyWrite || after.ID != before.ID || after.Nonce != before.Nonce ||
		after.Authority != before.Authority || after.Principal != before.Principal || after.Project != before.Project {
		t.Errorf("with the scope: %+v", out.Session)
	}
}

// Semantic navigation is asked for beside the rest and never waited for.
//
// Covers: STA-12
func TestNavigationIsNeverWaitedFor(t *testing.T) {
	e := calltest.New(t, nil)
	e.Fleet.Capabilities = []string{string(wire.OpObserveNavigation)}
	asked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	scripted := e.Fleet.OnAsk
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		switch op {
		case wire.OpObserveNavigation:
			close(asked)
			<-release // a language server that hangs
			return wire.ObserveNavigationOut{Available: true}, nil
		case wire.OpObserveWorkspace:
			<-asked // both are under way at the same time
		}
		return scripted(op, body)
	}
	out := start(e, args{"project": alpha})
	if out.Navigation.Status != session.NavigationNotObserved || out.Navigation.Available != nil || out.Workspace.Status != "clean" {
		t.Errorf("%+v %+v", out.Navigation, out.Workspace)
	}
	raw, err := json.Marshal(out)
	if err != nil || !strings.Contains(string(raw), `"semantic_navigation":{"status":"not_observed","available":null}`) {
		t.Errorf("%s", raw)
	}
}

// What navigation said in time is shown; a Runner without language servers is not asked.
//
// Covers: STA-12
func TestNavigationThatAnsweredInTime(t *testing.T) {
	for _, available := range []bool{true, false} {
		e := calltest.New(t, nil)
		e.Fleet.Capabilities = []string{string(wire.OpObserveNavigation)}
		answered := make(chan struct{})
		scripted := e.Fleet.OnAsk
		e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
			if op == wire.OpObserveNavigation {
				defer close(answered)
				return wire.ObserveNavigationOut{Available: available}, nil
			}
			<-answered
			return scripted(op, body)
		}
		// The answer is on its way when the rest is there: either is the truth, nothing else is.
		out := start(e, args{"project": alpha})
		switch n := out.Navigation; {
		case n.Status == session.NavigationNotObserved && n.Available == nil:
		case n.Available != nil && *n.Available == available && (n.Status == session.NavigationAvailable) == available:
		default:
			t.Errorf("%+v", n)
		}
	}
	e := calltest.New(t, nil)
	start(e, args{"project": alpha})
	if asks := e.Fleet.Asks(); len(asks) != 1 || asks[0] != wire.OpObserveWorkspace {
		t.Errorf("asked %q", asks)
	}
}

// The answer stays within its bound whatever the Project, the Session and the Runner are like.
//
// Covers: STA-14, STA-22
func TestAStartIsBounded(t *testing.T) {
	e := calltest.New(t, nil)
	long := strings.Repeat("\u2028<\"漢👩‍👩‍👧‍👦", 400)
	e.Fleet.OnAsk = func(wire.Op, json.RawMessage) (any, error) {
		w := wire.ObserveWorkspaceOut{Status: "blocked", Branch: long, Head: long, Reason: long, ConflictCount: 5000, ChangedFiles: 1 << 30,
			Instructions: &wire.InstructionSources{}}
		for range 5000 {
			w.Conflicts = append(w.Conflicts, long[:200])
		}
		for i := range 100 {
			w.Instructions.Sources = append(w.Instructions.Sources, wire.InstructionSource{Path: strings.Repeat("<", 119) + string(rune('a'+i%26)),
				Status: long, SHA256: long, Bytes: 1 << 60})
		}
		return w, nil
	}
	cwd := strings.Repeat("<&>", 160)
	s := start(e, args{"project": alpha, "instruction": long[:2000], "execution_context": args{"default_cwd": cwd}})
	for i := range 300 {
		paths := []string{strings.Repeat("<", 400) + string(rune('a'+i%26)), strings.Repeat("漢", 150)}
		c := event.CallID("wc_call_" + strings.Repeat("0", 29) + string(rune('a'+i%6)) + "00")
		e.Append(s.SessionID, event.ToolCallStarted{Call: c, Role: event.RoleBusiness, Tool: "edit_project_files"},
			event.ToolCallFinished{Call: c, Role: event.RoleBusiness, Tool: "edit_project_files", Status: event.StatusFailed, Changed: paths,
				Observed: paths, ErrorSummary: long[:200], Expectation: "none",
				Validation: &event.Validation{Kind: "go_test", TargetID: long[:120], Scope: long[:120], TestsRun: 3, TestsFailed: 2, Passed: new(bool)}})
	}
	resp, err := e.Call(&session.WorkOnProject, args{"session_id": s.SessionID, "instruction": long[:2000]})
	if err != nil {
		t.Fatal(err)
	}
	escaped, err := json.Marshal(resp.Output)
	if err != nil || len(escaped) > session.MaxStartBytes {
		t.Errorf("%d bytes, %v", len(escaped), err)
	}
	var out session.WorkOut
	if err := json.Unmarshal(resp.Output, &out); err != nil {
		t.Fatal(err)
	}
	if out.Workspace.ConflictCount != 5000 || len(out.Workspace.Conflicts) == 0 || out.Feedback.Attempt == nil ||
		out.Feedback.Attempt.Changes.Total == 0 || len(out.Next) == 0 {
		t.Errorf("%+v", out)
	}
	t.Logf("%d bytes", len(escaped))
}
