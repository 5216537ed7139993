package main

import (
	"os"
	"os/exec"
	"testing"

	"webcodex/commands/session"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// A host that starts work hears that there is a language server, asks it through the tool that calls
// any, and its paths are what the Session has looked at.
//
// Covers: STA-13
func TestNavigatesThroughAHost(t *testing.T) {
	t.Parallel()
	if os.Getenv("WEBCODEX_GOPLS") == "" {
		if _, err := exec.LookPath("gopls"); err != nil {
			t.Skip("gopls is not installed")
		}
	}
	w := newWorld(t, "process")
	s := must[session.WorkOut](w, "work_on_project", args{"project": w.project, "instruction": "look around"})
	if a := s.Navigation.Available; a != nil && !*a {
		t.Errorf("%+v", s.Navigation)
	}
	at := args{"project": w.project, "session_id": s.SessionID, "path": "add.go", "line": 3, "column": 6}
	h := must[wire.HoverOut](w, "call_runtime_tool", args{"tool": "hover", "arguments": at})
	if h.Hover == nil || h.Provider.Server != "gopls" {
		t.Errorf("%+v", h)
	}
	w.refused("hover", args{"project": w.project, "path": "add.go", "line": 99, "column": 1}, "invalid_position", "line")
	w.refused("hover", args{"project": w.project, "path": "../add.go", "line": 1, "column": 1}, "invalid_path", "")
	sum := must[view.Summary](w, "read_session_summary", args{"session_id": s.SessionID})
	seen := false
	for _, e := range sum.Events {
		for _, p := range e.Observed {
			seen = seen || p == "add.go"
		}
	}
	if !seen {
		t.Error("the Session does not know what was looked at")
	}
}
