package session

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"webcodex/eventlog/event"
)

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
		s.Workspace = &Workspace{Status: workspaceDirty, Branch: "rename", Head: s.Workspace.Head, ChangedFiles: 3}
		return h
	}},
	{"04_fixed_and_proven", func(s *Snapshot) *history {
		h := began("Fix the failing test of package add")
		h.test(false, 2)
		h.read("add.go")
		h.edit("add.go")
		h.test(true, 0)
		h.post(event.MessageDecision, "Overflow saturates instead of wrapping, as the callers expect.")
		s.Workspace = &Workspace{Status: workspaceDirty, Branch: "main", Head: s.Workspace.Head, ChangedFiles: 1}
		return h
	}},
	{"05_fails_again_and_again", func(s *Snapshot) *history {
		h := began("Make the parser accept trailing commas")
		for range 3 {
			h.edit("parse/parse.go")
			h.test(false, 1)
		}
		h.post(event.MessageProgress, "Third try: the lexer drops the comma before the parser sees it.")
		s.Workspace = &Workspace{Status: workspaceDirty, Branch: "main", Head: s.Workspace.Head, ChangedFiles: 1}
		return h
	}},
	{"06_job_running", func(*Snapshot) *history {
		h := began("Run the long benchmark and write down the figures")
		h.job(1, testServer)
		return h
	}},
	{"07_outcome_unknown", func(s *Snapshot) *history {
		h := worked()
		s.Workspace = &Workspace{Status: workspaceDirty, Branch: "main", Head: s.Workspace.Head, ChangedFiles: 3}
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
	{"10_closed", func(*Snapshot) *history {
		h := began("Update the dependencies")
		h.edit("go.mod", "go.sum")
		h.test(true, 0)
		h.commit(event.SessionClosed{})
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
		h.test(true, 0)
		s.Workspace = &Workspace{Status: workspaceDirty, Branch: "docs", Head: s.Workspace.Head, ChangedFiles: 300}
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
// Covers: HND-08, HND-47, HND-48
func TestGoldenBriefs(t *testing.T) {
	for _, c := range typical {
		s := all()
		s.External = &ExternalReports{}
		v := c.make(&s).view()
		golden(t, filepath.Join("brief", c.name+".json"), briefOf(v, s))
	}
}
