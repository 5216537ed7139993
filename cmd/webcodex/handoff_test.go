package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"webcodex/commands/board"
	view "webcodex/projections/session"
)

// A real test fails twice, a decision is taken and replaced, progress is told and a question stays
// open: over MCP the brief leads the next window back into the task, within its bytes, and its entry
// and its first action work as they stand. The person at the terminal reads the same.
//
// Covers: HND-03, HND-18, HND-42, HND-43, HND-47, HND-48
func TestAHandoffLeadsBackIntoTheTask(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOTOOLCHAIN", "local")
	t.Setenv("GOPROXY", "off")
	w := newWorld(t, "process")
	id := w.work(args{"instruction": "fix the sum"}).SessionID
	p := args{"project": w.project, "session_id": id}
	w.call("read_files", with(p, args{"items": []args{{"path": "go.mod"}}}))
	edit := args{"kind": "edit", "path": "add.go", "edits": []args{{"kind": "replace_exact", "old_text": "a + b", "new_text": "a - b"}}}
	if r := w.call("edit_project_files", with(p, args{"changes": []args{edit}})); !r.Success {
		t.Fatal(r.Text)
	}
	for range 2 {
		if out, r := w.tests("go_test", with(p, args{"packages": []string{"./..."}})); out.TestsFailed != 1 {
			t.Fatalf("%s", r.Text)
		}
	}
	post := func(kind, text string, more args) string {
		return string(must[board.PostOut](w, "post_session_message", with(args{"session_id": id, "kind": kind, "message": text}, more)).MessageID)
	}
	old := post("decision", "subtract", nil)
	stands := post("decision", "add", args{"supersedes": old})
	said := post("progress", "half of it", nil)
	question := post("question", "what about overflow?", nil)

	r := w.call("read_session_handoff", args{"session_id": id})
	var h struct {
		Brief json.RawMessage `json:"handoff_brief"`
	}
	var out view.Handoff
	if err := r.Decode(&h); err != nil || len(h.Brief) > view.MaxBriefBytes {
		t.Fatalf("%d bytes, %v", len(h.Brief), err)
	}
	if err := r.Decode(&out); err != nil {
		t.Fatal(err)
	}
	b := out.Brief
	c := b.Task.Context
	files := map[string]string{}
	for _, f := range c.Relevant.Items {
		if files[f.Path] = f.Source; !strings.HasPrefix(string(f.EventID), "evt_") {
			t.Errorf("%+v", f)
		}
	}
	if len(files) != 2 || files["add.go"] != "changed" || files["go.mod"] != "read" {
		t.Errorf("%v", files)
	}
	if l := c.Locations; l.Total != 1 || l.Items[0] != (view.Location{File: "add_test.go", Line: 7, Name: "sample.TestAdd"}) {
		t.Errorf("%+v", l)
	}
	if c.Repeated == nil || c.Repeated.Count != 2 || c.Repeated.Name != "go_test ./..." {
		t.Errorf("%+v", c.Repeated)
	}
	if len(c.Decisions.Items) != 1 || string(c.Decisions.Items[0]) != stands || string(c.Progress.Items[0]) != said || *b.Task.Decisions.Total != 2 {
		t.Errorf("%+v %+v", c.Decisions, c.Progress)
	}
	var steps []string
	for _, s := range c.Steps.Items {
		steps = append(steps, s.Step)
	}
	if !slices.Equal(steps, []string{view.StepRethink, view.StepFix, view.StepAnswer}) || c.Steps.Items[2].Source != question {
		t.Errorf("%+v", c.Steps)
	}
	if b.Checkpoints.Status != "available" || b.Checkpoints.List == nil || b.Checkpoints.Total != 0 {
		t.Errorf("%+v", b.Checkpoints)
	}

	for _, text := range []string{w.handoffText(t, string(id)), w.handoffText(t, string(id), "--at", "2099-01-01T00:00:00Z")} {
		for _, want := range []string{"failing: sample.TestAdd at add_test.go:7", "go_test ./... failed 2 times in this task", "question: what about overflow?",
			"subtract  (superseded)", "blocked: 1 failure", `work_on_project {"session_id":"` + string(id) + `"}`} {
			if !strings.Contains(text, want) {
				t.Errorf("the text has no %q:\n%s", want, text)
			}
		}
	}
	w.write(filepath.Join(w.repo, "add.go"), "package sample\n\nfunc Add(a, b int) int { return a + b }\n")
	if a := b.NextActions.Items[0]; a.Tool != "go_test" || !w.call(a.Tool, a.Arguments).Success {
		t.Errorf("%+v", a)
	}
	if r := w.call(c.Continuation.Tool, with(c.Continuation.Arguments, args{"instruction": "go on"})); r.IsError {
		t.Errorf("%s", r.Text)
	}
	b = must[view.Handoff](w, "read_session_handoff", args{"session_id": id}).Brief
	if c := b.Task.Context; b.Validation.Status != "passed" || c.Repeated != nil || c.Locations.Total != 0 || b.Task.Latest.Text != "go on" || c.Steps.Total != 1 {
		t.Errorf("after the pass: %+v", c)
	}
}

// handoffText is what the program prints of a handoff.
func (w *world) handoffText(t *testing.T, a ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := runProgram(t.Context(), append(append([]string{"handoff"}, a...), "--data", w.dir), strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	return out.String()
}

// given a Session of a real server, when state.db is deleted, and when the history before now has
// left the log and only its carried state is there, then its handoff has the same bytes.
//
// Covers: HND-07, HND-32, CON-22
func TestAHandoffOutlivesStateAndHistory(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	w, id := begin(t, c)
	for _, said := range []args{{"kind": "decision", "message": "this way"}, {"kind": "risk", "message": "it may break"}} {
		said["session_id"] = id
		if _, err := w.call(t.Context(), "post_session_message", encode(said)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.call(t.Context(), "write_project_file", encode(args{"project": c.ready.Project, "session_id": id, "path": "a.txt", "content": "a\n"})); err != nil {
		t.Fatal(err)
	}
	gone := saying(t, c, w, "gone")
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		t.Helper()
		raw, err := readHandoff(t.Context(), data, id)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	want := read()
	if !strings.Contains(want, "it may break") || !strings.Contains(want, "a.txt") {
		t.Fatalf("%s", want)
	}
	if err := os.Remove(filepath.Join(data, stateFile)); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != want {
		t.Errorf("without state.db:\n%s\n%s", got, want)
	}
	if _, err := erase(t.Context(), data, gone); err != nil { // the history of all up to here leaves
		t.Fatal(err)
	}
	if lines, err := replayLines(t.Context(), data, id); err != nil || lines[0].Version < 2 {
		t.Fatalf("nothing has left: %+v %v", lines, err)
	}
	if got := read(); got != want {
		t.Errorf("after the prune:\n%s\n%s", got, want)
	}
}
