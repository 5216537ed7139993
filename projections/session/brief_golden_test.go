package session

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

// treeNo is the identity of some state of the files.
func treeNo(n int) string { return fmt.Sprintf("%064x", n) }

// goTest is a run of Go tests as it is recorded: with what it was given, the files it was made on,
// and each failure by name and place.
func (h *history) goTest(tree int, packages []string, failed ...event.FailedCase) {
	id := h.callID()
	h.commitAs(h.inv(), event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: "go_test", Transport: "mcp",
		Input: event.Input{Executable: "go", Packages: packages, TimeoutSecs: 300}})
	passed, code, target := len(failed) == 0, 0, fmt.Sprintf("target:%.24s", strings.Repeat(fmt.Sprintf("%x", strings.Join(packages, " ")+"."), 24))
	f := event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "go_test", Transport: "mcp", Status: event.StatusSucceeded, DurationMS: 900,
		Effect: event.Effect{CommandStarted: true, CommandCompleted: true, State: event.Completed},
		Validation: &event.Validation{Kind: "go_test", TargetID: target, Scope: "validation_scope:v1:" + target, Parser: "go-json", ParserVer: 1,
			Passed: &passed, TestsRun: 12, TestsPassed: 12 - len(failed), TestsFailed: len(failed), Failures: failed,
			Bound: &event.Binding{Commit: strings.Repeat("0123456789", 4), Tree: treeNo(tree), Output: treeNo(99)}}, Expectation: event.ExpectationNone}
	if !passed {
		code, f.Status, f.FailureKind, f.Expectation = 1, event.StatusFailed, "test_failure", event.UnexpectedFailure
	}
	f.ExitCode = &code
	h.commitAs(h.inv(), f)
}

// seen is the working tree with so many changed files, in a state of them.
func (s *Snapshot) seen(branch string, changed, tree int) {
	w := *s.Workspace
	w.Status, w.Branch, w.ChangedFiles, w.Tree = workspaceDirty, branch, changed, treeNo(tree)
	s.Workspace = &w
}

// typical are Sessions as they come, each with what was seen beside it.
var typical = []struct {
	name string
	make func(*Snapshot) *history
}{
	{"01_just_started", func(*Snapshot) *history { return began("Add a --json flag to the list command") }},
	{"02_read_only_so_far", func(*Snapshot) *history {
		h := began("Find out why exports are slow on large projects")
		h.read("export/export.go", "export/export_test.go")
		h.read("store/query.go")
		h.post(event.MessageProgress, "Looked at the exporter: it reads every row twice, once for the count.")
		return h
	}},
	{"03_edited_not_validated", func(s *Snapshot) *history {
		h := began("Rename Config.Path to Config.Dir")
		h.read("config.go", "main.go")
		h.edit("config.go", "main.go", "README.md")
		s.seen("rename", 3, 2)
		return h
	}},
	{"04_fixed_and_proven", func(s *Snapshot) *history {
		h := began("Fix the failing test of package add")
		h.goTest(1, []string{"./add"}, event.FailedCase{Kind: event.FailureTest, Name: "demo/add.TestOverflow", File: "add_test.go", Line: 18},
			event.FailedCase{Kind: event.FailureTest, Name: "demo/add.TestUnderflow", File: "add_test.go", Line: 31})
		h.read("add/add.go")
		h.edit("add/add.go")
		h.goTest(2, []string{"./add"})
		h.post(event.MessageDecision, "Overflow saturates instead of wrapping, as the callers expect.")
		s.seen("main", 1, 2)
		return h
	}},
	{"05_fails_again_and_again", func(s *Snapshot) *history {
		h := began("Make the parser accept trailing commas")
		for n := range 3 {
			h.edit("parse/parse.go")
			h.goTest(n, []string{"./parse"}, event.FailedCase{Kind: event.FailureTest, Name: "demo/parse.TestTrailingComma", File: "parse_test.go", Line: 57})
		}
		h.post(event.MessageProgress, "Third try: the lexer drops the comma before the parser sees it.")
		s.seen("main", 1, 2)
		return h
	}},
	{"06_job_running", func(*Snapshot) *history {
		h := began("Run the long benchmark and write down the figures")
		h.job(1, testServer)
		return h
	}},
	{"07_outcome_unknown", func(s *Snapshot) *history {
		h := began("Fix the failing test of package add")
		h.goTest(1, nil, event.FailedCase{Kind: event.FailureTest, Name: "demo/add.TestOverflow", File: "add_test.go", Line: 18})
		h.edit("add/add.go")
		h.goTest(2, nil)
		id := h.callID()
		h.commitAs(h.inv(), event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp",
			Execution: execution(77), Input: event.Input{Executable: "make", ArgCount: 1, TimeoutSecs: 60}})
		h.commit(event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp", Status: event.StatusFailed,
			ErrorKind: "outcome_unknown", FailureKind: "outcome_unknown", Execution: execution(77).ID, Recovered: true, Expectation: "none",
			Effect: event.Effect{CommandStarted: true, State: event.OutcomeUnknown}})
		h.commit(event.InstructionAccepted{Text: "Go on and document it", Continuation: "resumed", PreviousMode: event.ModeNormal,
			Mode: event.ModeNormal, Transport: "mcp"})
		h.edit("README.md", "docs/add.md")
		h.job(3, "wc_inst_of_another_life")
		s.seen("main", 3, 3)
		return h
	}},
	{"08_delegated", func(*Snapshot) *history {
		h := began("Coordinate: move the storage layer to SQLite")
		first := h.post(event.MessageDecision, "Use the cgo driver.")
		h.post(event.MessageDecision, "Use the pure Go driver: the release builds have no C compiler.", func(e *event.MessagePosted) { e.Supersedes = first })
		todo := h.post(event.MessageTodo, "Move store/user.go", func(e *event.MessagePosted) { e.RequiresAck = true })
		h.post(event.MessageTodo, "Move store/order.go", func(e *event.MessagePosted) { e.Priority = event.PriorityHigh })
		h.commit(event.MessageCompleted{Todo: todo, Answer: messageNo(90), Text: "Moved; its tests pass.", Priority: event.PriorityNormal,
			Completion: "wc_done_00000000000000000000000000000001", Key: strings.Repeat("a", 64), Payload: strings.Repeat("b", 64)})
		h.post(event.MessageQuestion, "Should old databases be converted at the first start?")
		h.post(event.MessageProgress, "Users are moved, orders are next.")
		return h
	}},
	{"09_open_risk", func(*Snapshot) *history {
		h := began("Prepare the release")
		h.post(event.MessageRisk, "The migration of version 3 was never run on a copy of real data.")
		h.post(event.MessageGuidance, "Do not tag before the owner has answered.")
		return h
	}},
	{"10_closed", func(s *Snapshot) *history {
		h := began("Update the dependencies")
		h.edit("go.mod", "go.sum")
		h.goTest(2, nil)
		h.commit(event.SessionClosed{})
		s.seen("main", 2, 2)
		return h
	}},
	{"11_merge_conflict", func(s *Snapshot) *history {
		h := began("Merge the release branch")
		h.edit("CHANGELOG.md")
		s.Workspace = &Workspace{Status: workspaceBlocked, Branch: "main", Head: s.Workspace.Head, Conflicts: 2, ChangedFiles: 9}
		return h
	}},
	{"12_long_and_reported_on", func(s *Snapshot) *history {
		h := began("Go through all packages and add missing doc comments")
		for n := range MaxTail/2 + 10 {
			h.edit(fmt.Sprintf("pkg/%03d/doc.go", n%300))
		}
		h.post(event.MessageProgress, "Everything up to package 290 has its comments.")
		h.goTest(5, nil)
		s.seen("docs", 300, 5)
		s.External = &ExternalReports{Total: 6, Unknown: 2}
		for n, status := range []string{"failed", "unknown", "succeeded", "unknown", "succeeded"} {
			s.External.Newest = append(s.External.Newest, ExternalReport{AdapterID: strings.Repeat("a", 64), EventID: fmt.Sprintf("%064x", 9-n),
				Tool: "ci.lint", Status: status, ReceivedAt: fmt.Sprintf("2026-03-01T13:%02d:00.000Z", 30-n)})
		}
		return h
	}},
}

// Twelve Sessions as they come. The program shows the same briefs to people (cmd/webcodex).
//
// Covers: HND-08, HND-42, HND-47, HND-48
func TestGoldenBriefs(t *testing.T) {
	for _, c := range typical {
		s := all()
		s.External = &ExternalReports{}
		v := c.make(&s).view()
		golden(t, filepath.Join("brief", c.name+".json"), briefOf(v, s))
	}
}
