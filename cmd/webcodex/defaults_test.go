package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/session"
	"webcodex/eventlog"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
)

// The tools that take execution defaults, each with what else it needs.
func (w *world) takeDefaults(id event.SessionID) map[string]args {
	return map[string]args{
		"work_on_project":        {"project": w.project, "instruction": "x"},
		"start_session":          {"project": w.project},
		"update_session_context": {"project": w.project, "session_id": id},
	}
}

func jsonNames(v any) (out []string) {
	for t, i := reflect.TypeOf(v), 0; i < t.NumField(); i++ {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// Execution defaults are a closed, typed set of a Session with a Project. Nothing else is taken,
// stored or shown, least of all what carries rights.
//
// Covers: EXE-01, EXE-02, EXE-03
func TestExecutionDefaultsAreAClosedSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	want := event.ExecutionContext{DefaultCwd: "sub", DefaultShell: "bash"}
	s := w.work(args{"execution_context": args{"default_cwd": "sub", "default_shell": "bash"}})
	if s.Session.Context != want {
		t.Errorf("%+v", s.Session)
	}
	if again := w.work(args{"session_id": s.SessionID}); again.Session.Context != want {
		t.Errorf("%+v", again.Session)
	}
	if sum := must[view.Summary](w, "read_session_summary", args{"session_id": s.SessionID}); sum.Context != want {
		t.Errorf("%+v", sum.Context)
	}
	closed := []string{"default_cwd", "default_shell", "resource"}
	if a, b := jsonNames(event.ExecutionContext{}), jsonNames(session.ContextIn{}); !slices.Equal(a, closed) || !slices.Equal(b, closed) {
		t.Errorf("stored are %v, taken are %v", a, b)
	}
	for tool, base := range w.takeDefaults(s.SessionID) {
		for name, value := range map[string]any{
			"env": args{"A": "b"}, "environment": []string{"A=b"}, "credentials": "x", "token": "x", "password": "x", "ssh_host": "h", "host": "h",
			"ssh_config": "x", "identity_file": "/k", "key": "x", "ssh_state": args{}, "stdin": "x", "shell_input": "x", "connection": args{},
			"options": args{}, "Default_cwd": "sub", "default_env": args{}, "cwd": "sub",
		} {
			w.refused(tool, with(base, args{"execution_context": args{"default_cwd": "sub", name: value}}), "invalid_execution_context", "execution_context."+name)
		}
		w.refused(tool, with(base, args{"execution_context": args{"default_shell": "zsh"}}), "invalid_arguments", "execution_context.default_shell")
		w.refused(tool, with(base, args{"execution_context": args{"default_cwd": 5}}), "invalid_arguments", "execution_context.default_cwd")
	}
	for _, given := range []args{{"default_cwd": "sub"}, {"default_shell": "sh"}, {"resource": "box"}} {
		w.refused("start_session", args{"title": "no project", "execution_context": given}, "session_execution_context_requires_project", "")
	}
	loose := must[session.StartOut](w, "start_session", args{"title": "no project", "execution_context": args{}})
	if core, _ := w.srv.store.Core(loose.SessionID); core.Context != (event.ExecutionContext{}) {
		t.Errorf("%+v", core.Context)
	}
}

// Without a resource the default directory is checked by its text alone and kept in its
// shortest form; every other form fails and changes nothing.
//
// Covers: EXE-05
func TestTheDefaultDirectoryIsCheckedByItsText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{"execution_context": args{"default_cwd": "kept"}})
	long := strings.Repeat("d", 255) + "/" + strings.Repeat("e", 256) // 512 characters
	for cwd, kept := range map[string]string{
		".": ".", "./": ".", "a/./b//c/": "a/b/c", "with space/it's": "with space/it's", "-x": "-x", "é漢": "é漢", "not/there/yet": "not/there/yet", long: long,
	} {
		out := must[session.UpdateContextOut](w, "update_session_context", args{"project": w.project, "session_id": s.SessionID, "execution_context": args{"default_cwd": cwd}})
		if out.Context.DefaultCwd != kept {
			t.Errorf("%.20q is kept as %.20q", cwd, out.Context.DefaultCwd)
		}
	}
	must[session.UpdateContextOut](w, "update_session_context", args{"project": w.project, "session_id": s.SessionID, "execution_context": args{"default_cwd": "kept"}})
	for tool, base := range w.takeDefaults(s.SessionID) {
		for _, cwd := range []string{"/", "/etc", "//x", "..", "../x", "a/..", "a/../b", "a/../../b", `..\x`, `\x`, `C:\x`, "c:/x", "~", "~/x", "file:///etc", "https://h/x",
			"ssh://h/x", "a\nb", "a\rb", "a\tb", "a\x1b[31m", "a\x00b", "a\u0085b", long + "f"} {
			w.refused(tool, with(base, args{"execution_context": args{"default_cwd": cwd}}), "invalid_execution_context", "execution_context.default_cwd")
		}
	}
	if core, _ := w.srv.store.Core(s.SessionID); core.Context.DefaultCwd != "kept" {
		t.Errorf("%+v", core.Context)
	}
}

// commits are the stored commits of a Session.
func (w *world) commits(id event.SessionID) (out []event.Commit) {
	w.t.Helper()
	err := w.srv.log.Replay(w.t.Context(), eventlog.Range{Aggregate: event.SessionAggregate(id)}, func(x eventlog.Entry) error {
		out = append(out, x.Commit)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// An explicit object replaces the defaults, {} clears them, and where it is left out they stay.
// A change is one event with what was and what is, in the commit that makes it, and holds
// nothing of a command, an environment or a secret.
//
// Covers: EXE-25, EXE-26
func TestDefaultsChangeWithTheirEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	one, two := event.ExecutionContext{DefaultCwd: "one"}, event.ExecutionContext{DefaultCwd: "two", DefaultShell: "bash"}
	s := w.work(args{"execution_context": args{"default_cwd": "one"}})
	w.call("run_shell", args{"project": w.project, "session_id": s.SessionID, "cwd": ".", "command": "echo COMMANDMARK; export SECRET=ENVMARK"})
	for _, step := range []struct {
		tool  string
		given any
		was   event.ExecutionContext
		is    event.ExecutionContext
	}{
		{"work_on_project", nil, one, one},
		{"work_on_project", args{"default_cwd": "two", "default_shell": "bash"}, one, two},
		{"work_on_project", args{"default_shell": "bash", "default_cwd": "./two"}, two, two}, // equal: no event
		{"update_session_context", args{"default_cwd": "one"}, two, one},                     // the shell is not kept: the set is replaced
		{"work_on_project", args{}, one, event.ExecutionContext{}},
		{"update_session_context", args{"default_shell": "bash", "default_cwd": "two"}, event.ExecutionContext{}, two},
		{"update_session_context", args{}, two, event.ExecutionContext{}},
	} {
		before := len(w.commits(s.SessionID))
		a := args{"session_id": s.SessionID}
		if step.tool == "work_on_project" {
			a["instruction"] = "go on"
		} else {
			a["project"] = w.project
		}
		if step.given != nil {
			a["execution_context"] = step.given
		}
		if r := w.call(step.tool, a); !r.Success {
			t.Fatalf("%s", r.Text)
		}
		if core, _ := w.srv.store.Core(s.SessionID); core.Context != step.is {
			t.Errorf("%v: the Session has %+v", step.given, core.Context)
		}
		made := w.commits(s.SessionID)[before:]
		if len(made) != 1 {
			t.Errorf("%v: %d commits", step.given, len(made))
		}
		var changes []event.ContextUpdated
		for _, c := range made {
			for _, e := range c.Events {
				if u, ok := e.(event.ContextUpdated); ok {
					changes = append(changes, u)
				}
			}
		}
		if step.was == step.is {
			if len(changes) != 0 {
				t.Errorf("%v: %+v", step.given, changes)
			}
		} else if len(changes) != 1 || changes[0] != (event.ContextUpdated{Context: step.is, Previous: step.was}) {
			t.Errorf("%v: %+v", step.given, changes)
		}
		for _, u := range changes {
			raw, _ := json.Marshal(u)
			if !regexp.MustCompile(`^\{"context":\{[^{}]*\},"previous":\{[^{}]*\}\}$`).Match(raw) || strings.Contains(string(raw), "MARK") {
				t.Errorf("%s", raw)
			}
		}
	}
	if names := jsonNames(event.ContextUpdated{}); !slices.Equal(names, []string{"context", "previous"}) {
		t.Errorf("the event has %v", names)
	}
}
