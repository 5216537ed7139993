package session

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"webcodex/eventlog/event"
)

const (
	testID        = event.SessionID("wc_sess_00000000000000000000000000000001")
	testServer    = event.InstanceID("wc_inst_00000000000000000000000000000001")
	testAuthority = "aa00000000000000000000000000000000000000000000000000000000000000"
)

var testProject = event.ProjectRef{Client: "box", Project: "demo-00000000"}

// history builds a Session's commits the way the log would hold them.
type history struct {
	id      event.SessionID
	seq     uint64
	at      time.Time
	calls   int
	commits []Stored
}

func newHistory() *history {
	return &history{id: testID, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// began is a history with its Session created and a first instruction.
func began(instruction string) *history {
	h := newHistory()
	h.commit(created(instruction), event.InstructionAccepted{Text: instruction, Continuation: "created",
		RequestedMode: event.ModeNormal, Mode: event.ModeNormal, Transport: "mcp"})
	return h
}

func created(title string) event.SessionCreated {
	return event.SessionCreated{Nonce: "00000000000000000000000000000009", Authority: testAuthority, Principal: testAuthority,
		Project: testProject, Root: "root", Title: title, Mode: event.ModeNormal}
}

func (h *history) commit(events ...event.Event) Stored { return h.commitAs("", events...) }

func (h *history) commitAs(inv event.InvocationID, events ...event.Event) Stored {
	h.seq++
	h.at = h.at.Add(1500 * time.Millisecond)
	prev := ""
	if n := len(h.commits); n > 0 {
		prev = h.commits[n-1].Hash
	}
	s := Stored{Seq: h.seq, Hash: fmt.Sprintf("%064x", h.seq), Commit: event.Commit{Format: event.Format,
		ID: event.CommandID(fmt.Sprintf("wc_cmd_%032x", h.seq)), Aggregate: event.SessionAggregate(h.id),
		Version: uint64(len(h.commits) + 1), Prev: prev, At: h.at, Invocation: inv, Server: testServer,
		Actor: event.Actor{Authority: testAuthority, Principal: testAuthority, Credential: "owner"}, Events: events}}
	h.commits = append(h.commits, s)
	return s
}

func (h *history) callID() event.CallID {
	h.calls++
	return event.CallID(fmt.Sprintf("wc_call_%032x", h.calls))
}

func (h *history) inv() event.InvocationID {
	return event.InvocationID(fmt.Sprintf("wc_inv_%032x", h.calls))
}

// call is one recorded call in two commits; change edits its finish.
func (h *history) call(tool string, change func(*event.ToolCallFinished)) event.CallID {
	id := h.callID()
	h.commitAs(h.inv(), event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: tool, Transport: "mcp"})
	f := event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: tool, Transport: "mcp", Status: event.StatusSucceeded,
		DurationMS: 12, Expectation: "none"}
	if change != nil {
		change(&f)
	}
	h.commitAs(h.inv(), f)
	return id
}

func (h *history) edit(paths ...string) {
	h.call("edit_project_files", func(f *event.ToolCallFinished) {
		f.Changed, f.Effect = paths, event.Effect{StateChanged: true}
	})
}

func (h *history) read(paths ...string) {
	h.call("read_files", func(f *event.ToolCallFinished) { f.Observed = paths })
}

func (h *history) test(passed bool, failed int) {
	h.testOf("target:0123456789abcdef01234567", passed, failed)
}

func (h *history) testOf(target string, passed bool, failed int) {
	h.call("go_test", func(f *event.ToolCallFinished) {
		f.Validation = &event.Validation{Kind: "go_test", TargetID: target, Scope: "validation_scope:v1:" + target, Parser: "go-json",
			ParserVer: 1, Passed: &passed, TestsRun: 5, TestsPassed: 5 - failed, TestsFailed: failed}
		f.Effect = event.Effect{CommandStarted: true, CommandCompleted: true, State: event.Completed}
		code := 0
		if !passed {
			code, f.Status, f.FailureKind = 1, event.StatusFailed, "tests_failed"
		}
		f.ExitCode = &code
	})
}

func execution(n int) *event.Execution {
	return &event.Execution{ID: event.ExecutionID(fmt.Sprintf("wc_exec_%032x", n)), Client: "box", Instance: "wc_inst_runner",
		Root: "root", Digest: "digest", Op: "run_process"}
}

// job is a call whose execution lives on as a Job of the server life given.
func (h *history) job(n int, server event.InstanceID) event.ExecutionID {
	id, x := h.callID(), execution(n)
	h.commitAs(h.inv(), event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp", Execution: x})
	h.commitAs(h.inv(), event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp",
		Status: event.StatusSucceeded, Execution: x.ID, Promoted: true, Expectation: "none",
		Effect: event.Effect{CommandStarted: true, State: event.Started}})
	h.commits[len(h.commits)-1].Commit.Server = server
	return x.ID
}

func briefOf(v View, s Snapshot) Brief { return newBrief(v, gather(v), s) }

// storyOf is a replay up to p, in the way of every reader of the log: it ends at the first
// commit beyond.
func storyOf(commits iter.Seq[Stored], p Point) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for s := range commits {
			if !p.Includes(s.Commit) || !yield(NewStep(s)) {
				return
			}
		}
	}
}

// asOf is the fold of the same commits.
func asOf(commits iter.Seq[Stored], p Point) View {
	var v View
	for s := range commits {
		if !p.Includes(s.Commit) {
			break
		}
		v = v.Apply(s.Seq, s.Hash, s.Commit)
	}
	return v
}

func (h *history) view() View { return asOf(slices.Values(h.commits), Point{}) }

func (h *history) store() *Store {
	s := NewStore()
	for _, c := range h.commits {
		s.Apply(c.Seq, c.Hash, c.Commit)
	}
	return s
}

// all is what a caller sees who asked for everything of a clean tree.
func all() Snapshot {
	return Snapshot{Server: testServer, IncludeWorkspace: true, IncludeValidation: true, IncludeCheckpoints: true,
		Workspace: &Workspace{Status: "clean", Branch: "main", Head: "0123456789abcdef0123456789abcdef01234567"}}
}

// hostile texts cost most in JSON or break naive cutting.
var hostile = rapid.OneOf(
	rapid.String(),
	rapid.SampledFrom([]string{"<", "\x00", "\u2028", "𝕏", "\xff\xfe", `"`, "\u202e", "漢", "&", "é", "a/b"}),
)

func hostileText(t *rapid.T, maxRepeat int) string {
	unit, n := hostile.Draw(t, "unit"), rapid.IntRange(1, maxRepeat).Draw(t, "repeat")
	out := make([]byte, 0, n*len(unit))
	for range n {
		if len(out) > 1200 {
			break
		}
		out = append(out, unit...)
	}
	return string(out)
}

var toolNames = []string{"read_files", "search_project_texts", "edit_project_files", "run_process", "go_test", "get_git_status",
	"read_workspace_changes", "list_project_files"}

func drawPaths(t *rapid.T, most int) []string {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "plain") {
			return rapid.StringMatching(`[a-z]{1,8}/[a-z]{1,8}\.go`).Draw(t, "path")
		}
		s := hostileText(t, 500)
		return s[:min(len(s), 512)]
	}), 0, most).Draw(t, "paths")
}

func drawInstructionFiles(t *rapid.T) []event.InstructionFile {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) event.InstructionFile {
		return event.InstructionFile{Path: rapid.SampledFrom([]string{"AGENTS.md", "CLAUDE.md"}).Draw(t, "file"),
			SHA256: rapid.StringMatching(`[0-9a-f]{64}`).Draw(t, "sha256"), Bytes: rapid.Int64Range(0, 1<<20).Draw(t, "bytes")}
	}), 0, 2).Draw(t, "sources")
}

func drawValidation(t *rapid.T) *event.Validation {
	if rapid.IntRange(0, 2).Draw(t, "validates") > 0 {
		return nil
	}
	v := &event.Validation{Kind: "go_test", TargetID: "target:" + rapid.StringMatching(`[ab]`).Draw(t, "target"), Scope: "s",
		Parser: "go-json", ParserVer: 1, TestsRun: rapid.IntRange(0, 9).Draw(t, "run")}
	if rapid.Bool().Draw(t, "proven") {
		passed := rapid.Bool().Draw(t, "passed")
		v.Passed = &passed
	}
	v.ZeroTests = v.TestsRun == 0
	return v
}

var states = []event.ExecutionState{"", event.NotStarted, event.Started, event.OutcomeUnknown, event.Completed, event.Cancelled, event.TimedOut}

// drawHistory is a random Session whose events follow each other as they may in a log.
func drawHistory(t *rapid.T, most int) *history {
	h := newHistory()
	h.commit(created(hostileText(t, 240)))
	var open []event.ToolCallStarted
	var jobs []event.ToolCallFinished
	var said drawnBoard
	for range rapid.IntRange(0, most).Draw(t, "commits") {
		var events []event.Event
		for range rapid.IntRange(1, 3).Draw(t, "events") {
			switch k := rapid.IntRange(0, 13).Draw(t, "kind"); {
			case k >= 10:
				events = append(events, said.draw(t)...)
			case k == 0:
				events = append(events, event.InstructionAccepted{Text: hostileText(t, 200), Continuation: "resumed",
					PreviousMode: event.ModeNormal, Mode: event.ModeReadOnly, Guards: event.Guards{DenyWrite: true, DenyShell: true}})
			case k == 1 && rapid.Bool().Draw(t, "files"):
				events = append(events, event.InstructionsObserved{Sources: drawInstructionFiles(t)})
			case k == 1:
				events = append(events, event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: hostileText(t, 20)}})
			case k <= 4 || len(open)+len(jobs) == 0:
				s := event.ToolCallStarted{Call: h.callID(), Role: event.RoleBusiness, Transport: "mcp",
					Tool: rapid.SampledFrom(toolNames).Draw(t, "tool"), Input: event.Input{Paths: drawPaths(t, 3)}}
				if rapid.IntRange(0, 3).Draw(t, "recorder") == 0 {
					s.Role = event.RoleRecorder
				}
				if rapid.Bool().Draw(t, "executes") {
					s.Execution = execution(h.calls)
				}
				open = append(open, s)
				events = append(events, s)
			case len(open) > 0 && (k <= 8 || len(jobs) == 0):
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				s := open[i]
				open = slices.Delete(open, i, i+1)
				f := event.ToolCallFinished{Call: s.Call, Role: s.Role, Tool: s.Tool, Transport: "mcp", DurationMS: 1, Expectation: "none",
					Status:  rapid.SampledFrom([]string{event.StatusSucceeded, event.StatusFailed}).Draw(t, "status"),
					Changed: drawPaths(t, 4), Observed: drawPaths(t, 4), ErrorSummary: hostileText(t, 60),
					Effect: event.Effect{State: rapid.SampledFrom(states).Draw(t, "state")}, Validation: drawValidation(t)}
				if s.Execution != nil {
					f.Execution = s.Execution.ID
					if f.Promoted = rapid.Bool().Draw(t, "promoted"); f.Promoted {
						jobs = append(jobs, f)
					}
				}
				events = append(events, f)
			default:
				j := jobs[0]
				jobs = jobs[1:]
				events = append(events, event.ExecutionFinished{Execution: j.Execution, Call: j.Call, Tool: j.Tool, Expectation: "none",
					Effect: event.Effect{State: rapid.SampledFrom(states).Draw(t, "end")}, Validation: drawValidation(t)})
			}
		}
		inv := event.InvocationID("")
		if rapid.Bool().Draw(t, "correlated") {
			inv = h.inv()
		}
		h.commitAs(inv, events...)
	}
	return h
}

func ptr[T any](v T) *T { return &v }

func must[T any](v T, ok bool) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if !ok {
			t.Fatal("not there")
		}
		return v
	}
}
