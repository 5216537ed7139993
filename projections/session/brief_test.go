package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

func keysOf(t *testing.T, v any) []string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(m))
}

// Covers: HND-03, HND-04
func TestHandoffMembers(t *testing.T) {
	h := began("members")
	h.edit("a.go")
	v := h.view()
	if got := keysOf(t, NewHandoff(v, all(), false, nil)); !slices.Equal(got, []string{"handoff_brief", "project", "session_id"}) {
		t.Fatalf("default members %v", got)
	}
	got := keysOf(t, NewHandoff(v, all(), true, nil))
	for _, want := range []string{"closeout", "continuation_feedback", "handoff_brief", "ledger", "open_work", "project", "session_id"} {
		if !slices.Contains(got, want) {
			t.Fatalf("diagnostic lacks %s: %v", want, got)
		}
	}
}

// Covers: HND-07, HND-08
func TestHandoffAndFinishShareOneBrief(t *testing.T) {
	h := began("share")
	h.edit("a.go")
	h.test(false, 1)
	v, s := h.view(), all()
	a, b := NewHandoff(v, s, false, nil).Brief, *NewFinish(v, s, FinishOptions{IncludeHandoff: true}).Brief
	rawA, _ := json.Marshal(a)
	rawB, _ := json.Marshal(b)
	if string(rawA) != string(rawB) || a.Version != 1 || !a.Deterministic || a.LLMSummary {
		t.Fatalf("briefs differ:\n%s\n%s", rawA, rawB)
	}
	want := []string{"attention", "basis", "checkpoints", "continuation", "deterministic", "external_observations", "llm_summary",
		"next_actions", "progress", "session", "task", "validation", "version", "workspace"}
	if got := keysOf(t, a); !slices.Equal(got, want) {
		t.Fatalf("members %v", got)
	}
}

// Covers: HND-05, CON-18
func TestHandoffLimitMovesOnlyTheLedger(t *testing.T) {
	h := long(150)
	v := h.view()
	for _, c := range []struct {
		limit *int
		want  int
	}{{nil, 20}, {ptr(0), 1}, {ptr(1), 1}, {ptr(100), 100}, {ptr(999), 100}} {
		out := NewHandoff(v, all(), true, c.limit)
		full := size(out)+size(out.Ledger.Events[0]) > MaxAnswerBytes
		if n := out.Ledger.EventsReturned; out.Ledger.Limit != c.want || n > c.want || n < c.want && !full {
			t.Fatalf("limit %v: %d events in %d bytes", c.limit, n, size(out))
		}
		base := NewHandoff(v, all(), true, nil)
		if out.Feedback.Attempt.Range != base.Feedback.Attempt.Range || out.Feedback.Attempt.Activity != base.Feedback.Attempt.Activity ||
			out.Feedback.Attempt.Range.First != 1 || size(out.Brief) != size(base.Brief) {
			t.Fatalf("limit %v changed the attempt or the brief", c.limit)
		}
	}
}

// Covers: HND-13, HND-14, HND-15
func TestExcerpts(t *testing.T) {
	text := func(h *history) (*Excerpt, *Excerpt) {
		b := briefOf(h.view(), all())
		return b.Task.Root, b.Task.Latest
	}
	plain := `fix C:\src\x.go, \\host\share, file:///tmp/a and /usr/lib; run "make -j4"`
	h := began(plain)
	if root, latest := text(h); root.Text != plain || root.Truncated || *latest != *root {
		t.Fatalf("%+v %+v", root, latest)
	}
	h.commit(event.InstructionAccepted{Text: strings.Repeat("漢", 601)})
	if root, latest := text(h); root.Text != plain || latest.Text != strings.Repeat("漢", 600) || !latest.Truncated {
		t.Fatalf("%+v %+v", root, latest)
	}
	h.commit(event.InstructionAccepted{Text: "push with Authorization: Bearer abcdefghijklmnop0123456789 now"})
	if _, latest := text(h); strings.Contains(latest.Text, "abcdefghij") || !latest.Truncated || !strings.HasPrefix(latest.Text, "push with") {
		t.Fatalf("%+v", latest)
	}
	h.commit(event.InstructionAccepted{Text: "was [redacted] when it came"})
	if _, latest := text(h); !latest.Truncated {
		t.Fatalf("%+v", latest)
	}
	none := newHistory()
	none.commit(created("no instruction"))
	if root, latest := text(none); root != nil || latest != nil {
		t.Fatalf("%+v %+v", root, latest)
	}
}

// Covers: HND-16
func TestListsKeepTotals(t *testing.T) {
	h := began("lists")
	for n := range 20 {
		h.edit(fmt.Sprintf("c%02d.go", n))
		h.read(fmt.Sprintf("r%02d.go", n), "twice.go")
		h.testOf(fmt.Sprintf("t%02d", n), false, 1)
	}
	b := briefOf(h.view(), all())
	if l := b.Progress.Changed; l.Total != 20 || l.Returned != 12 || !l.Truncated || l.Items[0] != "c19.go" {
		t.Fatalf("%+v", l)
	}
	if l := b.Progress.Recent; l.Total != 21 || l.Returned != 8 || l.Items[0] != "r19.go" || l.Items[1] != "twice.go" || l.Items[2] != "r18.go" {
		t.Fatalf("%+v", l)
	}
	if l := b.Validation.Failures; l.Total != 20 || l.Returned != 5 || l.Items[0].Name != "go_test t19" {
		t.Fatalf("%+v", l)
	}
	if l := b.NextActions; l.Returned > 5 || l.Total < l.Returned {
		t.Fatalf("%+v", l)
	}
}

// Covers: HND-20, HND-23, HND-24
func TestSectionsWithoutEvidenceSaySo(t *testing.T) {
	s := all()
	s.NoDiscussion = true
	raw, err := json.Marshal(briefOf(began("none").view(), s))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Task          map[string]json.RawMessage `json:"task"`
		External      json.RawMessage            `json:"external_observations"`
		Checkpoints   json.RawMessage            `json:"checkpoints"`
		Attention     map[string]json.RawMessage `json:"attention"`
		ReasonsHolder struct {
			Codes []string `json:"reason_codes"`
		} `json:"basis"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"decisions": `{"total":null,"returned":0,"truncated":false,"items":[]}`,
		"recent_progress": `{"total":null,"returned":0,"truncated":false,"items":[]}`} {
		if string(got.Task[name]) != want {
			t.Errorf("%s: %s", name, got.Task[name])
		}
	}
	if want := `{"status":"unavailable","reason_code":"external_observations_unavailable","provenance":"external_report","coverage":{"complete":false},"total":null,"returned":null,"truncated":null,"unknown_count":null,"items":null}`; string(got.External) != want {
		t.Errorf("external: %s", got.External)
	}
	if want := `{"status":"unavailable","reason_code":"checkpoints_unavailable"}`; string(got.Checkpoints) != want {
		t.Errorf("checkpoints: %s", got.Checkpoints)
	}
	for _, name := range []string{"open_guidance", "open_questions", "open_todos", "open_risks"} {
		if string(got.Attention[name]) != "null" {
			t.Errorf("%s: %s", name, got.Attention[name])
		}
	}
	if !slices.Contains(got.ReasonsHolder.Codes, "discussion_unavailable") || !slices.Contains(got.ReasonsHolder.Codes, "guidance_unavailable") {
		t.Errorf("reasons %v", got.ReasonsHolder.Codes)
	}
}

// condition brings a Session or a Snapshot into one state of progress.
type condition struct {
	name  string
	state State
	do    func(*history, *Snapshot)
}

// in the order of precedence
var conditions = []condition{
	{"closed", StateClosed, func(h *history, _ *Snapshot) { h.commit(event.SessionClosed{}) }},
	{"conflict", StateBlocked, func(_ *history, s *Snapshot) {
		s.Workspace = &Workspace{Status: "blocked", Conflicts: 1, ChangedFiles: 1}
	}},
	{"job", StateBlocked, func(h *history, _ *Snapshot) { h.job(1, testServer) }},
	{"recovering job", StateBlocked, func(h *history, _ *Snapshot) { h.job(2, "wc_inst_other") }},
	{"failure", StateBlocked, func(h *history, _ *Snapshot) { h.test(false, 1) }},
	{"risk", StateBlocked, func(h *history, _ *Snapshot) { h.post(event.MessageRisk, "the data may be lost") }},
	{"unvalidated", StateNeedsProof, func(h *history, _ *Snapshot) { h.edit("x.go") }},
	{"no workspace", StateInsufficient, func(_ *history, s *Snapshot) {
		if s.Workspace.Status == "clean" {
			s.Workspace = nil
		}
	}},
	{"unknown outcome", StateInsufficient, func(h *history, _ *Snapshot) {
		h.call("run_process", func(f *event.ToolCallFinished) { f.Execution, f.Effect.State = execution(5).ID, event.OutcomeUnknown })
	}},
}

// Covers: HND-27
func TestProgressPrecedence(t *testing.T) {
	for i, a := range conditions {
		for _, b := range conditions[i:] {
			h, s := began("progress"), all()
			b.do(h, &s) // the weaker first: the stronger one must win wherever it lies
			if a.name != b.name && a.name != "closed" {
				a.do(h, &s)
			}
			if a.name == "closed" && b.name != "closed" {
				a.do(h, &s)
			}
			if got := briefOf(h.view(), s).Progress.State; got != a.state {
				t.Errorf("%s with %s: %s, want %s", a.name, b.name, got, a.state)
			}
		}
	}
	if got := briefOf(began("ready").view(), all()).Progress.State; got != StateReady {
		t.Errorf("nothing wrong: %s", got)
	}
}

// Covers: HND-28
func TestDirtyTreeBlocksNothing(t *testing.T) {
	s := all()
	s.Workspace = &Workspace{Status: "dirty", ChangedFiles: 3}
	b := briefOf(began("dirty").view(), s)
	if b.Progress.State != StateReady || *b.Workspace.Clean || *b.Workspace.ChangedFiles != 3 {
		t.Fatalf("%s %+v", b.Progress.State, b.Workspace)
	}
}

// Covers: HND-29, HND-30, HND-31
func TestWhatWasLeftOutSaysSo(t *testing.T) {
	h := began("left out")
	h.test(true, 0)
	s := all()
	s.IncludeWorkspace, s.IncludeValidation, s.IncludeCheckpoints = false, false, false
	b := briefOf(h.view(), s)
	if b.Workspace.Status != "not_requested" || b.Workspace.Clean != nil || b.Validation.Status != "not_requested" || b.Validation.Latest != nil ||
		b.Checkpoints.Status != "not_requested" {
		t.Fatalf("%+v %+v %+v", b.Workspace, b.Validation, b.Checkpoints)
	}
	want := []string{"validation_not_requested", "workspace_not_requested"}
	if !slices.Equal(b.Basis.ReasonCodes, want) || b.Basis.Complete {
		t.Fatalf("%+v", b.Basis)
	}
	s = all()
	s.Workspace = &Workspace{Status: "unavailable", Reason: "not_a_repository"}
	s.SessionChanged, s.ExternalChanged, s.NoDiscussion = true, true, true
	b = briefOf(h.view(), s)
	if b.Workspace.Status != "unavailable" || b.Workspace.ReasonCode != "not_a_repository" || b.Workspace.Head != nil {
		t.Fatalf("%+v", b.Workspace)
	}
	want = []string{"checkpoints_unavailable", "discussion_unavailable", "external_observations_changed_during_snapshot", "guidance_unavailable",
		"session_changed_during_snapshot", "workspace_unavailable"}
	if !slices.Equal(b.Basis.ReasonCodes, want) {
		t.Fatalf("%v", b.Basis.ReasonCodes)
	}
}

// Covers: HND-37, HND-38
func TestRaceAsksForAnotherRead(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		codeSessionChanged:  func(s *Snapshot) { s.SessionChanged = true },
		codeExternalChanged: func(s *Snapshot) { s.ExternalChanged = true },
	} {
		s := all()
		s.IncludeCheckpoints = false
		if b := briefOf(began("race").view(), s); !b.Basis.Complete || b.Progress.State != StateReady {
			t.Errorf("without a race: %s, %v", b.Progress.State, b.Basis)
		}
		change(&s)
		b := briefOf(began("race").view(), s)
		first := b.NextActions.Items[0]
		if b.Progress.State != StateInsufficient || first.Tool != "read_session_handoff" || first.Arguments["session_id"] != testID {
			t.Errorf("%s: %s, then %+v", name, b.Progress.State, first)
		}
		if b.Basis.Complete || !slices.Equal(b.Basis.ReasonCodes, []string{name}) {
			t.Errorf("%s: %+v", name, b.Basis)
		}
	}
}

// Covers: VAL-02, VAL-18, VAL-21
func TestValidationStatus(t *testing.T) {
	run := func(steps ...func(*history)) BriefValidation {
		h := began("validation")
		for _, s := range steps {
			s(h)
		}
		return briefOf(h.view(), all()).Validation
	}
	pass := func(h *history) { h.test(true, 0) }
	fail := func(h *history) { h.test(false, 2) }
	change := func(mod func(*event.ToolCallFinished)) func(*history) {
		return func(h *history) {
			h.call("go_test", func(f *event.ToolCallFinished) {
				passed := true
				f.Validation = &event.Validation{Kind: "go_test", TargetID: "target:0123456789abcdef01234567", Scope: "s", Parser: "go-json", ParserVer: 1, Passed: &passed, TestsRun: 5, TestsPassed: 5}
				f.Validation.Scope = "validation_scope:v1:" + f.Validation.TargetID
				mod(f)
			})
		}
	}
	zero := change(func(f *event.ToolCallFinished) {
		f.Validation.TestsRun, f.Validation.TestsPassed, f.Validation.ZeroTests = 0, 0, true
	})
	unproven := change(func(f *event.ToolCallFinished) { f.Validation.Passed = nil })
	expected := change(func(f *event.ToolCallFinished) {
		*f.Validation.Passed, f.Expectation = false, "matched_expected_failure"
	})
	for name, c := range map[string]struct {
		got     BriefValidation
		status  string
		outcome string
	}{
		"nothing":                        {run(), "not_run", ""},
		"pass":                           {run(pass), "passed", "passed"},
		"fail":                           {run(pass, fail), "failed", "failed"},
		"resolved":                       {run(fail, pass), "passed", "passed"},
		"zero tests resolve nothing":     {run(fail, zero), "failed", "zero_tests"},
		"zero tests prove nothing":       {run(zero), "unavailable", "zero_tests"},
		"no result":                      {run(pass, unproven), "unavailable", "unproven"},
		"expected failure is neutral":    {run(pass, expected), "passed", "failed"},
		"expected failure alone":         {run(expected), "not_run", "failed"},
		"expected failure fixes nothing": {run(fail, expected), "failed", "failed"},
	} {
		outcome := ""
		if c.got.Latest != nil {
			outcome = c.got.Latest.Outcome
		}
		if c.got.Status != c.status || outcome != c.outcome {
			t.Errorf("%s: %s, latest %q", name, c.got.Status, outcome)
		}
	}
	if d := run(pass, fail).Delta; d.Status != "available" || *d.Passed != -2 || *d.Failed != 2 || *d.Ignored != 0 || *d.Total != 0 {
		t.Errorf("delta %+v", d)
	}
	if d := run(pass).Delta; d.ReasonCode != "no_previous_validation" {
		t.Errorf("delta %+v", d)
	}
}

// Covers: HND-43
func TestRepeatedFailureWithinOneTask(t *testing.T) {
	h := began("repeat")
	h.test(false, 1)
	if r := briefOf(h.view(), all()).Task.Context.Repeated; r != nil {
		t.Fatalf("once is not repeated: %+v", r)
	}
	h.test(false, 1)
	if r := briefOf(h.view(), all()).Task.Context.Repeated; r == nil || r.Count != 2 {
		t.Fatalf("%+v", r)
	}
	h.commit(event.InstructionAccepted{Text: "another task"})
	h.test(false, 1)
	if r := briefOf(h.view(), all()).Task.Context.Repeated; r != nil {
		t.Fatalf("counted over the task's boundary: %+v", r)
	}
}

func TestUnknownOutcomeIsNamed(t *testing.T) {
	h := began("unknown")
	h.call("run_process", func(f *event.ToolCallFinished) { f.Execution, f.Effect.State = execution(5).ID, event.OutcomeUnknown })
	b := briefOf(h.view(), all())
	if !slices.Contains(b.Basis.ReasonCodes, codeUnknownOutcome) || !strings.Contains(b.NextActions.Items[0].Why, string(execution(5).ID)) {
		t.Fatalf("%+v %+v", b.Basis, b.NextActions)
	}
	h.test(true, 0)
	if b := briefOf(h.view(), all()); slices.Contains(b.Basis.ReasonCodes, codeUnknownOutcome) || b.Progress.State != StateReady {
		t.Fatalf("a later proven pass overtakes it: %+v %s", b.Basis, b.Progress.State)
	}
}

// Covers: CON-20
func TestJobAttentionCountsAll(t *testing.T) {
	h := began("jobs")
	for n := range 29 {
		h.job(n, testServer)
	}
	h.job(29, "wc_inst_gone")
	if a := briefOf(h.view(), all()).Attention.Jobs; a != (JobAttention{Active: 30, Running: 29, Recovering: 1, Recovery: "recovering"}) {
		t.Fatalf("%+v", a)
	}
}
