package main

import (
	"os"
	"path/filepath"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// A read_only Session denies every tool that writes or runs, before anything happens, and
// keeps the denial as evidence; it reads as before.
//
// Covers: SES-51, SES-52
func TestEveryToolAgainstAReadOnlySession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	w.refused("work_on_project", args{"instruction": "x", "project": w.project, "session_mode": "inspect"}, "invalid_arguments", "session_mode")
	w.refused("start_session", args{"project": w.project, "mode": "inspect"}, "invalid_arguments", "mode")
	s := w.work(args{"session_mode": "read_only"})
	if !s.Session.Guards.DenyWrite || !s.Session.Guards.DenyShell || s.Session.Mode != event.ModeReadOnly {
		t.Errorf("%+v", s.Session)
	}
	denials := 0
	for _, tool := range sessionTools(t) {
		name := tool.Spec.Name
		guard := map[call.Class]string{call.Write: "deny_write_tools", call.Execute: "deny_shell_tools"}[tool.Spec.Class]
		if guard == "" {
			if r := w.call(name, with(sample[name], project(tool, w), args{"session_id": s.SessionID})); name != "close_session" && r.Kind() == "session_guard_denied" {
				t.Errorf("%s is denied: %s", name, r.Text)
			}
			if name == "close_session" { // in the catalogue's order it comes early
				s = w.work(args{"session_mode": "read_only"})
			}
			continue
		}
		denials++
		before := w.observed(s.SessionID)
		r := w.call(name, with(sample[name], project(tool, w), args{"session_id": s.SessionID}))
		if f := refusalOf(t, r); !r.IsError || f.Kind != "session_guard_denied" || f.Reason != guard || *f.StateChanged || *f.CommandStarted {
			t.Errorf("%s on a read_only Session: %s", name, r.Text)
		}
		sum := must[view.Summary](w, "read_session_summary", args{"session_id": s.SessionID, "limit": 1})
		if last := sum.Events[0]; w.observed(s.SessionID) != before+2 || last.Tool != name || last.Status != event.StatusFailed || last.ErrorKind != "session_guard_denied" ||
			last.Effect.State != event.NotStarted {
			t.Errorf("%s left %+v", name, last)
		}
	}
	if denials < 9 {
		t.Errorf("only %d tools write or run", denials)
	}
	for _, f := range []string{"swept.txt", "written.txt"} {
		if _, err := os.Stat(filepath.Join(w.repo, f)); err == nil {
			t.Errorf("%s was written", f)
		}
	}
}

// Where a Session is both Closed and read_only, being Closed is what is told, and nothing is
// written.
//
// Covers: SES-24, SES-53
func TestClosedComesBeforeReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{"session_mode": "read_only"})
	must[session.CloseOut](w, "close_session", args{"session_id": s.SessionID})
	for _, tool := range sessionTools(t) {
		if name := tool.Spec.Name; tool.Spec.Class == call.Write || tool.Spec.Class == call.Execute || name == "update_session_context" {
			w.refused(name, with(sample[name], project(tool, w), args{"session_id": s.SessionID}), "session_closed", "")
		}
	}
}

// Going from read_only to normal needs the write scope and changes nothing but mode and guards.
//
// Covers: AUTH-13
func TestUpgradeOfAReadOnlySession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{"session_mode": "read_only"})
	before, _ := w.srv.store.Core(s.SessionID)
	up := w.work(args{"session_id": s.SessionID, "session_mode": "normal", "instruction": "now write"})
	after, _ := w.srv.store.Core(s.SessionID)
	if up.SessionID != s.SessionID || up.SessionRef != s.SessionRef || up.Session.Mode != event.ModeNormal || up.Session.Guards.DenyWrite ||
		after.Nonce != before.Nonce || after.Authority != before.Authority || after.Principal != before.Principal || after.Title != before.Title {
		t.Errorf("%+v", up)
	}
}

// A mutation that was answered is in every later read, at once.
//
// Covers: EVT-31
func TestReadsSeeWhatWasAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	observed := uint64(1)
	for i := range 40 {
		cwd := []string{"a", "b", "."}[i%3]
		up := must[session.UpdateContextOut](w, "update_session_context", args{"project": w.project, "session_id": s.SessionID, "execution_context": args{"default_cwd": cwd}})
		observed++
		sum := must[view.Summary](w, "read_session_summary", args{"session_id": s.SessionID, "limit": 1})
		if !up.Changed || sum.Context.DefaultCwd != cwd || sum.UpdatedAt != up.UpdatedAt || sum.EventsObserved != observed {
			t.Fatalf("round %d: %+v, then %+v", i, up, sum)
		}
		w.call("get_git_status", args{"project": w.project, "session_id": s.SessionID})
		observed += 2
		if got := must[view.Page](w, "list_sessions", args{"project": w.project}); got.Sessions[0].EventsObserved != observed {
			t.Fatalf("round %d: the list says %+v", i, got.Sessions[0])
		}
	}
}

// The session_id of a read is the Session it is about, whatever else is being recorded
// meanwhile; no argument puts another in its place.
//
// Covers: EVT-33
func TestASummaryIsOfTheNamedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	c, other := w.work(args{"instruction": "the one"}), w.work(args{"instruction": "the other"})
	for range 3 {
		w.call("get_git_status", args{"project": w.project, "session_id": other.SessionID})
		sum := must[view.Summary](w, "read_session_summary", args{"session_id": c.SessionID})
		h := must[view.Handoff](w, "read_session_handoff", args{"session_id": c.SessionID})
		if sum.SessionID != c.SessionID || sum.EventsObserved != 1 || h.Brief.Session.SessionID != c.SessionID || h.Brief.Task.Root.Text != "the one" {
			t.Errorf("%+v %+v", sum, h.Brief)
		}
	}
	if got := w.observed(other.SessionID); got != 7 {
		t.Errorf("the other has %d events", got)
	}
	for _, name := range []string{"recording_session_id", "record", "recorder"} {
		w.refused("read_session_summary", args{"session_id": c.SessionID, name: other.SessionID}, "invalid_arguments", name)
	}
}
