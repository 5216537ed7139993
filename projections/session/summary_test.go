package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

// long is a Session with n reads, each of a path of its own.
func long(n int) *history {
	h := began("long")
	for i := range n {
		id := h.callID()
		h.commit(event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "read_files", Status: event.StatusSucceeded,
			Observed: []string{fmt.Sprintf("file_%05d_end.go", i)}})
	}
	return h
}

// Covers: EVT-01, EVT-04, EVT-05, EVT-06
func TestRetention(t *testing.T) {
	h := long(MaxTail + 4) // and the instruction: 2,005 events
	v := h.view()
	if v.Tail.Len() != MaxTail || v.Tail.First() != 6 || v.Core.Observed != MaxTail+5 || v.Tail.Observed != MaxTail+5 {
		t.Fatalf("%d retained from %d, %d and %d observed", v.Tail.Len(), v.Tail.First(), v.Core.Observed, v.Tail.Observed)
	}
	for i, it := range v.Tail.Items() {
		if it.Seq != uint64(6+i) {
			t.Fatalf("item %d has sequence %d", i, it.Seq)
		}
	}
	for _, out := range views(v) {
		for i := range 4 {
			if strings.Contains(out, fmt.Sprintf("file_%05d_end", i)) {
				t.Fatalf("event %d is still readable: %.200s", i, out)
			}
		}
	}
	s := NewSummary(v, nil)
	if !s.RetentionTruncated || s.FirstRetained != 6 || s.EventsObserved != MaxTail+5 || s.EventsTotal != MaxTail ||
		s.CountsCover != "retained_ledger" || s.Counts.ToolCalls != MaxTail {
		t.Fatalf("%+v", s)
	}
	if b := briefOf(v, all()); b.Task.Latest != nil || b.Task.Root == nil || b.Task.Context.Boundary.ReasonCode != codeBoundaryEvicted {
		t.Fatalf("after the instruction left the tail: %+v", b.Task)
	}
	again := h.store() // a restart folds the same log
	if c := must(again.Core(testID))(t); c.Observed != MaxTail+5 {
		t.Fatalf("%d observed after a restart", c.Observed)
	}
	if s := NewSummary(long(10).view(), nil); s.RetentionTruncated || s.FirstRetained != 1 {
		t.Fatalf("nothing was dropped, yet %+v", s)
	}
}

// A bound that falls inside a commit cuts there.
func TestRetentionCutsInsideACommit(t *testing.T) {
	h := long(MaxTail - 2) // MaxTail-1 events
	h.commit(event.ToolCallStarted{Call: "a"}, event.ToolCallFinished{Call: "a"}, event.ToolCallFinished{Call: "b"})
	v := h.view()
	if v.Tail.Len() != MaxTail || v.Tail.First() != 3 {
		t.Fatalf("%d retained from %d", v.Tail.Len(), v.Tail.First())
	}
}

// Covers: EVT-02, EVT-03, EVT-23
func TestSummaryLimits(t *testing.T) {
	v := long(MaxTail + 100).view()
	for _, c := range []struct {
		limit *int
		want  int
	}{{nil, 50}, {ptr(0), 1}, {ptr(-5), 1}, {ptr(7), 7}, {ptr(200), 200}, {ptr(201), 200}, {ptr(100000), 200}} {
		s := NewSummary(v, c.limit)
		if s.Limit != c.want || s.EventsReturned != len(s.Events) || !s.EventsTruncated || s.EventsTotal != MaxTail {
			t.Fatalf("limit %v: %d, returned %d of %d", c.limit, s.Limit, s.EventsReturned, s.EventsTotal)
		}
		// Where the bytes do not hold all that was asked for, no more is left out than must be.
		full := size(s)+size(s.Events[0]) > MaxAnswerBytes
		if n := len(s.Events); n > c.want || n < c.want && !full || size(s) > MaxAnswerBytes {
			t.Fatalf("limit %v: %d events in %d bytes", c.limit, n, size(s))
		}
		for i, e := range s.Events {
			if want := s.EventsObserved - uint64(len(s.Events)) + uint64(i) + 1; e.Sequence != want {
				t.Fatalf("event %d has sequence %d, want %d", i, e.Sequence, want)
			}
		}
	}
	if s := NewSummary(long(9).view(), nil); s.EventsReturned != 10 || s.EventsTruncated || s.EventsObserved != 10 || s.FirstRetained != 1 {
		t.Fatalf("%+v", s)
	}
}

// Covers: EVT-07
func TestCallIsOnePair(t *testing.T) {
	h := began("pair")
	id := h.call("read_files", nil)
	kinds := map[Kind]int{}
	ids := map[event.EventID]bool{}
	for _, e := range NewSummary(h.view(), nil).Events {
		ids[e.EventID] = true
		if e.Call == id {
			kinds[e.Kind]++
		}
	}
	if len(kinds) != 2 || kinds[KindToolCallStarted] != 1 || kinds[KindToolCallFinished] != 1 {
		t.Fatalf("%v", kinds)
	}
	if len(ids) != 3 || !strings.HasPrefix(string(id), "wc_call_") {
		t.Fatalf("event ids %v, call id %s", ids, id)
	}
}

// Covers: EVT-10, EVT-12
func TestRecorderPairCountsOnce(t *testing.T) {
	h := began("both pairs")
	pair := func(inv event.InvocationID, role event.Role) {
		id := h.callID()
		h.commitAs(inv, event.ToolCallStarted{Call: id, Role: role, Tool: "read_files"},
			event.ToolCallFinished{Call: id, Role: role, Tool: "read_files", Status: event.StatusSucceeded})
	}
	pair("wc_inv_1", event.RoleRecorder)
	pair("wc_inv_1", event.RoleBusiness)
	s := NewSummary(h.view(), nil)
	if s.Counts.ToolCalls != 1 || s.EventsTotal != 5 {
		t.Fatalf("%d calls of %d raw events", s.Counts.ToolCalls, s.EventsTotal)
	}
	// The correlation id is no key: a second business pair with the same one counts again.
	pair("wc_inv_1", event.RoleBusiness)
	// A recorder whose business pair is elsewhere stays.
	pair("wc_inv_2", event.RoleRecorder)
	if s := NewSummary(h.view(), nil); s.Counts.ToolCalls != 3 || s.EventsTotal != 9 {
		t.Fatalf("%d calls of %d raw events", s.Counts.ToolCalls, s.EventsTotal)
	}
}

// Covers: EVT-11
func TestCorrelationNeverReachesAnotherSession(t *testing.T) {
	s := NewStore()
	seq := uint64(0)
	ids := []event.SessionID{testID, "wc_sess_00000000000000000000000000000002"}
	for i, role := range []event.Role{event.RoleRecorder, event.RoleBusiness} {
		h := newHistory()
		h.id = ids[i]
		h.commit(created("one of two"))
		h.commitAs("wc_inv_1", event.ToolCallStarted{Call: event.CallID(role), Role: role, Tool: "read_files"},
			event.ToolCallFinished{Call: event.CallID(role), Role: role, Tool: "read_files", Status: event.StatusSucceeded})
		for _, c := range h.commits {
			seq++
			s.Apply(seq, c.Hash, c.Commit)
		}
	}
	for _, id := range ids {
		if n := NewSummary(must(s.View(id))(t), nil).Counts.ToolCalls; n != 1 {
			t.Errorf("%s counts %d", id, n)
		}
	}
}

// Covers: EVT-18
func TestKindsAreClosed(t *testing.T) {
	closed := map[Kind]bool{"": true, "task_instruction": true, "tool_call_started": true, "tool_call_finished": true,
		"session_closed": true, "session_execution_context_updated": true, "validation_job_terminal": true}
	seen := map[Kind]bool{}
	for _, name := range event.Names() {
		e, _ := event.New(name)
		se, ok := reflect.ValueOf(e).Elem().Interface().(event.SessionEvent)
		if !ok {
			continue
		}
		k := TailKind(se)
		if !closed[k] {
			t.Errorf("%s has the kind %q", name, k)
		}
		seen[k] = true
	}
	seen[TailKind(event.ExecutionFinished{Validation: &event.Validation{}})] = true
	if len(seen) != len(closed) {
		t.Errorf("kinds in use: %v", seen)
	}
	h := began("not ours") // an event of another kind in the commit counts and shows as nothing
	h.commit(event.LogCreated{Epoch: "e"}, event.ToolCallStarted{Call: "c", Tool: "read_files"})
	if v := h.view(); v.Core.Observed != 2 || v.Tail.Len() != 2 || v.Tail.Items()[1].Index != 1 {
		t.Errorf("%d observed, %d retained", v.Core.Observed, v.Tail.Len())
	}
}

// Covers: EVT-13
func TestOldCommitsStayUncorrelated(t *testing.T) {
	h := began("old shape")
	for n, body := range []string{
		`{"v":1,"id":"wc_cmd_1","agg":"session/` + string(testID) + `","ver":%d,"prev":"","at":"2026-03-02T00:00:00.000Z","actor":{"authority":"","principal":"","credential":""},"server":"","events":[{"type":"session.tool_call_started","data":{"call_id":"wc_call_a","tool":"read_files"}},{"type":"session.tool_call_finished","data":{"call_id":"wc_call_a","tool":"read_files","status":"succeeded"}}]}`,
		`{"v":1,"id":"wc_cmd_2","agg":"session/` + string(testID) + `","ver":%d,"prev":"","at":"2026-03-02T00:00:01.000Z","actor":{"authority":"","principal":"","credential":""},"server":"","events":[{"type":"session.tool_call_finished","data":{"call_id":"wc_call_b","role":"recorder","tool":"read_files","status":"succeeded"}}]}`,
	} {
		c, err := event.Decode(fmt.Appendf(nil, body, n+2))
		if err != nil {
			t.Fatal(err)
		}
		h.commits = append(h.commits, Stored{Seq: uint64(n + 2), Commit: c})
	}
	s := NewSummary(h.view(), nil)
	if s.Counts.ToolCalls != 2 {
		t.Fatalf("%d calls: events without correlation were not projected one by one", s.Counts.ToolCalls)
	}
	for _, e := range s.Events[1:] {
		if e.Invocation != "" {
			t.Fatalf("an invocation id was invented: %+v", e)
		}
	}
	if r := s.Events[1].Role + s.Events[2].Role; r != "" {
		t.Fatalf("a role was invented: %q", r)
	}
}

// Covers: EVT-16
func TestNoContextRevisionInAnyView(t *testing.T) {
	h := began("x")
	h.edit("a.go")
	h.test(false, 2)
	for _, out := range views(h.view()) {
		for _, name := range []string{"context_revision", "ack_baseline", "checkpoint_class", "model_context"} {
			if strings.Contains(out, name) {
				t.Fatalf("%q in %.300s", name, out)
			}
		}
	}
}

// Covers: EVT-19, EVT-20, EVT-21
func TestFinishedEventAsShown(t *testing.T) {
	h := began("finish")
	code := 2
	h.call("run_process", func(f *event.ToolCallFinished) {
		f.Status, f.ExitCode, f.FailureKind, f.ErrorKind = event.StatusFailed, &code, "exit_status", "command_failed"
		f.ErrorSummary = strings.Repeat("ä", 300)
		f.Expectation = "unexpected_failure"
		f.Effect = event.Effect{StateChanged: true, CommandStarted: true, CommandCompleted: true, State: event.Completed}
	})
	s := NewSummary(h.view(), nil)
	raw, err := json.Marshal(s.Events[2])
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"kind": "tool_call_finished", "status": "failed", "exit_code": 2.0, "failure_kind": "exit_status",
		"error_kind": "command_failed", "duration_ms": 12.0, "transport": "mcp", "expectation_result": "unexpected_failure",
		"error_summary": strings.Repeat("ä", 240), "tool_name": "run_process"}
	for k, w := range want {
		if got[k] != w {
			t.Errorf("%s = %v, want %v", k, got[k], w)
		}
	}
	effect := fmt.Sprint(got["effect"])
	if effect != "map[command_completed:true command_started:true execution_state:completed state_changed:true]" {
		t.Errorf("effect %s", effect)
	}
}

// Covers: EVT-22
func TestInstructionAsShown(t *testing.T) {
	h := began("first")
	guards := event.Guards{DenyWrite: true, DenyShell: true}
	h.commit(event.InstructionAccepted{Text: strings.Repeat("漢", 4000), Continuation: "resumed", RequestedMode: event.ModeReadOnly,
		PreviousMode: event.ModeNormal, Mode: event.ModeReadOnly, Guards: guards, PreviousGuards: &event.Guards{}, CapabilityChanged: true})
	e := NewSummary(h.view(), nil).Events[1]
	in := e.Instruction
	if e.Kind != KindTaskInstruction || in == nil || in.Text != strings.Repeat("漢", 4000) || in.Truncated || in.Continuation != "resumed" ||
		in.RequestedMode != event.ModeReadOnly || in.PreviousMode != event.ModeNormal || in.Mode != event.ModeReadOnly ||
		in.Guards != guards || in.PreviousGuards == nil || !in.CapabilityChanged {
		t.Fatalf("%+v", in)
	}
	if c := h.view().Core; c.Title != "first" || c.Task.Text != "first" || c.Mode != event.ModeReadOnly || c.Guards != guards {
		t.Fatalf("title and task stay, mode moves: %+v", c)
	}
}

// Covers: EVT-24
func TestCounts(t *testing.T) {
	h := began("counts")
	h.call("read_files", nil)
	h.edit("a.go")
	h.call("run_process", func(f *event.ToolCallFinished) { f.Status = event.StatusFailed })
	h.call("get_git_status", nil)
	h.call("read_git_diff", nil)
	h.commit(event.ToolCallStarted{Call: h.callID(), Tool: "run_process"}) // open: not a finished call
	want := Counts{ToolCalls: 5, Succeeded: 4, Failed: 1, ReadLike: 3, WriteLike: 1, ShellLike: 1, GitLike: 2, ChangeSummaryLike: 1}
	if got := NewSummary(h.view(), nil).Counts; got != want {
		t.Fatalf("%+v", got)
	}
}

// Covers: EVT-25
func TestOnlyProjectPathsAreShown(t *testing.T) {
	h := began("paths")
	h.read("ok/a.go", "/etc/passwd", "../up", "a/../../b", "file://x", "C:\\x", "a\nb", "ok/a.go", "", `\\host\x`)
	b := briefOf(h.view(), all())
	if got := fmt.Sprint(b.Progress.Recent.Items); got != "[ok/a.go]" {
		t.Fatalf("%s", got)
	}
}

// Covers: EVT-32
func TestExecutionContextIsWhole(t *testing.T) {
	h := began("context")
	if raw, _ := json.Marshal(NewSummary(h.view(), nil).Context); string(raw) != "{}" {
		t.Fatalf("empty context is %s", raw)
	}
	h.commit(event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "sub", DefaultShell: "bash"}})
	if raw, _ := json.Marshal(NewSummary(h.view(), nil).Context); string(raw) != `{"default_cwd":"sub","default_shell":"bash"}` {
		t.Fatalf("context is %s", raw)
	}
}

// Covers: EVT-34
func TestEditedIsSticky(t *testing.T) {
	h := began("sticky")
	h.edit("a.go")
	for range MaxTail {
		h.commit(event.ToolCallFinished{Call: h.callID(), Tool: "read_files", Status: event.StatusSucceeded})
	}
	v := h.view()
	if b := briefOf(v, all()); !v.Core.Edited || b.Progress.Changed.Total != 0 || b.Progress.State != StateNeedsProof {
		t.Fatalf("edited %v, %d paths, %s", v.Core.Edited, b.Progress.Changed.Total, b.Progress.State)
	}
}

func TestSummaryFitsByDroppingTheOldest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := began("fit")
		for n := range rapid.IntRange(1, 60).Draw(t, "calls") {
			h.edit(strings.Repeat("漢", 160) + fmt.Sprint(n))
		}
		s := NewSummary(h.view(), ptr(200))
		for i := 1; i < len(s.Events); i++ {
			if s.Events[i].Sequence != s.Events[i-1].Sequence+1 {
				t.Fatal("a hole in the events")
			}
		}
		if last := s.Events[len(s.Events)-1]; last.Sequence != s.EventsObserved {
			t.Fatalf("newest event is missing: %d of %d", last.Sequence, s.EventsObserved)
		}
	})
}
