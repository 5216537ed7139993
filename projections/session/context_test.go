package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// A Session that failed, decided and left things open shows the way back into its task: files with
// the event that names them, places of failures, the messages that stand, what is left to do with
// its source, and the one call that goes on.
//
// Covers: HND-42, HND-43
func TestTaskContext(t *testing.T) {
	h := began("the way back")
	h.read("read.go", "both.go")
	h.edit("both.go")
	one := event.FailedCase{Kind: event.FailureTest, Name: "demo.TestOne", File: "one_test.go", Line: 7}
	for range 2 {
		h.goTest(1, []string{"./demo"}, one, event.FailedCase{Kind: event.FailureTest, Name: "demo.TestNowhere"})
	}
	old := h.post(event.MessageDecision, "this way")
	stands := h.post(event.MessageDecision, "that way", func(e *event.MessagePosted) { e.Supersedes = old })
	said := h.post(event.MessageProgress, "half of it")
	late := h.post(event.MessageTodo, "some day", func(e *event.MessagePosted) { e.Priority = event.PriorityLow })
	todo := h.post(event.MessageTodo, "later")
	soon := h.post(event.MessageTodo, "soon", func(e *event.MessagePosted) { e.Priority = event.PriorityHigh })
	h.commit(event.MessageResolved{Message: h.post(event.MessageTodo, "done")})
	question := h.post(event.MessageQuestion, "which one?")
	risk := h.post(event.MessageRisk, strings.Repeat("漢", MaxStepChars+1))
	v := h.view()
	c := briefOf(v, all()).Task.Context

	ev := gather(v)
	want := []RelevantFile{{"both.go", "changed", ev.changedBy["both.go"].ID(testID)}, {"read.go", "read", ev.readBy["read.go"].ID(testID)}}
	if !slices.Equal(c.Relevant.Items, want) || c.Relevant.Total != 2 || want[0].EventID == want[1].EventID {
		t.Errorf("%+v", c.Relevant)
	}
	if l := c.Locations; l.Status != statusAvailable || l.Total != 1 || l.Items[0] != (Location{"one_test.go", 7, "demo.TestOne"}) {
		t.Errorf("%+v", l)
	}
	if r := c.Repeated; r == nil || r.Name != "go_test ./demo" || r.Count != 2 {
		t.Errorf("%+v", r)
	}
	if *c.Decisions.Total != 1 || c.Decisions.Items[0] != stands || *c.Progress.Total != 1 || c.Progress.Items[0] != said {
		t.Errorf("%+v %+v", c.Decisions, c.Progress)
	}
	if next := continuation(v.Core); c.Continuation.Tool != "work_on_project" || encoded(t, c.Continuation) != encoded(t, next) || c.Continuation.Arguments["session_id"] != testID {
		t.Errorf("%+v", c.Continuation)
	}
	failed := string(ev.failures[0].id)
	all := steps(v, ev, all())
	if all.Total != 8 || !all.Truncated || len(all.Items) != MaxBriefSteps {
		t.Errorf("%+v", all)
	}
	for i, want := range []TaskStep{{StepRethink, "go_test ./demo failed 2 times in this task", failed}, {StepFix, "demo.TestOne at one_test.go:7", failed},
		{StepFix, "demo.TestNowhere", failed}, {StepRisk, strings.Repeat("漢", MaxStepChars) + "…", string(risk)}, {StepAnswer, "which one?", string(question)}} {
		if c.Steps.Items[i] != want {
			t.Errorf("step %d: %+v", i, c.Steps.Items[i])
		}
	}
	var waits []event.MessageID
	for _, m := range openMessages(v.Board) {
		waits = append(waits, m.ID)
	}
	if !slices.Equal(waits, []event.MessageID{risk, question, soon, todo, late}) {
		t.Errorf("%v", waits)
	}
}

// Covers: HND-20, HND-31, HND-42
func TestTaskContextSaysWhatItLacks(t *testing.T) {
	h := began("what it lacks")
	h.test(false, 1) // a run that named nothing
	s := all()
	if l := briefOf(h.view(), s).Task.Context.Locations; l.Status != statusUnavailable || l.ReasonCode != codeLocations || l.Items == nil {
		t.Errorf("%+v", l)
	}
	s.NoDiscussion, s.IncludeValidation = true, false
	h.test(false, 1)
	h.post(event.MessageDecision, "x")
	h.post(event.MessageRisk, "x")
	c := briefOf(h.view(), s).Task.Context
	if c.Decisions.Total != nil || c.Progress.Total != nil || c.Decisions.Items == nil || c.Steps.Total != 0 || c.Repeated != nil {
		t.Errorf("%+v", c)
	}
	if c.Locations.Status != statusNotRequested || c.Locations.Items == nil {
		t.Errorf("%+v", c.Locations)
	}
}

// The context sheds in a fixed order, its counts stay true, and the entry and the boundary stay.
//
// Covers: HND-19, HND-33, HND-42
func TestTaskContextSheds(t *testing.T) {
	h := began("shed")
	for n := range 20 {
		h.edit(fmt.Sprintf("some/path/of/a/package/file_%02d.go", n))
	}
	for range 2 {
		h.goTest(1, []string{"./demo"}, event.FailedCase{Kind: event.FailureTest, Name: "demo.TestOne", File: "one_test.go", Line: 7})
	}
	for range 7 {
		h.post(event.MessageDecision, "decided")
		h.post(event.MessageProgress, "said")
		h.post(event.MessageQuestion, "why?")
	}
	whole := briefOf(h.view(), all()).Task.Context
	parts := func(c TaskContext) []int {
		return []int{len(c.Relevant.Items), len(c.Progress.Items), len(c.Decisions.Items), len(c.Locations.Items), len(c.Steps.Items), one(c.Repeated != nil)}
	}
	before, c := parts(whole), whole
	for c.shed(1) {
		now := parts(c)
		for i := range now {
			if now[i] < before[i] && slices.ContainsFunc(now[:i], func(n int) bool { return n > 0 }) {
				t.Fatalf("part %d shrank: %v", i, now)
			}
		}
		for _, x := range []struct{ total, was, returned, items int }{
			{c.Relevant.Total, whole.Relevant.Total, c.Relevant.Returned, now[0]}, {*c.Progress.Total, 7, c.Progress.Returned, now[1]},
			{*c.Decisions.Total, 7, c.Decisions.Returned, now[2]}, {c.Locations.Total, 1, c.Locations.Returned, now[3]}, {c.Steps.Total, 9, c.Steps.Returned, now[4]}} {
			if x.total != x.was || x.returned != x.items {
				t.Fatalf("counts lie: %+v", x)
			}
		}
		before = now
	}
	if slices.Max(before) != 0 || encoded(t, c.Continuation) != encoded(t, whole.Continuation) || c.Boundary != whole.Boundary {
		t.Errorf("left: %v %+v", before, c)
	}
}

// Every name of a run tells a person what was validated; the opaque target only stands where
// nothing else is known.
func TestNamesOfRuns(t *testing.T) {
	const target = "target:0123456789abcdef01234567"
	for want, r := range map[string]run{
		"go_test":                             {tool: "go_test", input: &event.Input{Executable: "go"}},
		"go_test ./a ./b":                     {tool: "go_test", input: &event.Input{Executable: "go", Packages: []string{"./a", "./b"}}},
		"cargo_test core in rs":               {tool: "cargo_test", input: &event.Input{Executable: "cargo", Packages: []string{"core"}, Cwd: "rs"}},
		"cargo_test " + target:                {tool: "cargo_test", input: &event.Input{Executable: "cargo", Partial: true}},
		"run_process make for test " + target: {tool: "run_process", input: &event.Input{Executable: "make", Purpose: "test"}},
		"go_test " + target + " ":             {tool: "go_test", input: &noInput}, // its start has left the tail
	} {
		r.TargetID = target
		if got := r.name(); got != strings.TrimSpace(want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Several validations that fail are each to be run again, the newest first, and leave room for the
// rest.
//
// Covers: HND-16
func TestEachFailedValidationIsRunAgain(t *testing.T) {
	h := began("fails all over")
	for _, pkg := range []string{"./a", "./b", "./c", "./d"} {
		h.goTest(1, []string{pkg}, event.FailedCase{Kind: event.FailureTest, Name: pkg + ".TestX"})
	}
	h.post(event.MessageRisk, "it may break")
	var got []string
	for _, a := range briefOf(h.view(), all()).NextActions.Items {
		got = append(got, fmt.Sprint(a.Tool, a.Arguments["packages"]))
	}
	want := []string{"go_test[./d]", "go_test[./c]", "go_test[./b]", "read_session_discussion<nil>", "work_on_project<nil>"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A Job that was asked to end is counted, and blocks nothing; beside one that runs it does not hide
// that one.
//
// Covers: HND-27, HND-28
func TestAJobThatWasAskedToEndBlocksNothing(t *testing.T) {
	h := began("stopping")
	asked := h.job(1, testServer)
	v := h.view()
	if b := briefOf(v, all()); b.Progress.State != StateBlocked || b.Attention.Jobs.TerminalPending != 0 {
		t.Errorf("while it runs: %s %+v", b.Progress.State, b.Attention.Jobs)
	}
	v.Stopping = map[event.ExecutionID]bool{asked: true}
	if b := briefOf(v, all()); b.Progress.State != StateReady || b.Attention.Jobs.TerminalPending != 1 || b.NextActions.Items[0].Tool != "observe_jobs" {
		t.Errorf("asked to end: %s %+v", b.Progress.State, b.Attention.Jobs)
	}
	h.job(2, testServer)
	stopping := v.Stopping
	v = h.view()
	v.Stopping = stopping
	if b := briefOf(v, all()); b.Progress.State != StateBlocked || b.Attention.Jobs.Running != 1 {
		t.Errorf("beside one that runs: %s %+v", b.Progress.State, b.Attention.Jobs)
	}
}
