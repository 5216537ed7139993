package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// retiredMember is a member of answers of older systems.
var retiredMember = regexp.MustCompile(`"(context_revision\w*|context_ack\w*|ack_baseline|checkpoint_class\w*|resume_session_id|current_session\w*)":`)

var canonical = regexp.MustCompile(`^wc_sess_[0-9a-f]{32}$`)

// A selector that names nothing is answered by the kernel with its own kind, by every tool:
// no Session is created, reopened or taken in its place.
//
// Covers: SES-05, SES-15, SES-54
func TestSelectorsThatNameNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	totals, tail := w.srv.store.Totals(), w.observed(s.SessionID)
	hex := string(s.SessionID)[len("wc_sess_"):]
	for selector, kind := range map[string]string{
		"~s0": "unknown_session_ref", "~s01": "unknown_session_ref", "~S1": "unknown_session_ref", "~s": "unknown_session_ref",
		"~": "unknown_session_ref", "~s1 ": "unknown_session_ref", "~s-1": "unknown_session_ref", "~s1234567890": "unknown_session_ref",
		"~s987654": "unknown_session_ref", "~p1": "unknown_session_ref", "~sx": "unknown_session_ref", "~s１": "unknown_session_ref",
		string(event.NewSessionID()): "unknown_session_id", "wc_sess_": "unknown_session_id", "wc_sess_" + strings.ToUpper(hex) + "F": "unknown_session_id",
		"wc_sess_" + hex[1:]: "unknown_session_id", "wc_sess_" + hex + "0": "unknown_session_id", " " + string(s.SessionID): "unknown_session_id",
		hex: "unknown_session_id", "latest": "unknown_session_id", "wc_sess_" + hex + "\n": "unknown_session_id",
	} {
		for _, tool := range sessionTools(t) {
			name := tool.Spec.Name
			w.refused(name, with(sample[name], project(tool, w), args{"session_id": selector}), kind, "session_id")
		}
	}
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		if _, takes := tool.Input.Prop("project"); !takes || name == "work_on_project" {
			continue
		}
		for _, selector := range []string{"~p0", "~P1", "~p987654", "~s1"} {
			w.refused(name, with(sample[name], args{"session_id": s.SessionID, "project": selector}), "unknown_project_ref", "project")
		}
	}
	if after := w.srv.store.Totals(); after != totals || w.observed(s.SessionID) != tail {
		t.Errorf("before %+v, after %+v", totals, after)
	}
}

// A Session may be named by its id or by the caller's ref; the answer names it by its id, and
// so does everything that is stored. A ref is none in any other domain of ids.
//
// Covers: SES-03, SES-16, EVT-16
func TestBothFormsOfASelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	if !strings.HasPrefix(s.SessionRef, "~s") {
		t.Fatalf("no ref: %+v", s)
	}
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		if name == "close_session" {
			continue
		}
		for _, selector := range []string{string(s.SessionID), s.SessionRef} {
			r := w.call(name, with(sample[name], project(tool, w), args{"session_id": selector}))
			if strings.Contains(r.Text, "unknown_session") {
				t.Errorf("%s does not take %s: %s", name, selector, r.Text)
			}
			if gone := retiredMember.FindString(string(r.Output)); gone != "" {
				t.Errorf("%s answers with %s: %s", name, gone, r.Output)
			}
			for at, id := range sessionIDs(t, r.Output) {
				if !canonical.MatchString(id) {
					t.Errorf("%s: %s is %q", name, at, id)
				}
			}
		}
	}
	for tool, a := range map[string]args{"stop_job": {"project": w.project, "job_id": s.SessionRef},
		"observe_jobs": {"project": w.project, "items": []args{{"job_id": s.SessionRef}}}} {
		if r := w.call(tool, a); !r.IsError && !strings.Contains(string(r.Output), "unknown_job") {
			t.Errorf("%s takes a ref for a Job: %s", tool, r.Output)
		}
	}
	err := w.srv.log.Replay(t.Context(), eventlog.Range{}, func(e eventlog.Entry) error {
		body, err := e.Commit.Encode()
		if strings.Contains(string(body), `"`+s.SessionRef+`"`) {
			t.Errorf("a ref is stored in place of an id: %s", body)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sessionIDs are the values of every member named session_id of an answer, by where they stand.
// Arguments of suggested calls are among them.
func sessionIDs(t *testing.T, raw json.RawMessage) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(v any, at string)
	walk = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				if id, ok := x.(string); ok && k == "session_id" {
					out[at+"."+k] = id
				}
				walk(x, at+"."+k)
			}
		case []any:
			for _, x := range v {
				walk(x, at+"[]")
			}
		}
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	walk(v, "")
	return out
}

// A Session without a Project never supplies one: reads and resumes of it say that there is
// none, and what needs a Project has to be told which.
//
// Covers: SES-56, STA-07
func TestASessionWithoutAProjectSuppliesNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	loose := must[session.StartOut](w, "start_session", args{"title": "notes"})
	out := w.work(args{"session_id": string(loose.SessionID), "instruction": "think"})
	if out.Project != "" || out.ProjectRef != "" || out.Workspace.Status != "unavailable" || out.Instructions.Status != "unavailable" {
		t.Errorf("%+v", out)
	}
	h := must[view.Handoff](w, "read_session_handoff", args{"session_id": loose.SessionID})
	if h.Brief.Session.Project != nil || h.Brief.Workspace.Status != "unavailable" {
		t.Errorf("%+v", h.Brief)
	}
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		if p, takes := tool.Input.Prop("project"); takes {
			w.refused(name, with(sample[name], args{"session_id": loose.SessionID, "project": w.project}), "session_project_mismatch", "session_id")
			if p.Required {
				w.refused(name, with(sample[name], args{"session_id": loose.SessionID}), "invalid_arguments", "project")
			}
		}
	}
	w.refused("work_on_project", args{"instruction": "x", "session_id": loose.SessionID, "mode": "worktree"}, "invalid_arguments", "project")
}
