package main

import (
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"webcodex/commands/access"
	"webcodex/commands/call"
	"webcodex/commands/run"
	"webcodex/internal/bench"
)

// afar is a server of this process with a Runner in a process of its own, over TLS on loopback.
func afar(t *testing.T) (w *world, project, repo string) {
	t.Helper()
	w = newWorld(t, "process", func(c *Config) { c.Runners.Listen = "127.0.0.1:0" })
	issued := webcodexJSON[access.RunnerIssued](t, "token", "create", "--kind", "runner", "--name", "bench", "--data", w.dir, "--json")
	base := t.TempDir()
	repo = filepath.Join(base, "repo")
	w.git(repo)
	c, err := startProgram(t.Context(), program(t), nil, "runner", "--json", "--data", filepath.Join(base, "data"), "--durability", "process",
		"--enroll", issued.Code, repo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	var ready runnerReady
	if err := json.Unmarshal(c.line, &ready); err != nil || len(ready.Projects) != 1 {
		t.Fatalf("%s: %v", c.line, err)
	}
	return w, ready.Projects[0], repo
}

// runTrue makes a recorded run_process true.
func (w *world) runTrue(raw json.RawMessage) {
	resp, err := w.srv.kernel.Call(context.Background(), call.Request{Spec: &run.RunProcess, Args: raw,
		Principal: w.srv.access.Principal(), Transport: "mcp"})
	if err != nil || !resp.Success {
		w.t.Errorf("%v %s", err, resp.Error)
	}
}

// plainTrue is the least that a start costs from Go.
func plainTrue(t *testing.T, dir string) {
	cmd := exec.Command("true")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.Discard, io.Discard
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
}

// A recorded run_process true through a Runner in a process of its own, over TLS on loopback,
// against fork and exec of the same from Go: one after the other, and 64 at once.
func TestRatioRemoteRun(t *testing.T) {
	bench.Skip(t)
	const runs, atOnce = 20, 64
	w, project, repo := afar(t)
	begun := w.call("work_on_project", args{"project": project, "instruction": "measure"})
	var session struct {
		ID string `json:"session_id"`
	}
	if err := begun.Decode(&session); err != nil || begun.IsError {
		t.Fatalf("%v %s", err, begun.Text)
	}
	raw, err := json.Marshal(args{"project": project, "session_id": session.ID, "executable": "true"})
	if err != nil {
		t.Fatal(err)
	}
	row := func(one func()) func() time.Duration {
		return func() time.Duration {
			start := time.Now()
			for range runs {
				one()
			}
			return time.Since(start)
		}
	}
	bench.Run(t, bench.Comparison{Name: "run_process true through a Runner on loopback TLS vs fork+exec, durability process", Bar: 1.5, AtMost: true,
		Ours: row(func() { w.runTrue(raw) }), Yardstick: row(func() { plainTrue(t, repo) })})
	together := func(one func()) func() time.Duration {
		return func() time.Duration {
			start := time.Now()
			var all sync.WaitGroup
			for range atOnce {
				all.Go(one)
			}
			all.Wait()
			return time.Since(start)
		}
	}
	bench.Run(t, bench.Comparison{Name: "64 run_process true at once through a Runner on loopback TLS vs 64 fork+exec at once", Bar: 0.3, Speed: true,
		Ours: together(func() { w.runTrue(raw) }), Yardstick: together(func() { plainTrue(t, repo) })})
}
