package git_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/git"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

var reads = []*call.Spec{&git.Status, &git.Diff, &git.DiffHunks, &git.Log, &git.WorkspaceChanges}

func work(e *calltest.Env, extra args) event.SessionID {
	a := args{"project": alpha, "instruction": "do it"}
	for k, v := range extra {
		a[k] = v
	}
	return calltest.Must[session.WorkOut](e, &session.WorkOnProject, a).SessionID
}

func finishes(e *calltest.Env, id event.SessionID) (out []event.ToolCallFinished) {
	for _, ev := range e.Events(id) {
		if f, ok := ev.(event.ToolCallFinished); ok {
			out = append(out, f)
		}
	}
	return out
}

// Reads ask once, change nothing, and leave no paths as exploration.
//
// Covers: CON-12
func TestReads(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, args{"session_mode": "read_only"})
	var bodies []string
	e.Fleet.OnAsk = func(_ wire.Op, body json.RawMessage) (any, error) {
		bodies = append(bodies, string(body))
		return struct{}{}, nil
	}
	for _, spec := range reads {
		if resp, err := e.Call(spec, args{"project": alpha, "session_id": id, "paths": []string{"a"}, "limit": 10_000, "max_hunks": -1, "max_hunk_lines": 9999}); err != nil || !resp.Success {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
	want := []string{`{"limit":1000}`, `{"paths":["a"]}`, `{"paths":["a"],"max_hunks":30,"max_hunk_lines":400}`, `{"limit":100}`, `{"max_hunks":20,"max_hunk_lines":240}`}
	if !slices.Equal(bodies, want) {
		t.Errorf("asked %q, want %q", bodies, want)
	}
	if n := len(e.Fleet.Starts()); n != 0 {
		t.Errorf("%d effects", n)
	}
	done := finishes(e, id)
	if len(done) != len(reads) {
		t.Fatalf("%d pairs", len(done))
	}
	for _, f := range done {
		if f.Status != event.StatusSucceeded || f.Effect.StateChanged || len(f.Observed)+len(f.Changed) != 0 {
			t.Errorf("%+v", f)
		}
	}
	// A closed Session answers reads and keeps no pair.
	if _, err := e.Call(&session.CloseSession, args{"session_id": id}); err != nil {
		t.Fatal(err)
	}
	before := len(e.Commits(id))
	for _, spec := range reads {
		if _, err := e.Call(spec, args{"project": alpha, "session_id": id}); err != nil {
			t.Errorf("%s on a closed Session: %v", spec.Name, err)
		}
	}
	if len(e.Commits(id)) != before {
		t.Error("reads on a closed Session were recorded")
	}
}

func restoring(e *calltest.Env, out wire.RestorePathsOut, f *fault.Error) {
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		body, _ := json.Marshal(out)
		return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Body: body, Fault: f}}, nil
	}
}

// Covers: EVT-21
func TestRestore(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	restoring(e, wire.RestorePathsOut{Restored: []string{"a"}, Unchanged: []string{"b"}}, nil)
	out := calltest.Must[git.RestoreOut](e, &git.Restore, args{"project": alpha, "session_id": id, "paths": []string{"a", "b"}})
	if !out.StateChanged || !slices.Equal(out.Restored, []string{"a"}) || !slices.Equal(out.Unchanged, []string{"b"}) {
		t.Errorf("%+v", out)
	}
	restoring(e, wire.RestorePathsOut{Restored: []string{}, Unchanged: []string{"b"}}, nil)
	if out := calltest.Must[git.RestoreOut](e, &git.Restore, args{"project": alpha, "session_id": id, "paths": []string{"b"}}); out.StateChanged {
		t.Errorf("%+v", out)
	}
	restoring(e, wire.RestorePathsOut{}, fault.New(fault.InvalidPath, "not a tracked file").WithField("paths").WithReason("not_tracked"))
	_, err := e.Call(&git.Restore, args{"project": alpha, "session_id": id, "paths": []string{"c"}})
	if f := fault.As(err); f == nil || f.Kind != fault.InvalidPath || f.Reason != "not_tracked" || f.StateChanged {
		t.Errorf("%v", err)
	}
	half := fault.New(fault.GitFailed, "git could not do this")
	half.StateChanged = true
	restoring(e, wire.RestorePathsOut{}, half)
	if _, err := e.Call(&git.Restore, args{"project": alpha, "session_id": id, "paths": []string{"d"}}); !fault.As(err).StateChanged {
		t.Errorf("%v", err)
	}
	done := finishes(e, id)
	if len(done) != 4 {
		t.Fatalf("%d pairs", len(done))
	}
	for i, want := range []struct {
		status, kind string
		changed      []string
		state        bool
	}{{"succeeded", "", []string{"a"}, true}, {"succeeded", "", nil, false}, {"failed", "invalid_path", nil, false}, {"failed", "git_failed", nil, true}} {
		f := done[i]
		if f.Status != want.status || f.ErrorKind != want.kind || !slices.Equal(f.Changed, want.changed) || f.Effect.StateChanged != want.state || f.Execution == "" {
			t.Errorf("%d: %+v, want %+v", i, f, want)
		}
	}
}

// Restoring is a write: a read-only Session denies it, a closed one and a missing scope refuse it.
func TestRestoreIsGuarded(t *testing.T) {
	e := calltest.New(t, nil)
	paths := []string{"a"}
	e.Refused(calltest.Owner(call.ScopeProjectWrite), &git.Restore, args{"project": alpha, "paths": paths}, fault.InsufficientScope)
	for _, spec := range reads {
		e.Refused(calltest.Owner(call.ScopeProjectRead), spec, args{"project": alpha}, fault.InsufficientScope)
	}
	guarded := work(e, args{"session_mode": "read_only"})
	_, err := e.Call(&git.Restore, args{"project": alpha, "session_id": guarded, "paths": paths})
	if f := fault.As(err); f == nil || f.Kind != fault.SessionGuardDenied || f.ExecutionState != string(event.NotStarted) {
		t.Errorf("%v", err)
	}
	if done := finishes(e, guarded); len(done) != 1 || done[0].Status != event.StatusFailed || done[0].Effect.State != event.NotStarted {
		t.Errorf("%+v", done)
	}
	closed := work(e, nil)
	if _, err := e.Call(&session.CloseSession, args{"session_id": closed}); err != nil {
		t.Fatal(err)
	}
	e.Refused(calltest.Owner(), &git.Restore, args{"project": alpha, "session_id": closed, "paths": paths}, fault.SessionClosed)
	e.Refused(calltest.Owner(), &git.Restore, args{"project": calltest.Beta.String(), "session_id": closed, "paths": paths}, fault.SessionProjectMismatch)
	if n := len(e.Fleet.Starts()); n != 0 {
		t.Errorf("%d were started", n)
	}
}

// A path that cannot be one is refused before anything is recorded or started.
func TestWrongPathsLeaveNothing(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	before := len(e.Commits(id))
	for path, reason := range map[string]string{"/a": "absolute", "a/../../b": "outside_project", "a\x00": "malformed", "": "malformed"} {
		_, err := e.Call(&git.Restore, args{"project": alpha, "session_id": id, "paths": []string{"ok", path}})
		if f := fault.As(err); f == nil || f.Kind != fault.InvalidPath || f.Reason != reason || f.Field != "paths" {
			t.Errorf("%q: %v", path, err)
		}
	}
	if len(e.Commits(id)) != before || len(e.Fleet.Starts()) != 0 {
		t.Error("something was recorded or started")
	}
}
