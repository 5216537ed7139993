package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"webcodex/eventlog/event"
	"webcodex/internal/fault"
)

func TestParsePoint(t *testing.T) {
	if p, err := ParsePoint("7"); err != nil || p.Version != 7 {
		t.Fatalf("%+v %v", p, err)
	}
	if p, err := ParsePoint("2026-03-01T12:00:02+02:00"); err != nil || !p.Time.Equal(time.Date(2026, 3, 1, 10, 0, 2, 0, time.UTC)) {
		t.Fatalf("%+v %v", p, err)
	}
	for _, s := range []string{"", "0", "-1", "yesterday", "1.5"} {
		if _, err := ParsePoint(s); fault.KindOf(err) != fault.InvalidArguments {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// The state as of any version or time is the fold of exactly the commits up to it, and the
// story ends there too.
func TestAsOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, 20)
		n := rapid.IntRange(1, len(h.commits)).Draw(t, "version")
		want := stateOf(fold(View{}, h.commits[:n]))
		for _, p := range []Point{{Version: uint64(n)}, {Time: h.commits[n-1].Commit.At.Add(time.Second)}} {
			if diff := cmp.Diff(want, stateOf(asOf(slices.Values(h.commits), p))); diff != "" {
				t.Fatalf("as of %+v:\n%s", p, diff)
			}
			if steps := slices.Collect(storyOf(slices.Values(h.commits), p)); len(steps) != n || steps[n-1].Version != uint64(n) {
				t.Fatalf("the story up to %+v has %d steps", p, len(steps))
			}
		}
	})
}

// A clock that stepped back does not let a later commit in.
func TestAsOfWithASteppedClock(t *testing.T) {
	h := began("clock")
	limit := h.at
	h.edit("a.go")
	h.at = limit.Add(-time.Hour)
	h.edit("b.go")
	if v := asOf(slices.Values(h.commits), Point{Time: limit}); v.Core.Version != 1 {
		t.Fatalf("version %d", v.Core.Version)
	}
}

// Every event has a sentence, bounded, and one that names what changed.
func TestStorySentences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for step := range storyOf(slices.Values(drawHistory(t, 20).commits), Point{}) {
			if len(step.Events) == 0 {
				t.Fatal("a step without events")
			}
			for _, e := range step.Events {
				if e.Summary == "" || !strings.HasPrefix(e.Type, "session.") || len(e.Summary) > 16*MaxStoryChars {
					t.Fatalf("%s: %d bytes", e.Type, len(e.Summary))
				}
			}
		}
	})
	h := began("names")
	h.edit("a.go", "b.go", "c.go", "d.go", "e.go", "f.go")
	got := NewStep(h.commits[len(h.commits)-1]).Events[0].Summary
	if want := "edit_project_files succeeded in 12 ms, changed a.go, b.go, c.go, d.go and 2 more"; got != want {
		t.Fatalf("%q", got)
	}
}

// Covers: STA-23, HND-46
func TestFinishClosesNothing(t *testing.T) {
	h := began("finish")
	h.edit("a.go")
	h.test(false, 1)
	v := h.view()
	before := stateOf(v)
	f := NewFinish(v, all(), FinishOptions{})
	if f.Verdict.Verdict != "fail" || f.Lifecycle != Active || f.Blockers[0].Code != "unresolved_validation_failure" || f.Brief != nil {
		t.Fatalf("%+v", f)
	}
	if diff := cmp.Diff(before, stateOf(v)); diff != "" {
		t.Fatal(diff)
	}
	h.test(true, 0)
	if f := NewFinish(h.view(), all(), FinishOptions{SummaryOnly: true, IncludeHandoff: true}); f.Verdict.Verdict != "pass" ||
		len(f.Blockers)+len(f.Advisories) != 0 || f.Brief != nil || f.Feedback != nil || f.Workspace != nil {
		t.Fatalf("%+v", f)
	}
	h.edit("b.go")
	s := all()
	s.Workspace = &Workspace{Status: "dirty", ChangedFiles: 1}
	f = NewFinish(h.view(), s, FinishOptions{IncludeDiff: true})
	codes := []string{}
	for _, a := range f.Advisories {
		codes = append(codes, a.Code)
	}
	if f.Verdict.Verdict != "warn" || !slices.Equal(codes, []string{"changes_not_validated", "workspace_dirty"}) {
		t.Fatalf("%s %v", f.Verdict.Verdict, codes)
	}
	if f.Diff.Section != (Section{"unavailable", "diff_not_observed"}) || f.Hygiene.Section != (Section{Status: "not_requested"}) {
		t.Fatalf("%+v %+v", f.Diff, f.Hygiene)
	}
}

// Covers: CON-07, CON-08, CON-09, CON-10, CON-14, CON-19
func TestFeedback(t *testing.T) {
	if f := FreshFeedback(); f.Status != "not_applicable" || f.ReasonCode != "fresh_session" || f.Attempt != nil {
		t.Fatalf("%+v", f)
	}
	h := began("first task")
	h.read("before.go")
	h.edit("before.go")
	h.commit(event.InstructionAccepted{Text: "second task"})
	h.read("x.go", "y.go")
	h.read("y.go", "z.go")
	h.call("read_files", func(f *event.ToolCallFinished) { f.Observed, f.Status = []string{"failed.go"}, event.StatusFailed })
	h.call("list_project_files", func(f *event.ToolCallFinished) { f.Observed = []string{"listed.go"} })
	h.test(false, 1)
	f := NewFeedback(h.view(), all(), 100)
	a := f.Attempt
	if a.Boundary.Source != "task_instruction" || !a.Range.Complete || a.Instruction.Text != "second task" || a.Changes.Total != 0 {
		t.Fatalf("%+v", a)
	}
	if got := strings.Join(a.Exploration.Paths.Items, " "); got != "y.go z.go x.go" || !a.Exploration.Complete {
		t.Fatalf("explored %s", got)
	}
	if f.Suggested[0].Tool != "go_test" || !strings.Contains(f.Suggested[0].Why, "target:0123456789abcdef01234567") {
		t.Fatalf("%+v", f.Suggested)
	}
	s := all()
	s.IncludeValidation = false
	if f := NewFeedback(h.view(), s, 100); f.Attempt.Validation.ReasonCode != "validation_not_requested" || f.Delta.ReasonCode != "validation_not_requested" {
		t.Fatalf("%+v %+v", f.Attempt.Validation, f.Delta)
	}
	evicted := NewFeedback(long(2100).view(), all(), 3).Attempt
	if evicted.Boundary.Source != "unavailable" || evicted.Boundary.ReasonCode != "attempt_boundary_evicted" || evicted.Range.Complete ||
		evicted.Exploration.Complete || evicted.Exploration.Paths.Returned != 3 || evicted.Exploration.Paths.Total != MaxTail {
		t.Fatalf("%+v", evicted)
	}
}
