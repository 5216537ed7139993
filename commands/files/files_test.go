package files_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/files"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

func work(e *calltest.Env, extra args) string {
	e.T.Helper()
	a := args{"project": alpha, "instruction": "do it"}
	for k, v := range extra {
		a[k] = v
	}
	return string(calltest.Must[session.WorkOut](e, &session.WorkOnProject, a).SessionID)
}

// pair is the last recorded call of a Session.
func pair(e *calltest.Env, id string) (s event.ToolCallStarted, f event.ToolCallFinished) {
	e.T.Helper()
	for _, ev := range e.Events(event.SessionID(id)) {
		switch ev := ev.(type) {
		case event.ToolCallStarted:
			s = ev
		case event.ToolCallFinished:
			f = ev
		}
	}
	return s, f
}

// answer scripts the Runner: reads give out, effects give out or the fault; what was asked is kept.
func answer(e *calltest.Env, out any, f *fault.Error) *json.RawMessage {
	asked := new(json.RawMessage)
	was := e.Fleet.OnAsk
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		if op == wire.OpObserveWorkspace {
			return was(op, body)
		}
		*asked = body
		if f != nil {
			return nil, f
		}
		return out, nil
	}
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		*asked = x.Offer.Body
		if err := e.Fleet.Grant(ctx, x); err != nil {
			return call.Outcome{}, err
		}
		body, err := json.Marshal(out)
		if err != nil {
			return call.Outcome{}, err
		}
		return call.Outcome{Result: &wire.Result{ID: x.Offer.ID, State: wire.JTerminal, Body: body, Fault: f}}, nil
	}
	return asked
}

// Evidence is paths and counts; no pattern, content or result text reaches the log.
//
// Covers: NEG-23, CON-13
func TestEvidenceIsPathsAndCounts(t *testing.T) {
	text := "TEXTMARK"
	for _, tc := range []struct {
		spec     *call.Spec
		a        args
		out      any
		input    event.Input
		changed  []string
		observed []string
		effect   event.Effect
	}{
		{&files.Read, args{"items": []args{{"path": "a.go"}, {"path": "b.go", "start_line": 3}}},
			wire.ReadFilesOut{Items: []wire.ReadFile{{Path: "a.go", Success: true, Text: text}, {Path: "b.go", Error: text}}},
			event.Input{Paths: []string{"a.go", "b.go"}, PathCount: 2}, nil, []string{"a.go"}, event.Effect{}},
		{&files.Search, args{"queries": []args{{"pattern": text}, {"pattern": text, "result_mode": "files_with_matches"}}},
			wire.SearchTextsOut{Items: []wire.SearchResult{{Success: true, Matches: []wire.SearchMatch{{Path: "x/y", Preview: text}, {Path: "x/y"},
				{Path: "l%FF", Lossy: true}}}, {Files: []wire.SearchFile{{Path: "z"}}}}},
			event.Input{QueryCount: 2}, nil, []string{"x/y", "z"}, event.Effect{}},
		{&files.FileContext, args{"path": "a.go", "pattern": text},
			wire.SearchFileOut{Path: "real/a.go", Matches: []wire.FileMatch{{Preview: text}}},
			event.Input{Paths: []string{"a.go"}, PathCount: 1, QueryCount: 1}, nil, []string{"real/a.go"}, event.Effect{}},
		{&files.List, args{"path": "d"}, wire.ListFilesOut{Path: "d", Entries: []wire.DirEntry{{Path: "d/x"}}},
			event.Input{Paths: []string{"d"}, PathCount: 1}, nil, nil, event.Effect{}},
		{&files.Tracked, args{}, wire.TrackedFilesOut{Entries: []wire.TrackedEntry{{Path: "x"}}}, event.Input{}, nil, nil, event.Effect{}},
		{&files.Overview, args{}, wire.OverviewOut{Path: "."}, event.Input{}, nil, nil, event.Effect{}},
		{&files.Edit, args{"changes": []args{{"kind": "edit", "path": "a", "edits": []args{{"kind": "replace_exact", "old_text": text, "new_text": text}}},
			{"kind": "rename", "path": "b", "to_path": "c", "expected_sha256": strings.Repeat("0", 64)}}},
			wire.EditFilesOut{Changed: true, AppliedCount: 2, ChangedPaths: []string{"a", "b", "c"}},
			event.Input{Paths: []string{"a", "b", "c"}, PathCount: 3, ChangeCount: 2}, []string{"a", "b", "c"}, nil,
			event.Effect{StateChanged: true, State: event.Completed}},
		{&files.Edit, args{"changes": []args{{"kind": "create", "path": "a", "content": text}}, "dry_run": true}, wire.EditFilesOut{DryRun: true},
			event.Input{Paths: []string{"a"}, PathCount: 1, ChangeCount: 1, DryRun: true}, nil, nil, event.Effect{}},
		{&files.Write, args{"path": "w", "content": text}, wire.WriteFileOut{Path: "w", Created: true, Changed: true},
			event.Input{Paths: []string{"w"}, PathCount: 1, ChangeCount: 1}, []string{"w"}, nil, event.Effect{StateChanged: true, State: event.Completed}},
		{&files.Write, args{"path": "w", "content": text, "overwrite": true}, wire.WriteFileOut{Path: "w", Overwritten: true},
			event.Input{Paths: []string{"w"}, PathCount: 1, ChangeCount: 1}, nil, nil, event.Effect{State: event.Completed}},
		{&files.Delete, args{"paths": []string{"x", "y"}}, wire.DeleteFilesOut{Deleted: []string{"x"}, Missing: []string{"y"}},
			event.Input{Paths: []string{"x", "y"}, PathCount: 2, ChangeCount: 2}, []string{"x"}, nil, event.Effect{StateChanged: true, State: event.Completed}},
	} {
		e := calltest.New(t, nil)
		id := work(e, nil)
		answer(e, tc.out, nil)
		tc.a["project"], tc.a["session_id"] = alpha, id
		resp, err := e.Call(tc.spec, tc.a)
		if err != nil || !resp.Success {
			t.Fatalf("%s: %v", tc.spec.Name, err)
		}
		s, f := pair(e, id)
		if s.Tool != tc.spec.Name || !reflect.DeepEqual(s.Input, tc.input) {
			t.Errorf("%s kept %+v, want %+v", tc.spec.Name, s.Input, tc.input)
		}
		if !reflect.DeepEqual(f.Changed, tc.changed) || !reflect.DeepEqual(f.Observed, tc.observed) || f.Effect != tc.effect || f.Status != event.StatusSucceeded {
			t.Errorf("%s recorded %+v", tc.spec.Name, f)
		}
		if sum := f.Context; (sum == nil) != (tc.observed == nil) {
			t.Errorf("%s sums up %+v", tc.spec.Name, sum)
		}
		for _, c := range e.Commits(event.SessionID(id)) {
			if body, err := c.Encode(); err != nil || strings.Contains(string(body), text) {
				t.Errorf("%s: text is in the log (%v)", tc.spec.Name, err)
			}
		}
	}
}

// A refused edit is recorded as failed with nothing changed; one that broke half-way with
// what stays changed.
//
// Covers: EVT-21
func TestFailedEditsAreRecordedTruly(t *testing.T) {
	conflict := fault.New(fault.EditConflict, "stale").With("conflicts", []wire.EditConflict{{Path: "a", Kind: wire.SHA256Mismatch}})
	broken := fault.New(fault.TransactionFailed, "half-way").With("changed_paths", []any{"a", "c"})
	broken.StateChanged = true
	for _, tc := range []struct {
		f       *fault.Error
		changed []string
	}{{conflict, nil}, {broken, []string{"a", "c"}}} {
		e := calltest.New(t, nil)
		id := work(e, nil)
		answer(e, nil, tc.f)
		_, err := e.Call(&files.Edit, args{"project": alpha, "session_id": id, "changes": []args{{"kind": "create", "path": "a", "content": ""}}})
		got := fault.As(err)
		if got == nil || got.Kind != tc.f.Kind || got.StateChanged != tc.f.StateChanged || got.Details["session_recorded"] != true {
			t.Fatalf("%+v", got)
		}
		_, f := pair(e, id)
		if f.Status != event.StatusFailed || f.ErrorKind != string(tc.f.Kind) || f.Effect.StateChanged != tc.f.StateChanged || !reflect.DeepEqual(f.Changed, tc.changed) {
			t.Errorf("%+v", f)
		}
	}
}

// The largest edit, 16 renames, loses none of its 32 paths.
//
// Covers: EVT-26
func TestLargestEditKeepsItsPaths(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	var out wire.EditFilesOut
	var changes []args
	for i := range files.MaxChanges {
		from, to := fmt.Sprintf("dir/from%d", i), fmt.Sprintf("dir/to%d", i)
		changes = append(changes, args{"kind": "rename", "path": from, "to_path": to, "expected_sha256": strings.Repeat("0", 64)})
		out.ChangedPaths = append(out.ChangedPaths, from, to)
	}
	out.Changed = true
	answer(e, out, nil)
	if _, err := e.Call(&files.Edit, args{"project": alpha, "session_id": id, "changes": changes}); err != nil {
		t.Fatal(err)
	}
	s, f := pair(e, id)
	if !reflect.DeepEqual(f.Changed, out.ChangedPaths) || len(f.Changed) != 32 || s.Input.PathCount != 32 {
		t.Errorf("%d %+v", s.Input.PathCount, f.Changed)
	}
}

// Tools that change files are denied by a read_only Session and by a missing scope, and reads
// are not.
func TestWritersNeedTheirRights(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, args{"session_mode": "read_only"})
	answer(e, wire.ReadFilesOut{}, nil)
	writes := map[*call.Spec]args{
		&files.Edit:   {"changes": []args{{"kind": "create", "path": "a", "content": ""}}, "dry_run": true},
		&files.Write:  {"path": "a", "content": ""},
		&files.Delete: {"paths": []string{"a"}},
	}
	for spec, a := range writes {
		a["project"] = alpha
		e.Refused(calltest.Owner(call.ScopeProjectWrite), spec, a, fault.InsufficientScope)
		a["session_id"] = id
		if _, err := e.Call(spec, a); fault.KindOf(err) != fault.SessionGuardDenied {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
	if n := len(e.Fleet.Starts()); n != 0 {
		t.Errorf("%d effects were started", n)
	}
	read := args{"project": alpha, "session_id": id, "items": []args{{"path": "a"}}}
	if _, err := e.Call(&files.Read, read); err != nil {
		t.Error(err)
	}
	e.Refused(calltest.Owner(call.ScopeProjectRead), &files.Read, args{"project": alpha, "items": []args{{"path": "a"}}}, fault.InsufficientScope)
}

// Knobs are clamped, not refused, and the effective value is told (ruling 8).
func TestKnobsAreClamped(t *testing.T) {
	e := calltest.New(t, nil)
	for _, tc := range []struct{ given, want int }{{0, files.DefaultListLimit}, {-5, 1}, {7, 7}, {1 << 40, files.MaxListLimit}} {
		asked := answer(e, wire.ListFilesOut{}, nil)
		out := calltest.Must[files.ListOut](e, &files.List, args{"project": alpha, "limit": tc.given})
		var in wire.ListFilesIn
		if err := json.Unmarshal(*asked, &in); err != nil || in.Limit != tc.want || out.Limit != tc.want {
			t.Errorf("%d became %d, told as %d", tc.given, in.Limit, out.Limit)
		}
	}
	asked := answer(e, wire.SearchTextsOut{}, nil)
	calltest.Must[wire.SearchTextsOut](e, &files.Search, args{"project": alpha, "queries": []args{{"pattern": "x", "context_before": 99, "timeout_secs": 999, "limit": -1}}})
	var in wire.SearchTextsIn
	if err := json.Unmarshal(*asked, &in); err != nil || in.Queries[0].Before != files.MaxContextLines || in.Queries[0].TimeoutSecs != files.MaxSearchTimeout || in.Queries[0].Limit != 1 {
		t.Errorf("%+v", in)
	}
	asked = answer(e, wire.SearchFileOut{}, nil)
	calltest.Must[files.ContextOut](e, &files.FileContext, args{"project": alpha, "path": "a", "pattern": "x", "context_before": 0})
	var one wire.SearchFileIn
	if err := json.Unmarshal(*asked, &one); err != nil || one.Before != 0 || one.After != wire.FileContext {
		t.Errorf("%+v", one)
	}
}

func TestGoneRunner(t *testing.T) {
	e := calltest.New(t, nil)
	e.Fleet.Disconnect(calltest.Alpha)
	for spec, a := range map[*call.Spec]args{&files.Read: {"items": []args{{"path": "a"}}}, &files.Search: {"queries": []args{{"pattern": "a"}}},
		&files.Write: {"path": "a", "content": ""}} {
		a["project"] = alpha
		e.Refused(calltest.Owner(), spec, a, fault.RunnerUnavailable)
	}
}
