package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// Covers: CON-11, CON-12, CON-14, CON-16
func TestExplorationWorkset(t *testing.T) {
	h := began("explore")
	seen := func(tool, status string, paths ...string) {
		h.call(tool, func(f *event.ToolCallFinished) { f.Status, f.Observed = status, paths })
	}
	for _, tool := range []string{"read_files", "search_project_texts", "search_file_context", "document_symbols", "goto_definition",
		"find_references", "hover", "document_diagnostics", "call_hierarchy"} {
		seen(tool, event.StatusSucceeded, tool+".go", "again.go")
	}
	for _, tool := range []string{"read_project_overview", "list_project_files", "list_project_tracked_files", "read_git_diff",
		"read_git_diff_hunks", "read_workspace_changes", "get_git_status", "run_process", "run_shell", "go_test"} {
		seen(tool, event.StatusSucceeded, tool+".no")
	}
	seen("read_files", event.StatusFailed, "failed.no")
	f := NewFeedback(h.view(), all(), MaxFeedbackPaths)
	got := f.Attempt.Exploration
	want := []string{"call_hierarchy.go", "again.go", "document_diagnostics.go", "hover.go", "find_references.go", "goto_definition.go",
		"document_symbols.go", "search_file_context.go", "search_project_texts.go", "read_files.go"}
	if !slices.Equal(got.Paths.Items, want) || !got.Complete {
		t.Errorf("%+v", got)
	}
	for i := range 150 {
		h.read(fmt.Sprintf("f%d.go", i))
	}
	for _, c := range []struct{ limit, want int }{{FeedbackPathsMinimal, 3}, {FeedbackPathsStart, 12}, {MaxFeedbackPaths, 100}, {5000, 100}} {
		p := NewFeedback(h.view(), all(), c.limit).Attempt.Exploration.Paths
		if p.Total != 160 || p.Returned != c.want || len(p.Items) != c.want || !p.Truncated || p.Items[0] != "f149.go" {
			t.Errorf("limit %d: %d of %d, first %s", c.limit, p.Returned, p.Total, p.Items[0])
		}
	}
	h.commit(event.InstructionAccepted{Text: "another task", Continuation: "resumed"})
	h.read("new.go")
	if p := NewFeedback(h.view(), all(), 9).Attempt.Exploration.Paths; !slices.Equal(p.Items, []string{"new.go"}) {
		t.Errorf("after another instruction: %+v", p)
	}
	for range MaxTail {
		h.call("get_git_status", nil)
	}
	if f := NewFeedback(h.view(), all(), 9); f.Attempt.Exploration.Complete || f.Attempt.Range.Complete || f.Attempt.Boundary.Source != "unavailable" {
		t.Errorf("evicted: %+v", f.Attempt)
	}
}

// The first suggestion names the newest unresolved failure, in an open and in a closed Session,
// whatever else there is to do, and for commands too, whose text nobody stored.
//
// Covers: CON-07
func TestTheFirstSuggestionNamesTheFailure(t *testing.T) {
	h := began("suggest")
	h.validates(failing("pkg.TestOld"))
	h.call("run_shell", func(f *event.ToolCallFinished) {
		f.Status, f.FailureKind, f.Expectation = event.StatusFailed, "exit_status", event.UnexpectedFailure
		f.Validation = &event.Validation{Kind: "run_shell", TargetID: targetB, Scope: "validation_scope:v1:b", Parser: "none", Passed: ptr(false)}
	})
	h.job(3, testServer)
	s := all()
	s.Workspace.Status, s.Workspace.Conflicts = workspaceBlocked, 2
	f := NewFeedback(h.view(), s, 9)
	if a := f.Suggested[0]; a.Tool != "run_shell" || !strings.Contains(a.Why, targetB) || !strings.Contains(a.Why, "not stored") {
		t.Errorf("%+v", a)
	}
	h.call("run_shell", func(f *event.ToolCallFinished) {
		f.Validation = &event.Validation{Kind: "run_shell", TargetID: targetB, Scope: "validation_scope:v1:b", Parser: "none", Passed: ptr(true)}
	})
	f = NewFeedback(h.view(), s, 9)
	if a := f.Suggested[0]; a.Tool != "go_test" || !strings.Contains(a.Why, "pkg.TestOld") || len(f.Suggested) > MaxFeedbackActions || f.Attempt.Failures.Total != 1 {
		t.Errorf("%+v", a)
	}
	h.commit(event.SessionClosed{})
	if a := NewFeedback(h.view(), s, 9).Suggested[0]; !strings.Contains(a.Why, "pkg.TestOld") || a.Tool != "work_on_project" {
		t.Errorf("closed: %+v", a)
	}
	h.validates(nil)
	if a := NewFeedback(h.view(), s, 9).Suggested[0]; strings.Contains(a.Why, "unresolved failure") {
		t.Errorf("resolved: %+v", a)
	}
}

// Jobs are counted over all of them, whatever list is shown, and a Job of a dead server is never
// shown as healthy.
//
// Covers: CON-20, CON-21
func TestJobsOfAnAttempt(t *testing.T) {
	h := began("jobs")
	for i := range 29 {
		h.job(i+1, testServer)
	}
	v := h.view()
	if j := NewFeedback(v, all(), 1).Attempt.Jobs; j.Active != 29 || j.Running != 29 || j.Recovering != 0 || j.Recovery != "active" {
		t.Errorf("%+v", j)
	}
	h.job(99, "wc_inst_0000000000000000000000000000dead")
	j := NewFeedback(h.view(), all(), 1).Attempt.Jobs
	if j.Active != 30 || j.Running != 29 || j.Recovering != 1 || j.Recovery != "recovering" || j.TerminalPending != 0 {
		t.Errorf("%+v", j)
	}
	if got := keysOf(t, j); !slices.Equal(got, []string{"active_count", "recovering_count", "recovery_state", "running_count", "terminal_pending_count"}) {
		t.Errorf("%v", got)
	}
}

// A feedback judges nothing: no member of it reads as a verdict, and it is the same whatever
// the verdict of a finish is. One of a fresh Session tells that there was no attempt.
//
// Covers: CON-03, CON-08
func TestAFeedbackIsNoVerdict(t *testing.T) {
	h := began("verdict")
	h.edit("a.go")
	for _, name := range append(keysOf(t, NewFeedback(h.view(), all(), 9)), keysOf(t, NewFeedback(h.view(), all(), 9).Attempt)...) {
		if strings.Contains(name, "verdict") || strings.Contains(name, "done") || strings.Contains(name, "complete") {
			t.Errorf("member %s", name)
		}
	}
	f := NewFinish(h.view(), all(), FinishOptions{})
	if f.Verdict.Verdict != "warn" || f.Feedback == nil || size(*f.Feedback) != size(NewFeedback(h.view(), all(), MaxFeedbackPaths)) {
		t.Errorf("%+v", f.Verdict)
	}
	if fresh := FreshFeedback(); fresh.Status != "not_applicable" || fresh.ReasonCode != "fresh_session" || fresh.Attempt != nil || fresh.Suggested == nil {
		t.Errorf("%+v", fresh)
	}
}

// A validating Job is held against what was expected of it when it has ended, not when it was accepted.
//
// Covers: EXE-35, EXE-28
func TestJobsAreCountedByTheirEnds(t *testing.T) {
	h := began("jobs")
	for i, result := range []string{event.ExpectationMatched, event.UnexpectedFailure, event.ExpectationMismatch, event.UnexpectedSuccess, event.ExpectationNone} {
		x := execution(i + 1)
		id := h.callID()
		h.commit(event.ToolCallStarted{Call: id, Tool: "run_shell", Execution: x})
		h.commit(event.ToolCallFinished{Call: id, Tool: "run_shell", Status: event.StatusSucceeded, Execution: x.ID, Promoted: true, Expectation: event.ExpectationNone})
		if i == 0 {
			if got := NewFeedback(h.view(), all(), 9).Attempt.Expected; got != (Expected{}) {
				t.Errorf("accepted: %+v", got)
			}
		}
		h.commit(event.ExecutionFinished{Execution: x.ID, Call: id, Tool: "run_shell", Expectation: result, Validation: &event.Validation{}})
	}
	if got := NewFeedback(h.view(), all(), 9).Attempt.Expected; got != (Expected{1, 1, 1, 1}) {
		t.Errorf("%+v", got)
	}
}

// What waits on the board is suggested too. A start looks at the working tree beside its feedback,
// which does not say that something was left out.
//
// Covers: CON-01, CON-06
func TestSuggestionsKnowTheBoard(t *testing.T) {
	h := began("board")
	h.read("a.go")
	start := Snapshot{IncludeValidation: true}
	tools := func() (out []string) {
		for _, a := range NewFeedback(h.view(), start, FeedbackPathsStart).Suggested {
			out = append(out, a.Tool)
		}
		return out
	}
	if got := tools(); !slices.Equal(got, []string{"work_on_project"}) {
		t.Errorf("%v", got)
	}
	h.post(event.MessageTodo, "look at b.go")
	if got := tools(); !slices.Equal(got, []string{"read_session_discussion", "work_on_project"}) {
		t.Errorf("%v", got)
	}
}
