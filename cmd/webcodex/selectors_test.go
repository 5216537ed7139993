package main

import (
	"strings"
	"testing"

	"webcodex/commands/session"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// A selector that names nothing is answered by the kernel with its own kind, by every tool:
// no Session is created, reopened or taken in its place.
//
// Covers: SES-05, SES-15, SES-54
func TestSelectorsThatNameNothing(t *testing.T) {
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

// A Session without a Project never supplies one: reads and resumes of it say that there is
// none, and what needs a Project has to be told which.
//
// Covers: SES-56, STA-07
func TestASessionWithoutAProjectSuppliesNone(t *testing.T) {
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
