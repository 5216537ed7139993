package main

import (
	"path/filepath"
	"testing"

	view "webcodex/projections/session"
)

// A closeout looks at the working tree: what is not committed, and what should not be left there.
//
// Covers: STA-23
func TestCloseoutLooksAtDiffAndHygiene(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	before := must[view.Finish](w, "finish_coding_task", p)
	if before.Diff.Status != "available" || before.Diff.Files != 0 || before.Hygiene.Status != "available" || !before.Hygiene.Clean {
		t.Fatalf("%+v %+v", before.Diff, before.Hygiene)
	}
	w.write(filepath.Join(w.repo, "add.go"), "package sample\n\n<<<<<<< HEAD\nfunc Add(a, b int) int { return a + b }\n")
	w.write(filepath.Join(w.repo, "conf", ".env"), "KEY=x\n")
	after := must[view.Finish](w, "finish_coding_task", p)
	if after.Diff.Files != 2 || after.Diff.Untracked != 1 || after.Diff.Additions == 0 || after.Hygiene.Verdict != "problems" || after.Hygiene.Problems != 2 ||
		after.Hygiene.Counts["conflict_marker"] != 1 || after.Hygiene.Counts["sensitive_file"] != 1 {
		t.Errorf("%+v %+v", after.Diff.DiffSummary, after.Hygiene.HygieneSummary)
	}
	without := must[view.Finish](w, "finish_coding_task", with(p, args{"include_diff": false, "include_hygiene": false}))
	if without.Diff.Status != "not_requested" || without.Hygiene.Status != "not_requested" {
		t.Errorf("%+v %+v", without.Diff, without.Hygiene)
	}
}
