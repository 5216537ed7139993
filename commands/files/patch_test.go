package files_test

import (
	"encoding/json"
	"strings"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/files"
	"webcodex/commands/internal/calltest"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

const aPatch = "--- a/d/f.txt\n+++ b/d/f.txt\n@@ -1 +1 @@\n-TEXTMARK\n+TEXTMARK2\n"

// Of a patch the names are stored, and nothing of its text; one that is no patch is refused before
// anything is recorded.
//
// Covers: NEG-23, CON-13
func TestPatchEvidence(t *testing.T) {
	for _, spec := range []*call.Spec{&files.ApplyPatch, &files.ApplyPatchChecked, &files.ValidatePatch} {
		e := calltest.New(t, nil)
		id := work(e, nil)
		answer(e, wire.PatchOut{Changed: true, ChangedPaths: []string{"d/f.txt"}, Files: []wire.PatchedFile{}}, nil)
		a := args{"project": alpha, "session_id": id, "patch": aPatch}
		calltest.Must[json.RawMessage](e, spec, a)
		s, f := pair(e, id)
		if s.Input.PathCount != 1 || len(s.Input.Paths) != 1 || s.Input.Paths[0] != "d/f.txt" || s.Input.ChangeCount != 1 {
			t.Errorf("%s: %+v", spec.Name, s.Input)
		}
		if changed := spec.Class == call.Write; (len(f.Changed) == 1) != changed || f.Effect.StateChanged != changed {
			t.Errorf("%s: %+v", spec.Name, f)
		}
		for _, ev := range e.Events(event.SessionID(id)) {
			if b, _ := json.Marshal(ev); strings.Contains(string(b), "TEXTMARK") {
				t.Errorf("%s: the text is in the log: %s", spec.Name, b)
			}
		}
		if spec.Class != call.Write {
			continue
		}
		before := len(e.Commits(event.SessionID(id)))
		for text, reason := range map[string]string{"no patch": "empty_patch", strings.Replace(aPatch, "a/d", "a/../d", 1): "name_mismatch",
			strings.ReplaceAll(aPatch, "/d/", "/../"): "outside_project", strings.ReplaceAll(aPatch, "/d/", "/.git/"): "git_internal"} {
			a["patch"] = text
			_, err := e.Call(spec, a)
			if f := fault.As(err); f == nil || f.Reason != reason || f.Field != "patch" || f.StateChanged {
				t.Errorf("%s %q: %+v", spec.Name, text, f)
			}
		}
		if n := len(e.Commits(event.SessionID(id))) - before; n != 0 {
			t.Errorf("%s: %d commits of refusals", spec.Name, n)
		}
	}
}

// What is wrong with a patch is the result of validate_patch; what is wrong with its other
// arguments, or with the Runner, is an error.
func TestValidatePatchTellsWhatIsWrong(t *testing.T) {
	e := calltest.New(t, nil)
	conflict := fault.New(fault.EditConflict, "it does not fit").With("conflicts", []wire.PatchConflict{{File: 1, Hunk: 1, Path: "d/f.txt", Kind: wire.MatchNotFound}})
	for name, tc := range map[string]struct {
		patch          string
		runner         *fault.Error
		valid, applies bool
		reason         string
	}{
		"fits":      {aPatch, nil, true, true, ""},
		"no patch":  {"x", nil, false, false, "empty_patch"},
		"git's own": {strings.ReplaceAll(aPatch, "/d/", "/.git/"), nil, false, false, "git_internal"},
		"conflict":  {aPatch, conflict, true, false, "edit_conflict"},
		"not there": {aPatch, fault.New(fault.InvalidPath, "no such file").WithReason("not_found"), true, false, "not_found"},
	} {
		answer(e, wire.PatchOut{Files: []wire.PatchedFile{}, ChangedPaths: []string{"d/f.txt"}}, tc.runner)
		out := calltest.Must[files.ValidatePatchOut](e, &files.ValidatePatch, args{"project": alpha, "patch": tc.patch})
		if out.Valid != tc.valid || out.Applies != tc.applies || out.Reason != tc.reason || (out.Conflicts != nil) != (name == "conflict") {
			t.Errorf("%s: %+v", name, out)
		}
	}
	answer(e, nil, fault.New(fault.RunnerUnavailable, "gone"))
	if _, err := e.Call(&files.ValidatePatch, args{"project": alpha, "patch": aPatch}); fault.KindOf(err) != fault.RunnerUnavailable {
		t.Error(err)
	}
	fence := []args{{"path": "other", "sha256": strings.Repeat("0", 64)}}
	if _, err := e.Call(&files.ValidatePatch, args{"project": alpha, "patch": aPatch, "expected_files": fence}); fault.KindOf(err) != fault.InvalidArguments {
		t.Error(err)
	}
}
