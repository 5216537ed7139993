package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/files"
	"webcodex/commands/git"
)

// A patch checked, applied and discarded again through the whole program, by call_runtime_tool as a
// host reaches it: the Session knows what changed, and nothing of what was refused.
//
// Covers: EVT-07, NEG-23
func TestPatchesEndToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	patch := "diff --git a/add.go b/add.go\n--- a/add.go\n+++ b/add.go\n@@ -1 +1,2 @@\n package sample\n+// TEXTMARK\n" +
		"--- /dev/null\n+++ b/made/new.txt\n@@ -0,0 +1 @@\n+new\n"
	through := func(tool string, a args) args { return args{"tool": tool, "arguments": with(p, a)} }
	if out := must[files.ValidatePatchOut](w, "call_runtime_tool", through("validate_patch", args{"patch": patch})); !out.Applies {
		t.Fatalf("%+v", out)
	}
	if _, err := os.Stat(filepath.Join(w.repo, "made")); err == nil {
		t.Error("a check wrote")
	}
	out := must[files.PatchOut](w, "call_runtime_tool", through("apply_patch_checked", args{"patch": patch, "deny_sensitive_paths": true}))
	if !out.Applied || !slices.Equal(out.ChangedPaths, []string{"add.go", "made/new.txt"}) {
		t.Errorf("%+v", out)
	}
	again := w.call("apply_patch", with(p, args{"patch": patch}))
	if !again.IsError || again.Kind() != "invalid_path" || !strings.Contains(string(again.Output), `"state_changed":false`) {
		t.Errorf("twice: %s", again.Text)
	}
	for _, bad := range []string{".git/hooks/pre-commit", "../outside"} {
		w.refused("apply_patch", with(p, args{"patch": "--- /dev/null\n+++ b/" + bad + "\n@@ -0,0 +1 @@\n+x\n"}), "invalid_path", "patch")
	}
	preview := must[git.DiscardOut](w, "discard_untracked", with(p, args{"paths": []string{"made"}, "dry_run": true}))
	if gone := must[git.DiscardOut](w, "discard_untracked", with(p, args{"paths": []string{"made"}, "expected_digest": preview.Digest})); gone.Count != 1 ||
		!slices.Equal(gone.Directories, []string{"made"}) {
		t.Errorf("%+v", gone)
	}
	sum := string(w.call("read_session_summary", args{"session_id": s.SessionID}).Output)
	if !strings.Contains(sum, `"changed_paths":["add.go","made/new.txt"]`) || strings.Contains(sum, "TEXTMARK") {
		t.Errorf("the Session knows of %s", sum)
	}
}
