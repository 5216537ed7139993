package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"webcodex/commands/call"
	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
)

// The same calls under each profile of the deployment are admitted, refused, run, judged and promoted
// alike: their kinds of refusal, their results and what is stored of them are the same.
//
// Covers: PRO-09
func TestAProfileChangesNoCall(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("GOPROXY", "off")
	var first []string
	for _, profile := range call.Profiles {
		w := newWorld(t, "process", func(c *Config) { c.HostProfile = profile })
		start := w.work(args{})
		guarded := must[session.WorkOut](w, "work_on_project", args{"project": w.project, "instruction": "look", "session_mode": "read_only"})
		if start.Profile != profile {
			t.Fatalf("the profile is %s", start.Profile)
		}
		on := func(id event.SessionID, extra args) args {
			return with(args{"project": w.project, "session_id": id}, extra)
		}
		var got []string
		for _, c := range []struct {
			tool string
			args args
		}{
			{"run_shell", on(start.SessionID, args{"command": "exit 4"})},
			{"run_shell", on(start.SessionID, args{"command": "sleep 30", "sync_wait_secs": 0, "timeout_secs": 40})},
			{"run_shell", on(guarded.SessionID, args{"command": "true"})},
			{"edit_project_files", on(start.SessionID, args{"changes": []args{{"kind": "create", "path": "a.txt", "content": "x"}}})},
			{"edit_project_files", on(guarded.SessionID, args{"changes": []args{{"kind": "create", "path": "b.txt", "content": "x"}}})},
			{"go_test", on(start.SessionID, args{"require_tests": true, "result_expectation": "failure"})},
			{"read_files", on(start.SessionID, args{"items": []args{{"path": "../x"}}})},
			{"read_files", args{"project": w.other, "session_id": start.SessionID, "items": []args{{"path": "add.go"}}}},
			{"finish_coding_task", on(start.SessionID, nil)},
		} {
			r := w.call(c.tool, c.args)
			var out struct {
				Kind     string          `json:"error_kind"`
				Promoted *bool           `json:"promoted_to_job"`
				Expected json.RawMessage `json:"expectation"`
				Passed   *bool           `json:"passed"`
				Verdict  json.RawMessage `json:"verdict"`
				Job      string          `json:"job_id"`
			}
			if err := r.Decode(&out); err != nil {
				t.Fatal(err)
			}
			if out.Job != "" {
				w.call("stop_job", args{"project": w.project, "job_id": out.Job})
				out.Job = ""
			}
			raw, _ := json.Marshal(out)
			got = append(got, fmt.Sprintf("%s: error %v, success %v, %s", c.tool, r.IsError, r.Success, raw))
		}
		for _, id := range []event.SessionID{start.SessionID, guarded.SessionID} {
			got = append(got, w.calls(id)...)
		}
		if first == nil {
			first = got
		}
		if d := cmp.Diff(first, got); d != "" {
			t.Errorf("%s differs from %s:\n%s", profile, call.Profiles[0], d)
		}
	}
	if !slices.ContainsFunc(first, func(s string) bool { return len(s) > 100 }) {
		t.Errorf("%q", first)
	}
}

// calls are the ends of a Session's calls as they are stored, without what is of one run alone.
func (w *world) calls(id event.SessionID) (out []string) {
	w.t.Helper()
	err := w.srv.log.Replay(context.Background(), eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(e eventlog.Entry) error {
		for _, ev := range e.Commit.Events {
			f, ok := ev.(event.ToolCallFinished)
			if !ok {
				continue
			}
			passed := "none"
			if f.Validation != nil && f.Validation.Passed != nil {
				passed = fmt.Sprint(*f.Validation.Passed)
			}
			out = append(out, fmt.Sprintf("%s %s %s %s %s %+v promoted %v passed %s, %q", f.Tool, f.Role, f.Status, f.ErrorKind, f.Expectation, f.Effect, f.Promoted, passed, f.Changed))
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
