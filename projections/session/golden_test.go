package session

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"webcodex/eventlog/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares v's JSON with a file under testdata. A changed file is a changed contract.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, ok := v.([]byte)
	if !ok {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		got = b.Bytes()
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference:\n%s", name, got)
	}
}

// worked is a Session as it comes out of real work: a bug is found, its test fails, the fix
// passes, the server dies in a command, a second window goes on.
func worked() *history {
	h := began("Fix the failing test of package add")
	h.read("add.go", "add_test.go")
	h.test(false, 1)
	h.edit("add.go")
	h.test(true, 0)
	id := h.callID()
	h.commitAs(h.inv(), event.ToolCallStarted{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp",
		Execution: execution(77), Input: event.Input{Executable: "make", ArgCount: 1, Cwd: "sub", TimeoutSecs: 60}})
	h.commit(event.ToolCallFinished{Call: id, Role: event.RoleBusiness, Tool: "run_process", Transport: "mcp", Status: event.StatusFailed,
		ErrorKind: "outcome_unknown", FailureKind: "outcome_unknown", Execution: execution(77).ID, Recovered: true, Expectation: "none",
		ErrorSummary: "the server ended before it could answer; this is what the Runner's journal proves",
		Effect:       event.Effect{CommandStarted: true, State: event.OutcomeUnknown}})
	h.commitAs(h.inv(), event.InstructionAccepted{Text: "Go on and document it", Continuation: "resumed", PreviousMode: event.ModeNormal,
		Mode: event.ModeNormal, Transport: "mcp"})
	h.edit("README.md", "docs/add.md")
	h.job(3, testServer)
	return h
}

func TestGoldenViews(t *testing.T) {
	v, s := worked().view(), all()
	s.Workspace = &Workspace{Status: "dirty", Branch: "main", Head: s.Workspace.Head, ChangedFiles: 3}
	golden(t, "summary.json", NewSummary(v, nil))
	golden(t, "handoff.json", NewHandoff(v, s, false, nil))
	golden(t, "diagnostic.json", NewHandoff(v, s, true, ptr(3)))
	golden(t, "finish.json", NewFinish(v, s, FinishOptions{IncludeDiff: true, IncludeHygiene: true}))
	golden(t, "list.json", NewPage([]Core{v.Core}, 0, nil))
}

func TestGoldenStory(t *testing.T) {
	h := worked()
	h.commit(event.ExecutionReconciled{Execution: execution(77).ID, ExitCode: ptr(0), Effect: event.Effect{State: event.Completed}})
	h.commit(event.ExecutionFinished{Execution: execution(3).ID, Tool: "run_process", DurationMS: 99, ExitCode: ptr(1), Effect: event.Effect{State: event.Completed}})
	h.commit(event.ContextUpdated{Context: event.ExecutionContext{DefaultCwd: "sub"}})
	h.commit(event.SessionClosed{})
	var b bytes.Buffer
	for step := range storyOf(slices.Values(h.commits), Point{}) {
		line, err := json.Marshal(step)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	golden(t, "story.jsonl", b.Bytes())
}
