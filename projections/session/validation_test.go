package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

const (
	targetA = "target:aaaaaaaaaaaaaaaaaaaaaaaa"
	targetB = "target:bbbbbbbbbbbbbbbbbbbbbbbb"
)

// validates is one recorded go_test of targetA that passed with 5 of 5; change edits it.
func (h *history) validates(change func(*event.ToolCallFinished)) {
	h.call("go_test", func(f *event.ToolCallFinished) {
		f.Validation = &event.Validation{Kind: "go_test", TargetID: targetA, Scope: "validation_scope:v1:" + strings.Repeat("a", 64), Parser: "go-json",
			ParserVer: 1, Passed: ptr(true), TestsRun: 5, TestsPassed: 5}
		f.ExitCode, f.Effect = ptr(0), event.Effect{CommandStarted: true, CommandCompleted: true, State: event.Completed}
		if change != nil {
			change(f)
		}
	})
}

func failing(names ...string) func(*event.ToolCallFinished) {
	return func(f *event.ToolCallFinished) {
		f.Validation.Passed, f.Validation.TestsPassed, f.Validation.TestsFailed = ptr(false), 4, 1
		f.Status, f.ExitCode, f.FailureKind, f.Expectation = event.StatusFailed, ptr(1), "test_failure", event.UnexpectedFailure
		for _, n := range names {
			f.Validation.Failures = append(f.Validation.Failures, event.FailedCase{Kind: event.FailureTest, Name: n, File: "a_test.go", Line: 7})
		}
	}
}

func summary(h *history) ValidationSummary { return NewValidationSummary(h.view(), all(), nil) }

// Covers: VAL-01, VAL-02, EXE-27, EXE-28
func TestThreeFactsStayApart(t *testing.T) {
	pass := func(*event.ToolCallFinished) {}
	fail := failing()
	unproven := func(f *event.ToolCallFinished) { f.Validation.Passed, f.Effect.State = nil, event.TimedOut }
	for name, c := range map[string]struct {
		real        func(*event.ToolCallFinished)
		expectation string
		outcome     string
		met         *bool
		passed      bool
		resolves    bool // an earlier failure of the same identity
		actionable  bool // a new failure to act on
	}{
		"pass, success":             {pass, event.ExpectationNone, "passed", ptr(true), true, true, false},
		"pass, failure expected":    {pass, event.UnexpectedSuccess, "passed", ptr(false), true, true, false},
		"fail, success":             {fail, event.UnexpectedFailure, "failed", ptr(false), false, false, true},
		"fail, as expected":         {fail, event.ExpectationMatched, "failed", ptr(true), false, false, false},
		"fail, of an older program": {fail, event.ExpectationNone, "failed", nil, false, false, true},
		"timeout, failure expected": {unproven, event.ExpectationMismatch, "unproven", ptr(false), false, false, false},
		"timeout, success":          {unproven, event.UnexpectedFailure, "unproven", ptr(false), false, false, false},
	} {
		last := func(f *event.ToolCallFinished) { c.real(f); f.Expectation = c.expectation }
		h := began(name)
		h.validates(last)
		alone := summary(h)
		r := alone.Latest
		if r.Outcome != c.outcome || !reflect.DeepEqual(r.Met, c.met) || r.Passed != c.passed || r.Expectation != c.expectation {
			t.Errorf("%s: %+v", name, r)
		}
		if got := alone.Unresolved.Total > 0; got != c.actionable {
			t.Errorf("%s: unresolved %+v", name, alone.Unresolved)
		}
		h = began(name)
		h.validates(fail)
		h.validates(last)
		if got := summary(h); (got.Unresolved.Total == 0) != c.resolves || (got.Resolved.Total == 1) != c.resolves {
			t.Errorf("%s after a failure: %+v", name, got)
		}
		// What a run was for makes it no less a failure.
		h = began(name)
		id := h.callID()
		h.commit(event.ToolCallStarted{Call: id, Tool: "run_process", Input: event.Input{Purpose: "diagnostic"}},
			event.ToolCallFinished{Call: id, Tool: "run_process", Status: event.StatusFailed, Expectation: event.UnexpectedFailure})
		if x := NewFeedback(h.view(), all(), 9).Attempt.Expected; x.UnexpectedFailures != 1 {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

// Covers: VAL-15, VAL-16, VAL-17, VAL-18
func TestGapsAndZeroTests(t *testing.T) {
	gap := func(f *event.ToolCallFinished) {
		f.Validation.Passed, f.Status, f.FailureKind, f.Expectation = nil, event.StatusFailed, event.GapTooFewTests, event.UnexpectedFailure
	}
	zero := func(f *event.ToolCallFinished) {
		f.Validation.TestsRun, f.Validation.TestsPassed, f.Validation.ZeroTests = 0, 0, true
	}
	h := began("gaps")
	h.validates(gap)
	s := summary(h)
	if s.Gaps != 1 || s.Latest.Outcome != event.GapTooFewTests || s.Unresolved.Total != 0 || s.Status != "unavailable" {
		t.Errorf("a gap: %+v", s)
	}
	if sum := NewSummary(h.view(), nil); sum.Counts.Failed != 1 || sum.Events[len(sum.Events)-1].FailureKind != event.GapTooFewTests {
		t.Errorf("its call left history: %+v", sum.Counts)
	}
	h.validates(nil) // fewer tests than were asked for before, and nothing was asked for now
	if s := summary(h); s.Status != "passed" || s.Gaps != 1 || s.Latest.Outcome != "passed" {
		t.Errorf("a later pass: %+v", s)
	}
	h = began("gap after a failure")
	h.validates(failing("p.TestA"))
	h.validates(gap)
	h.validates(zero)
	if s := summary(h); s.Unresolved.Total != 1 || s.Status != "failed" || s.Latest.Outcome != "zero_tests" {
		t.Errorf("neither a gap nor zero tests resolve: %+v", s)
	}
	h.validates(nil)
	if s := summary(h); s.Unresolved.Total != 0 || s.Resolved.Total != 1 || s.Resolved.Items[0].Name != "p.TestA" || s.Resolved.Items[0].ResolvedBy != s.Latest.EventID {
		t.Errorf("a pass does: %+v", s.Resolved)
	}
	h = began("zero tests alone")
	h.validates(zero)
	if s := summary(h); s.Latest.Outcome != "zero_tests" || s.Latest.Passed || s.Unresolved.Total != 0 {
		t.Errorf("%+v", s)
	}
}

// A failure leaves with a pass of exactly its target; what was asked for beside it does not matter.
//
// Covers: VAL-12, VAL-24
func TestFailuresAreResolvedByIdentity(t *testing.T) {
	h := began("identity")
	h.validates(failing("p.TestA", "p.TestB"))
	h.validates(func(f *event.ToolCallFinished) { failing("q.TestC")(f); f.Validation.TargetID = targetB })
	s := summary(h)
	if s.Unresolved.Total != 3 || s.Unresolved.Items[0].Name != "q.TestC" || s.Unresolved.Items[1].Kind != event.FailureTest || s.Unresolved.Items[1].File != "a_test.go" {
		t.Fatalf("%+v", s.Unresolved)
	}
	h.validates(func(f *event.ToolCallFinished) { f.Validation.Scope = "validation_scope:v1:another purpose" })
	if s := summary(h); s.Unresolved.Total != 1 || s.Unresolved.Items[0].TargetID != targetB || s.Status != "failed" {
		t.Fatalf("%+v", s.Unresolved)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("p.Test%d%s", i, strings.Repeat("x", 400))
	}
	h.validates(failing(many...))
	s = summary(h)
	if s.Unresolved.Total != 21 || s.Unresolved.Returned != 20 || !s.Unresolved.Truncated || len([]rune(s.Unresolved.Items[0].Name)) > 240 {
		t.Fatalf("%d of %d, first %d characters", s.Unresolved.Returned, s.Unresolved.Total, len(s.Unresolved.Items[0].Name))
	}
	for _, f := range s.Unresolved.Items {
		if !slices.Contains([]string{"test", "diagnostic", "unknown"}, f.Kind) {
			t.Errorf("kind %q", f.Kind)
		}
	}
}

// Each reason why there is no delta has its fixture, and counts are signed where there is one.
//
// Covers: VAL-19, VAL-20, VAL-21, VAL-22
func TestDeltas(t *testing.T) {
	set := func(change func(*event.Validation)) func(*event.ToolCallFinished) {
		return func(f *event.ToolCallFinished) { change(f.Validation) }
	}
	other := func(scope string) func(*event.Validation) {
		return func(v *event.Validation) { v.Scope, v.TargetID = "validation_scope:v1:"+scope, "target:"+scope }
	}
	none := set(func(*event.Validation) {})
	for code, runs := range map[string][2]func(*event.ToolCallFinished){
		codeNoPrevious:      {nil, none},
		codeScopeChanged:    {none, set(other("package"))},
		codePreviousPartial: {set(func(v *event.Validation) { v.Passed = nil }), none},
		codeCurrentPartial:  {none, set(func(v *event.Validation) { v.Passed = nil })},
		codeParserChanged:   {none, set(func(v *event.Validation) { v.ParserVer = 2 })},
		codeNoParser:        {none, set(func(v *event.Validation) { v.Parser = "" })},
		codeNoTestIdentity:  {set(func(v *event.Validation) { v.Parser = "none" }), set(func(v *event.Validation) { v.Parser = "none" })},
		codeNoScope:         {none, set(func(v *event.Validation) { v.Scope = "" })},
	} {
		h := began(code)
		for _, r := range runs {
			if r != nil {
				h.validates(r)
			}
		}
		if d := summary(h).Delta; d.Status != "unavailable" || d.ReasonCode != code || d.Passed != nil {
			t.Errorf("%s: %+v", code, d)
		}
	}
	for name, change := range map[string]func(*event.ToolCallFinished){
		"kind":   set(func(v *event.Validation) { v.Kind = "cargo_test" }),
		"tool":   func(f *event.ToolCallFinished) { f.Tool = "cargo_test" },
		"target": set(func(v *event.Validation) { v.TargetID = targetB }),
		"scope":  set(func(v *event.Validation) { v.Scope += "0" }),
	} {
		h := began(name)
		h.validates(nil)
		h.validates(change)
		if d := summary(h).Delta; d.ReasonCode != codeScopeChanged {
			t.Errorf("another %s: %+v", name, d)
		}
	}
	h := began("available")
	h.validates(nil)
	h.validates(set(other("in between")))
	h.validates(func(f *event.ToolCallFinished) {
		failing()(f)
		f.Validation.TestsRun, f.Validation.TestsPassed, f.Validation.TestsSkipped = 4, 3, 2
	})
	s := summary(h)
	d := s.Delta
	if d.Status != "available" || *d.Passed != -2 || *d.Failed != 1 || *d.Ignored != 2 || *d.Total != -1 {
		t.Fatalf("%+v", d)
	}
	if c := d.Comparison; c.Scope != s.Events.Items[0].Scope || c.Parser.Kind != "go-json" || c.Latest != s.Latest.EventID || c.Previous == c.Latest || c.Previous == "" {
		t.Fatalf("%+v", c)
	}
	skip := all()
	skip.IncludeValidation = false
	f := NewFeedback(h.view(), skip, 9)
	if f.Delta.ReasonCode != codeValidationSkipped || f.Attempt.Validation.Status != "not_requested" || f.Attempt.Failures.Total != 0 {
		t.Fatalf("%+v", f)
	}
}

// The end of a Job is judged by what its start said, resolves an older failure although its start
// has left the tail, tells the time at which it ended, and is no activity of the Session.
//
// Covers: VAL-03, VAL-10, VAL-12, EXE-35
func TestEndsOfJobs(t *testing.T) {
	h := began("jobs")
	id, x := h.callID(), execution(1)
	scope := &event.ValidationScope{Kind: "go_test", TargetID: targetA, Scope: "validation_scope:v1:s", Parser: "go-json", ParserVer: 1}
	h.commit(event.ToolCallStarted{Call: id, Tool: "go_test", Execution: x, Validates: scope, Input: event.Input{Expectation: "failure"}})
	h.commit(event.ToolCallFinished{Call: id, Tool: "go_test", Status: event.StatusSucceeded, Execution: x.ID, Promoted: true,
		Expectation: event.ExpectationNone, Effect: event.Effect{CommandStarted: true, State: event.Started}})
	if s := summary(h); s.Status != "not_run" || s.Events.Total != 0 || s.Jobs.Active != 1 {
		t.Fatalf("an accepted Job is no evidence: %+v", s)
	}
	if j := h.view().Core.Jobs[x.ID]; j.Validates == nil || *j.Validates != *scope || !h.view().Tail.Retains(id) {
		t.Fatalf("%+v", j)
	}
	for range MaxTail / 2 {
		h.read("a.go")
	}
	h.validates(failing("p.TestA"))
	h.edit("a.go")
	v := h.view()
	if v.Tail.Retains(id) || v.Core.Jobs[x.ID].Validates == nil {
		t.Fatal("the start is retained, or the Job lost what it covers")
	}
	before := v.Core.UpdatedAt
	ended := h.at.Add(time.Second)
	h.at = h.at.Add(time.Hour) // nobody looked for an hour
	h.commit(event.ExecutionFinished{Execution: x.ID, Call: id, Tool: "go_test", ExitCode: ptr(0), Expectation: event.ExpectationNone,
		Effect:     event.Effect{CommandStarted: true, CommandCompleted: true, State: event.Completed},
		Validation: &event.Validation{Kind: "go_test", TargetID: targetA, Scope: scope.Scope, Parser: "go-json", ParserVer: 1, Passed: ptr(true), TestsRun: 5, TestsPassed: 5},
		FinishedAt: event.FormatTime(ended)})
	v, s := h.view(), summary(h)
	if s.Unresolved.Total != 0 || s.Resolved.Total != 1 || s.Latest.At != event.FormatTime(ended) || s.Status != "passed" {
		t.Fatalf("%+v", s)
	}
	if !v.Core.UpdatedAt.Equal(before) || len(v.Core.Jobs) != 0 {
		t.Fatalf("updated %v, was %v", v.Core.UpdatedAt, before)
	}
	last := v.Tail.Items()[v.Tail.Len()-1]
	if last.Kind != KindValidationJobDone || !last.At.Equal(ended.Truncate(time.Millisecond)) {
		t.Fatalf("%+v", last)
	}
	h.commit(event.ExecutionFinished{Execution: execution(2).ID, Tool: "go_test", Validation: &event.Validation{}, FinishedAt: "tomorrow"})
	h.commit(event.ExecutionFinished{Execution: execution(3).ID, Tool: "go_test", Validation: &event.Validation{}, FinishedAt: "2999-01-01T00:00:00.000Z"})
	for _, it := range h.view().Tail.Items()[v.Tail.Len()-1:] {
		if it.At.After(h.at) {
			t.Errorf("an event of %v", it.At)
		}
	}
}

// Evidence is of the files as they are now, of others, or nobody can tell, and a stale pass is
// no proof of what changed since.
func TestStaleEvidence(t *testing.T) {
	bound := func(b *event.Binding) func(*event.ToolCallFinished) {
		return func(f *event.ToolCallFinished) { f.Validation.Bound = b }
	}
	for name, c := range map[string]struct {
		bound *event.Binding
		tree  string
		stale *bool
		state State
	}{
		"the same files":                 {&event.Binding{Commit: "c1", Tree: "aa"}, "aa", ptr(false), StateReady},
		"other files":                    {&event.Binding{Commit: "c1", Tree: "aa"}, "bb", ptr(true), StateNeedsProof},
		"moved under it":                 {&event.Binding{Tree: "aa", Moved: true}, "aa", ptr(true), StateNeedsProof},
		"not bound":                      {nil, "aa", nil, StateReady},
		"bound to nothing":               {&event.Binding{Reason: "not_a_repository"}, "aa", nil, StateReady},
		"nobody can tell what is there":  {&event.Binding{Tree: "aa"}, "", nil, StateReady},
		"a hash that is none is dropped": {&event.Binding{Tree: "/secret/path"}, "/secret/path", nil, StateReady},
	} {
		h := began(name)
		h.edit("a.go")
		h.validates(bound(c.bound))
		s := all()
		s.Workspace.Tree = c.tree
		sum := NewValidationSummary(h.view(), s, nil)
		if !reflect.DeepEqual(sum.Stale, c.stale) || !reflect.DeepEqual(sum.Latest.Stale, c.stale) || !reflect.DeepEqual(sum.Events.Items[0].Stale, c.stale) {
			t.Errorf("%s: %v", name, sum.Stale)
		}
		b := briefOf(h.view(), s)
		if b.Progress.State != c.state || !reflect.DeepEqual(b.Validation.Latest.Stale, c.stale) || b.Validation.Status != "passed" {
			t.Errorf("%s: %s, %+v", name, b.Progress.State, b.Validation.Latest)
		}
		if f := NewFeedback(h.view(), s, 9); !reflect.DeepEqual(f.Attempt.Validation.Latest.Stale, c.stale) {
			t.Errorf("%s: %+v", name, f.Attempt.Validation)
		}
		s.IncludeWorkspace = false
		if sum := NewValidationSummary(h.view(), s, nil); sum.Stale != nil && !(c.bound != nil && c.bound.Moved) {
			t.Errorf("%s, not looked at: %v", name, *sum.Stale)
		}
	}
	// An edit that was undone leaves the files that were validated.
	h := began("undone")
	h.edit("a.go")
	h.validates(bound(&event.Binding{Tree: "aa"}))
	h.edit("a.go")
	h.edit("a.go")
	s := all()
	if b := briefOf(h.view(), s); b.Progress.State != StateNeedsProof {
		t.Errorf("not known: %s", b.Progress.State)
	}
	if s.Workspace.Tree = "aa"; briefOf(h.view(), s).Progress.State != StateReady {
		t.Error("the files are those that passed")
	}
}

// Covers: VAL-26
func TestValidationSummaryLimits(t *testing.T) {
	h := began("limits")
	for i := range 130 {
		h.validates(func(f *event.ToolCallFinished) {
			failing("p.Test")(f)
			f.Validation.TargetID = fmt.Sprintf("target:%024x", i)
		})
	}
	v := h.view()
	for _, c := range []struct {
		limit *int
		want  int
	}{{nil, 20}, {ptr(0), 1}, {ptr(1), 1}, {ptr(100), 100}, {ptr(9999), 100}} {
		s := NewValidationSummary(v, all(), c.limit)
		full := size(s)+size(s.Events.Items[0]) > MaxAnswerBytes
		if s.Limit != c.want || s.Events.Total != 130 || s.Events.Returned != len(s.Events.Items) || s.Events.Returned > c.want ||
			s.Events.Returned < c.want && !full || !s.Events.Truncated || size(s) > MaxAnswerBytes {
			t.Errorf("limit %v: %d of %d, %d bytes", c.limit, s.Events.Returned, s.Events.Total, size(s))
		}
		if s.Unresolved.Total != 130 || s.Unresolved.Returned != 20 || s.Events.Items[0].EventID != s.Latest.EventID {
			t.Errorf("limit %v: %+v", c.limit, s.Unresolved)
		}
	}
}

// The views of a Session are functions of its events: the same bytes each time and after a
// rebuild from what is stored, within their bounds whatever the events hold.
//
// Covers: CON-01, CON-04, CON-22
func TestEvidenceViewsAreFunctions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, 40)
		if rapid.Bool().Draw(t, "validates") {
			h.validates(func(f *event.ToolCallFinished) {
				failing(hostileText(t, 40), hostileText(t, 40))(f)
				f.Validation.Bound = &event.Binding{Tree: hostileText(t, 8), Reason: hostileText(t, 40)}
				f.Validation.Failures[0].File = hostileText(t, 40)
			})
		}
		v, s := h.view(), all()
		s.Workspace.Tree = rapid.SampledFrom([]string{"", "aa", "bb"}).Draw(t, "tree")
		show := func(v View) string {
			b, err := json.Marshal([]any{NewValidationSummary(v, s, ptr(100)), NewFeedback(v, s, MaxFeedbackPaths)})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		first := show(v)
		if again := show(v); again != first {
			t.Fatal("another answer from the same events")
		}
		rebuilt, err := DecodeView(EncodeView(v))
		if err != nil || show(rebuilt) != first {
			t.Fatalf("another answer after a rebuild (%v)", err)
		}
		if sum := NewValidationSummary(v, s, ptr(100)); size(sum) > MaxAnswerBytes {
			t.Fatalf("%d bytes", size(sum))
		}
		if f := NewFeedback(v, s, MaxFeedbackPaths); size(f) > MaxFeedbackBytes || !f.Deterministic || f.LLMSummary {
			t.Fatalf("%d bytes", size(f))
		}
	})
}

// What an event says of the consequences of a call: what a read gave, what was looked at and
// changed, the effect, the validation, the Job. That the repository was edited outlives all of it.
//
// Covers: EVT-15, EVT-18
func TestConsequencesOnEvents(t *testing.T) {
	h := began("consequences")
	last := func() Event {
		s := NewSummary(h.view(), nil)
		return s.Events[len(s.Events)-1]
	}
	h.call("read_files", func(f *event.ToolCallFinished) {
		f.Observed, f.Context = []string{"a.go"}, &event.ContextResult{Items: 1, Failed: 2, Truncated: true}
	})
	if e := last(); e.Result == nil || *e.Result != (event.ContextResult{Items: 1, Failed: 2, Truncated: true}) || !slices.Equal(e.Observed, []string{"a.go"}) {
		t.Errorf("a read: %+v", e)
	}
	h.edit("b.go")
	if e := last(); !slices.Equal(e.Changed, []string{"b.go"}) || !e.Effect.StateChanged || !h.view().Core.Edited {
		t.Errorf("an edit: %+v", e)
	}
	h.validates(nil)
	if e := last(); e.Validation == nil || *e.Validation.Passed != true || e.Effect.State != event.Completed {
		t.Errorf("a validation: %+v", e)
	}
	x := h.job(1, testServer)
	if e := last(); e.Job != x || !e.Promoted {
		t.Errorf("a Job: %+v", e)
	}
	h.commit(event.ExecutionFinished{Execution: x, Tool: "run_process", Validation: &event.Validation{Kind: "run_process"}})
	if e := last(); e.Job != x || e.Kind != KindValidationJobDone {
		t.Errorf("its end: %+v", e)
	}
	for range MaxTail {
		h.read("c.go")
	}
	v := h.view()
	if !v.Core.Edited || slices.ContainsFunc(NewSummary(v, ptr(200)).Events, func(e Event) bool { return len(e.Changed) > 0 }) {
		t.Error("the edit is forgotten, or still in the tail")
	}
	// Every stored event of a Session has one of six kinds, or none and is passed over.
	kinds := []Kind{"", KindTaskInstruction, KindToolCallStarted, KindToolCallFinished, KindSessionClosed, KindContextUpdated, KindValidationJobDone}
	for _, name := range event.Names() {
		p, _ := event.New(name)
		e, ok := reflect.ValueOf(p).Elem().Interface().(event.SessionEvent)
		if !ok {
			continue
		}
		k := TailKind(e)
		if !slices.Contains(kinds, k) {
			t.Errorf("%s has kind %q", name, k)
		}
		before := h.view().Tail
		if after := before.Apply(event.Commit{Version: 1 << 40, Events: []event.Event{e}}); (after.Observed > before.Observed) != (k != "") {
			t.Errorf("%s moves the tail from %d to %d", name, before.Observed, after.Observed)
		}
	}
}

// What names a target and a scope is shown as it was stored, however random its digits look, and
// two runs of one target with other purposes have other scopes.
//
// Covers: VAL-03, VAL-19, VAL-22
func TestIdentitiesAreShownWhole(t *testing.T) {
	digits := func(t *rapid.T, n int, of string) string {
		return rapid.StringMatching(fmt.Sprintf(`[0-9a-f]{%d}`, n)).Draw(t, of)
	}
	rapid.Check(t, func(t *rapid.T) {
		target := TargetPrefix + digits(t, TargetHexes, "target")
		scopes := []string{ScopePrefix + digits(t, ScopeHexes, "scope"), ScopePrefix + digits(t, ScopeHexes, "other scope")}
		h := began("identities")
		for _, scope := range scopes {
			h.validates(func(f *event.ToolCallFinished) {
				failing("p.TestA")(f)
				f.Validation.TargetID, f.Validation.Scope = target, scope
			})
		}
		s := summary(h)
		if got := s.Events.Items; got[0].Scope != scopes[1] || got[1].Scope != scopes[0] || s.Latest.TargetID != target ||
			s.Unresolved.Items[0].TargetID != target || s.Delta.Comparison.Scope != scopes[1] {
			t.Fatalf("%+v", s)
		}
		if want := scopes[0] != scopes[1]; (s.Delta.ReasonCode == codeScopeChanged) != want {
			t.Fatalf("%+v", s.Delta)
		}
	})
}
