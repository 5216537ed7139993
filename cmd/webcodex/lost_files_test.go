package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/mcp/client"
)

// A Runner's journal that became garbage and a digest.key that is gone are no silent matter:
// doctor tells before the start, the start itself tells, status does, the journal is kept under
// another name, and what was open gets an unknown outcome.
//
// Covers: EXE-39
func TestLostFilesBesideTheLogAreTold(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0")
	_, id := begin(t, c)
	cmd := exec.Command(program(t), "call", "--data", data, "run_shell",
		string(encode(args{"project": c.ready.Project, "session_id": id, "command": "echo begun > ../marker; sleep 5"})))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := awaitMarker(t.Context(), filepath.Join(filepath.Dir(repo), "marker")); err != nil {
		t.Fatal(err)
	}
	if _, text := told(t, "status", "--data", data); strings.Contains(text, "digest.key") {
		t.Errorf("a new key in a new data directory is no loss: %s", text)
	}
	c.kill()
	_ = cmd.Wait()
	journal := filepath.Join(data, "runner", "journal", "log")
	put(t, journal, "this is no journal")
	if err := os.Remove(filepath.Join(data, "digest.key")); err != nil {
		t.Fatal(err)
	}

	code, text := told(t, "doctor", "--json", "--data", data)
	if bad := filesOf(t, text); code != exitFailed || bad["the Runner's journal"] != statusFail || bad["digest.key is gone"] != statusWarn {
		t.Errorf("doctor before the start (%d): %v", code, bad)
	}
	c = up1(t, repo, data, "--listen", "127.0.0.1:0")
	const aside = "runner/journal/log.damaged.1"
	if _, text := told(t, "status", "--data", data); strings.Count(text, "attention") != 2 || !strings.Contains(text, aside) || !strings.Contains(text, "digest.key") {
		t.Errorf("status: %s", text)
	}
	code, text = told(t, "doctor", "--json", "--data", data)
	if bad := filesOf(t, text); code != exitOK || bad["the Runner's journal"] != statusWarn || len(bad) != 1 {
		t.Errorf("doctor after the start (%d): %v", code, bad)
	}
	if b, err := os.ReadFile(filepath.Join(data, aside)); err != nil || string(b) != "this is no journal" {
		t.Errorf("the journal was not kept: %q, %v", b, err)
	}
	if _, text := told(t, "replay", "--json", "--data", data, string(id)); !strings.Contains(text, "outcome_unknown") || strings.Contains(text, "not_started") {
		t.Errorf("the open call: %s", text)
	}
	c.kill()
	if said := c.said.String(); !strings.Contains(said, aside) || !strings.Contains(said, lostKeyText) {
		t.Errorf("the start said %q", said)
	}
}

// filesOf gives what doctor says of the files beside the log: status by its first words.
func filesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, c := range checksOf(t, text)["files"] {
		for _, what := range []string{"the Runner's journal", "digest.key is gone"} {
			if strings.HasPrefix(c.Detail, what) {
				out[what] = c.Status
			}
		}
	}
	return out
}

// Damage in an old block of a running server: the caller hears log_damaged and what to do, the
// server goes on to answer and says why it takes no work, and no later start serves the log.
func TestDamageReachesTheCaller(t *testing.T) {
	t.Parallel()
	data := closedLog(t, 40)
	repo := scratchRepo(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0", "--log-max-bytes", "64MiB")
	w, err := client.Connect(t.Context(), client.Options{URL: c.ready.MCPURL, Token: c.ready.Token})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	work := func() client.Result {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := w.CallTool(ctx, "work_on_project", args{"project": c.ready.Project, "instruction": "do it"})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := work(); r.IsError {
		t.Fatal(r.Text)
	}
	block := logFile(data, "msgs/2.blk")
	b, err := os.ReadFile(block)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 4
	if err := os.WriteFile(block, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := told(t, "verify", "--data", data); code == exitOK {
		t.Fatalf("verify found nothing: %s", text)
	}
	for range 2 {
		r := work()
		if f := refusalOf(t, r); !r.IsError || f.Kind != "log_damaged" || f.Reason != "flipped_byte" || f.StateChanged == nil || *f.StateChanged {
			t.Errorf("the caller hears %s", r.Output)
		}
	}
	if _, text := told(t, "status", "--data", data); !strings.Contains(text, "new work is refused: the log is damaged") {
		t.Errorf("status: %s", text)
	}
	c.cmd.Process.Signal(os.Interrupt)
	<-c.done
	for range 2 {
		next, err := startChild(t.Context(), program(t), nil, "--listen", "127.0.0.1:0", "--data", data, "--", repo)
		if err == nil {
			next.kill()
			t.Fatal("a damaged log was served again")
		}
		if !strings.Contains(err.Error(), "block 2") {
			t.Errorf("the next start: %v", err)
		}
	}
	if after, err := os.ReadFile(block); err != nil || !bytes.Equal(after, b) {
		t.Errorf("the damaged block changed: %v", err)
	}
}
