package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"webcodex/commands/call"
	"webcodex/commands/run"
	"webcodex/internal/bench"
	"webcodex/mcp/client"
)

// A recorded read-only call over HTTP, through the whole server and the Runner and into the
// log, against a tool that does nothing on a bare SDK server. Same client, same protocol.
func TestRatioRecordedCall(t *testing.T) {
	bench.Skip(t)
	const calls = 40
	w := newWorld(t, "process")
	id := w.work(args{}).SessionID
	bare := httptest.NewServer(bench.BareMCP())
	t.Cleanup(bare.Close)
	yard, err := client.Connect(context.Background(), client.Options{URL: bare.URL, Token: "none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = yard.Close() })
	if yard.Version() != w.client.Version() {
		t.Fatalf("the yardstick speaks %s, we speak %s", yard.Version(), w.client.Version())
	}
	round := func(c *client.Client, tool string, a args) func() time.Duration {
		return func() time.Duration {
			start := time.Now()
			for range calls {
				r, err := c.CallTool(context.Background(), tool, a)
				if err != nil || r.IsError {
					t.Fatalf("%v %s", err, r.Text)
				}
			}
			return time.Since(start)
		}
	}
	before := w.observed(id)
	bench.Run(t, bench.Comparison{Name: "6b recorded read_files over HTTP vs a no-op tool on a bare SDK server", Bar: 3, AtMost: true,
		Ours:      round(w.client, "read_files", args{"project": w.project, "session_id": string(id), "items": []args{{"path": "go.mod"}}}),
		Yardstick: round(yard, "noop", args{"project": w.project})})
	if after := w.observed(id); after == before || (after-before)%(2*calls) != 0 {
		t.Errorf("the calls left %d events", after-before)
	}
}

// syncsPerRun is how many fdatasyncs a recorded run waits for one after the other in
// durability always: the start in the log, the journal before the start and at the end, and
// the finish in the log.
const syncsPerRun = 4

// run_process true, recorded, against fork and exec of the same from Go and the syncs that
// the mode cannot do without.
func TestRatioRunProcess(t *testing.T) {
	bench.Skip(t)
	for _, mode := range []struct {
		durability string
		syncs      int
	}{{"process", 0}, {"always", syncsPerRun}} {
		t.Run(mode.durability, func(t *testing.T) {
			const runs = 20
			w := newWorld(t, mode.durability)
			id := w.work(args{}).SessionID
			raw, err := json.Marshal(args{"project": w.project, "session_id": string(id), "executable": "true"})
			if err != nil {
				t.Fatal(err)
			}
			disk := newSyncer(t, w.dir)
			bench.Run(t, bench.Comparison{Name: "6c run_process true vs fork+exec and its syncs, durability " + mode.durability, Bar: 1.5, AtMost: true,
				Ours: func() time.Duration {
					start := time.Now()
					for range runs {
						resp, err := w.srv.kernel.Call(context.Background(), call.Request{Spec: &run.RunProcess, Args: raw,
							Principal: w.srv.access.Principal(), Transport: "mcp"})
						if err != nil || !resp.Success {
							t.Fatalf("%v %s", err, resp.Error)
						}
					}
					return time.Since(start)
				},
				Yardstick: func() time.Duration {
					start := time.Now()
					for range runs {
						for range mode.syncs {
							disk.sync()
						}
						cmd := exec.Command("true")
						cmd.Dir, cmd.Stdout, cmd.Stderr = w.repo, io.Discard, io.Discard
						if err := cmd.Run(); err != nil {
							t.Fatal(err)
						}
					}
					return time.Since(start)
				}})
		})
	}
}

// syncer appends a commit's worth of bytes to a file beside the log and syncs it.
type syncer struct {
	t testing.TB
	f *os.File
}

func newSyncer(t testing.TB, dir string) *syncer {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "syncer"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &syncer{t, f}
}

func (s *syncer) sync() {
	if _, err := s.f.Write(make([]byte, 1024)); err != nil {
		s.t.Fatal(err)
	}
	if err := s.f.Sync(); err != nil {
		s.t.Fatal(err)
	}
}
