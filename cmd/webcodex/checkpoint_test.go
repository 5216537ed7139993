package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/checkpoint"
	"webcodex/eventlog/event"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

// A model keeps the files, breaks them, looks what a restore would do, and has them back; each step
// leaves its pair, and the handoff names what there is.
// Covers: HND-47, EXE-15
func TestCheckpointsByTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	out := w.work(args{})
	in := func(extra args) args { return with(args{"project": w.project, "session_id": out.SessionID}, extra) }
	file := filepath.Join(w.repo, "add.go")
	then, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	made := must[wire.CreateCheckpointOut](w, "create_workspace_checkpoint", in(args{"title": "TITLE_MARKER", "note": "token=hunter2secret", "kind": "last_known_good", "labels": []string{"l1"}}))
	if !made.Complete || made.Kind != "last_known_good" || strings.Contains(made.Note, "hunter2secret") {
		t.Errorf("%+v", made)
	}
	must[struct{}](w, "write_project_file", in(args{"path": "extra.txt", "content": "x"}))
	w.write(file, "broken")
	list := must[checkpoint.ListOut](w, "list_workspace_checkpoints", in(args{"limit": 1000}))
	if list.Total != 1 || list.Checkpoints[0].ID != made.ID || list.Truncated {
		t.Errorf("%+v", list)
	}
	read := must[wire.ReadCheckpointOut](w, "read_workspace_checkpoint", in(args{"checkpoint_id": made.ID}))
	if read.ChangeCount != 2 {
		t.Errorf("%+v", read)
	}
	if r := w.call("restore_workspace_checkpoint", in(args{"checkpoint_id": made.ID, "expected_state": made.State})); !r.IsError || refusalOf(t, r).Kind != "edit_conflict" {
		t.Errorf("a stale state: %s", r.Text)
	}
	back := must[checkpoint.RestoreOut](w, "restore_workspace_checkpoint", in(args{"checkpoint_id": made.ID, "expected_state": read.Current}))
	if now, err := os.ReadFile(file); err != nil || string(now) != string(then) || !back.Restored || !back.StateChanged || back.State != made.State {
		t.Errorf("%+v %s %v", back, now, err)
	}
	if _, err := os.Stat(filepath.Join(w.repo, "extra.txt")); err == nil {
		t.Error("what came since is left")
	}
	must[wire.DeleteCheckpointOut](w, "delete_workspace_checkpoint", in(args{"checkpoint_id": back.Before}))
	if list = must[checkpoint.ListOut](w, "list_workspace_checkpoints", args{"project": w.project}); list.Total != 1 {
		t.Errorf("%+v", list)
	}
	h := must[view.Handoff](w, "read_session_handoff", args{"session_id": out.SessionID})
	if c := h.Brief.Checkpoints; c.Status != "available" || c.List == nil || c.Total != 1 || c.Items[0].ID != made.ID || c.Items[0].Title != "TITLE_MARKER" || slices.Contains(h.Brief.Basis.ReasonCodes, "checkpoints_unavailable") {
		t.Errorf("%+v %+v", h.Brief.Checkpoints, h.Brief.Basis)
	}
	v, err := w.srv.store.Load(out.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	var ends []event.ToolCallFinished
	for _, e := range v.Tail.Items() {
		if f, ok := e.Event().(event.ToolCallFinished); ok && strings.Contains(f.Tool, "checkpoint") {
			ends = append(ends, f)
		}
	}
	if len(ends) != 6 || len(ends[4].Changed) != 2 || !ends[4].Effect.StateChanged || ends[0].Effect.StateChanged {
		t.Errorf("%+v", ends)
	}
	// A read_only Session restores nothing.
	ro := w.work(args{"session_mode": "read_only"})
	if r := w.call("restore_workspace_checkpoint", args{"project": w.project, "session_id": ro.SessionID, "checkpoint_id": made.ID, "expected_state": made.State}); refusalOf(t, r).Kind != "session_guard_denied" {
		t.Error(r.Text)
	}
}
