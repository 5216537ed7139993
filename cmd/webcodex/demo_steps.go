package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"webcodex/eventlog/event"
	"webcodex/projections/session"
)

func (d *demo) startWork(ctx context.Context) (string, error) {
	var out struct {
		SessionID    string `json:"session_id"`
		Continuation string `json:"continuation"`
		Workspace    struct {
			Status string `json:"status"`
		} `json:"workspace"`
	}
	_, err := d.call(ctx, "work_on_project", map[string]any{"project": d.project,
		"instruction": "The test of Add fails. Find out why and put it right."}, &out)
	if err != nil {
		return "", err
	}
	if out.Continuation != "created" || out.Workspace.Status != "clean" {
		return "", fmt.Errorf("continuation %q, workspace %q", out.Continuation, out.Workspace.Status)
	}
	d.session = out.SessionID
	return out.SessionID, nil
}

func (d *demo) search(ctx context.Context) (string, error) {
	var out struct {
		Items []struct {
			Matches []struct {
				Path string `json:"path"`
				Line int    `json:"line"`
			} `json:"matches"`
			Backend string `json:"backend"`
		} `json:"items"`
	}
	_, err := d.call(ctx, "search_project_texts", d.on(map[string]any{"queries": []map[string]any{{"pattern": `func Add\(`}}}), &out)
	if err != nil {
		return "", err
	}
	if len(out.Items) != 1 || len(out.Items[0].Matches) != 1 || out.Items[0].Matches[0].Path != "calc.go" {
		return "", fmt.Errorf("the search did not find calc.go alone: %+v", out.Items)
	}
	m := out.Items[0].Matches[0]
	return fmt.Sprintf("%s:%d, by %s", m.Path, m.Line, out.Items[0].Backend), nil
}

// readItem is what read_files gives for one file.
type readItem struct {
	Text   string `json:"text"`
	SHA256 string `json:"sha256"`
	Lines  int    `json:"total_lines"`
}

func (d *demo) readCalc(ctx context.Context) (readItem, error) {
	var out struct {
		Items []readItem `json:"items"`
	}
	_, err := d.call(ctx, "read_files", d.on(map[string]any{"items": []map[string]any{{"path": "calc.go"}}}), &out)
	if err != nil {
		return readItem{}, err
	}
	if len(out.Items) != 1 || out.Items[0].SHA256 == "" {
		return readItem{}, errors.New("the file was not read")
	}
	return out.Items[0], nil
}

func (d *demo) read(ctx context.Context) (string, error) {
	f, err := d.readCalc(ctx)
	if err != nil {
		return "", err
	}
	if !strings.Contains(f.Text, "sum -= n") {
		return "", errors.New("calc.go does not hold the mistake")
	}
	return fmt.Sprintf("calc.go, %d lines, sha256 %s…; there it is: sum -= n", f.Lines, f.SHA256[:12]), nil
}

// testOut is what go_test tells.
type testOut struct {
	Passed   *bool `json:"passed"`
	Promoted bool  `json:"promoted_to_job"`
	Run      int   `json:"tests_run_count"`
	Failed   int   `json:"tests_failed"`
	Tests    []struct {
		Name    string `json:"name"`
		Message string `json:"message"`
	} `json:"failed_tests"`
}

func (d *demo) goTest(ctx context.Context) (testOut, error) {
	var out testOut
	_, err := d.call(ctx, "go_test", d.on(map[string]any{"timeout_secs": 300}), &out)
	if err == nil && out.Promoted {
		err = errors.New("it took so long that it became a Job, although the build cache is warm")
	}
	return out, err
}

func (d *demo) testFails(ctx context.Context) (string, error) {
	out, err := d.goTest(ctx)
	if err != nil {
		return "", err
	}
	if out.Passed == nil || *out.Passed || out.Failed != 1 || len(out.Tests) != 1 || out.Tests[0].Name != "TestAdd" {
		return "", fmt.Errorf("the test did not fail as it should: %+v", out)
	}
	return fmt.Sprintf("%d run, %d failed: %s", out.Run, out.Failed, out.Tests[0].Name), nil
}

func (d *demo) testPasses(ctx context.Context) (string, error) {
	out, err := d.goTest(ctx)
	if err != nil {
		return "", err
	}
	if out.Passed == nil || !*out.Passed || out.Run != 2 {
		return "", fmt.Errorf("the tests do not pass: %+v", out)
	}
	return fmt.Sprintf("%d run, 0 failed", out.Run), nil
}

func (d *demo) edit(ctx context.Context) (string, error) {
	f, err := d.readCalc(ctx)
	if err != nil {
		return "", err
	}
	var out struct {
		Changed bool     `json:"changed"`
		Paths   []string `json:"changed_paths"`
	}
	_, err = d.call(ctx, "edit_project_files", d.on(map[string]any{"changes": []map[string]any{{
		"kind": "edit", "path": "calc.go", "expected_sha256": f.SHA256,
		"edits": []map[string]any{{"kind": "replace_exact", "old_text": "sum -= n", "new_text": "sum += n"}}}}}), &out)
	if err != nil {
		return "", err
	}
	if !out.Changed || len(out.Paths) != 1 || out.Paths[0] != "calc.go" {
		return "", fmt.Errorf("the edit changed %v", out.Paths)
	}
	// The same edit again must be refused: the file's hash has moved on.
	body, err := json.Marshal(d.on(map[string]any{"changes": []map[string]any{{
		"kind": "edit", "path": "calc.go", "expected_sha256": f.SHA256,
		"edits": []map[string]any{{"kind": "replace_exact", "old_text": "sum", "new_text": "total", "occurrence": 1}}}}}))
	if err != nil {
		return "", err
	}
	res, err := d.win.call(ctx, "edit_project_files", body)
	if err != nil {
		return "", err
	}
	if !res.IsError || !strings.Contains(res.Text, "edit_conflict") {
		return "", errors.New("a stale edit was not refused")
	}
	return "calc.go: sum += n; a second edit against the old hash was refused", nil
}

// interruptedCommand is a command that the crash met.
type interruptedCommand struct {
	marker string // the command appends its pid once
	pid    int
}

// crash starts a command that leaves a mark and sleeps, waits for the mark, and kills the
// server: the call is never answered.
func (d *demo) crash(ctx context.Context) (string, error) {
	d.interrupted.marker = filepath.Join(d.dir, "marker")
	body, err := json.Marshal(d.on(map[string]any{"command": "echo $$ >> ../marker; exec sleep 300", "timeout_secs": 120}))
	if err != nil {
		return "", err
	}
	answered := make(chan error, 1)
	win := d.win
	go func() {
		_, err := win.call(ctx, "run_shell", body)
		answered <- err
	}()
	lines, err := awaitMarker(ctx, d.interrupted.marker)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Sscan(lines[0], &d.interrupted.pid); err != nil {
		return "", err
	}
	d.server.kill()
	if err := <-answered; err == nil {
		return "", errors.New("a call was answered although the server was killed before its end")
	}
	d.win.close()
	return fmt.Sprintf("SIGKILL; the command (pid %d) had begun, its caller got no answer", d.interrupted.pid), nil
}

// awaitMarker waits until the command has left its first line.
func awaitMarker(ctx context.Context, path string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(string(b), "\n") {
			return strings.Fields(string(b)), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.New("the command did not begin")
		}
	}
}

func (d *demo) summary(ctx context.Context) (session.Summary, error) {
	var out session.Summary
	_, err := d.call(ctx, "call_runtime_tool", map[string]any{"tool": "read_session_summary",
		"arguments": map[string]any{"session_id": d.session, "limit": 200}}, &out)
	return out, err
}

func (d *demo) afterCrash(ctx context.Context) (string, error) {
	sum, err := d.summary(ctx)
	if err != nil {
		return "", err
	}
	have := map[string]bool{}
	var recovered *session.Event
	for i, e := range sum.Events {
		have[string(e.EventID)] = true
		if e.Recovered {
			recovered = &sum.Events[i]
		}
	}
	for _, id := range d.recorded {
		if !have[id] {
			return "", fmt.Errorf("the acknowledged event %s is lost", id)
		}
	}
	if recovered == nil || recovered.Tool != "run_shell" || recovered.Effect == nil {
		return "", errors.New("the interrupted call has no end in the Session")
	}
	if s := recovered.Effect.State; s != event.OutcomeUnknown {
		return "", fmt.Errorf("the interrupted command counts as %s, which nobody can know", s)
	}
	b, err := os.ReadFile(d.interrupted.marker)
	if err != nil {
		return "", short(err)
	}
	if n := len(strings.Fields(string(b))); n != 1 {
		return "", fmt.Errorf("the interrupted command ran %d times", n)
	}
	if !gone(d.interrupted.pid) {
		return "", fmt.Errorf("the interrupted command (pid %d) still runs", d.interrupted.pid)
	}
	return fmt.Sprintf("%d acknowledged events are there; the interrupted command ran once, was ended, and counts as %s",
		len(d.recorded), plain(string(recovered.Effect.State))), nil
}

// gone reports whether no process with the id runs; one that is ending gets a moment. A dead
// one that its new parent has not buried yet (Linux shows it as Z) is gone.
func gone(pid int) bool {
	for range 100 {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return true
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			after := stat[bytes.LastIndexByte(stat, ')')+1:]
			if state := bytes.Fields(after); len(state) > 0 && (string(state[0]) == "Z" || string(state[0]) == "X") {
				return true
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

func (d *demo) resume(ctx context.Context) (string, error) {
	var out struct {
		SessionID    string `json:"session_id"`
		Continuation string `json:"continuation"`
		Workspace    struct {
			Changed int `json:"changed_files"`
		} `json:"workspace"`
	}
	_, err := d.call(ctx, "work_on_project", map[string]any{"session_id": d.session,
		"instruction": "Go on: make sure that the tests pass and nothing else has changed."}, &out)
	if err != nil {
		return "", err
	}
	if out.SessionID != d.session || out.Continuation != "resumed" || out.Workspace.Changed != 1 {
		return "", fmt.Errorf("not resumed as it was: %+v", out)
	}
	return "resumed by its session_id; the working tree has 1 changed file", nil
}

func (d *demo) handoff(ctx context.Context) (string, error) {
	var out session.Handoff
	if _, err := d.call(ctx, "read_session_handoff", map[string]any{"session_id": d.session}, &out); err != nil {
		return "", err
	}
	b := out.Brief
	if string(b.Session.SessionID) != d.session || len(b.Progress.Changed.Items) != 1 || b.Progress.Changed.Items[0] != "calc.go" {
		return "", fmt.Errorf("the brief does not know what changed: %+v", b.Progress)
	}
	if b.Validation.Status != "passed" {
		return "", fmt.Errorf("the brief says of the tests: %s", b.Validation.Status)
	}
	fmt.Fprintln(d.s.out)
	if err := printBrief(d.s.out, b); err != nil {
		return "", err
	}
	fmt.Fprintln(d.s.out)
	return "progress: " + plain(string(b.Progress.State)), nil
}

func (d *demo) replay(ctx context.Context) (string, error) {
	lines, err := replayLines(ctx, d.data, event.SessionID(d.session))
	if err != nil {
		return "", err
	}
	if err := contiguous(lines); err != nil {
		return "", err
	}
	fmt.Fprintln(d.s.out)
	if err := showReplay(d.s.out, lines); err != nil {
		return "", err
	}
	fmt.Fprintln(d.s.out)
	return fmt.Sprintf("%d commits, versions without a gap, every hash names the one before", len(lines)), nil
}

// contiguous checks the chain of one Session's commits.
func contiguous(lines []replayLine) error {
	if len(lines) == 0 {
		return errors.New("the Session has no commit")
	}
	prev := ""
	for i, l := range lines {
		if l.Version != uint64(i+1) || l.Prev != prev {
			return fmt.Errorf("the chain breaks at version %d", l.Version)
		}
		prev = l.Hash
	}
	return nil
}
