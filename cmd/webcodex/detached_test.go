package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"webcodex/commands/run"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/projections/session"
)

// A detached Job goes on while server and Runner are away: the next life knows it under the same
// id, follows it from the token of before, records its end once, and its key stands for it.
//
// Covers: EXE-38
func TestADetachedJobOutlivesServerAndRunner(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var first run.StartJobOut
	var token string
	var p args
	script := args{"executable": "sh", "idempotency_key": "once",
		"args": []string{"-c", "echo ran >>marker; echo SAIDMARK; while [ ! -e go ]; do sleep 0.02; done; echo end; exit 3"}}
	observe := func(t *testing.T, w *world, token string, wait int) run.JobOut {
		t.Helper()
		item := args{"job_id": first.JobID}
		if token != "" {
			item["after_observation_token"] = token
		}
		return must[run.ObserveOut](w, "observe_jobs", args{"items": []args{item}, "wait_secs": wait}).Items[0]
	}
	t.Run("one life", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		p = args{"project": w.project, "session_id": w.work(args{}).SessionID}
		w.refused("run_detached_process", with(p, args{"executable": "true", "cwd": "../x"}), string(fault.InvalidPath), "cwd")
		first = must[run.StartJobOut](w, "run_detached_process", with(p, script))
		token = *first.ObservationToken
		for out := ""; !strings.Contains(out, "SAIDMARK\n"); {
			v := observe(t, w, token, 10)
			if v.Terminal || v.Reset {
				t.Fatalf("%+v", v)
			}
			out, token = out+v.StdoutDelta, v.ObservationToken
		}
		if again := must[run.StartJobOut](w, "run_detached_process", with(p, script)); !again.Replayed || again.JobID != first.JobID {
			t.Errorf("%+v", again)
		}
	})
	t.Run("the next", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		if v := observe(t, w, token, 0); v.Terminal || v.Reset || v.StdoutDelta != "" || v.Status != "running" {
			t.Errorf("%+v", v)
		}
		if text := w.log(first.JobID); text != "SAIDMARK\n" {
			t.Errorf("%q", text)
		}
		if again := must[run.StartJobOut](w, "run_detached_process", with(p, script)); !again.Replayed || again.JobID != first.JobID {
			t.Errorf("%+v", again)
		}
		w.write(filepath.Join(w.repo, "go"), "")
		if end := w.ends(first.JobID); end.WaitOutcome != "terminal" || end.Items[0].Status != "failed" || *end.Items[0].ExitCode != 3 {
			t.Errorf("%+v", end)
		}
		if v := observe(t, w, token, 0); !v.Terminal || v.Reset || v.StdoutDelta != "end\n" {
			t.Errorf("%+v", v)
		}
	})
	t.Run("a third", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		var core session.Core
		core, _ = w.srv.store.Core(p["session_id"].(event.SessionID))
		if len(core.Jobs) != 0 {
			t.Errorf("the Session still has %d Jobs open", len(core.Jobs))
		}
		ends := 0
		for _, c := range w.commits(core.ID) {
			for _, e := range c.Events {
				if end, ok := e.(event.ExecutionFinished); ok && end.Execution == first.JobID {
					if ends++; end.ExitCode == nil || *end.ExitCode != 3 {
						t.Errorf("%+v", end)
					}
				}
			}
		}
		if b, _ := os.ReadFile(filepath.Join(w.repo, "marker")); ends != 1 || string(b) != "ran\n" {
			t.Errorf("%d ends, and the marker has %q", ends, b)
		}
	})
}

// A detached Job is stopped in the life that follows the one that started it.
func TestADetachedJobIsStoppedByTheNextLife(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var job run.StartJobOut
	var p args
	t.Run("one life", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		p = args{"project": w.project, "session_id": w.work(args{}).SessionID}
		job = must[run.StartJobOut](w, "run_detached_process", with(p, args{"executable": "sleep", "args": []string{"600"}}))
		must[run.ObserveOut](w, "observe_jobs", args{"items": []args{{"job_id": job.JobID, "after_observation_token": job.ObservationToken}}, "wait_secs": 2})
	})
	t.Run("the next", func(t *testing.T) {
		w := openWorld(t, base, func(*upFlags) {})
		if out := must[run.StopOut](w, "stop_job", with(p, args{"job_id": job.JobID})); !out.Terminal || out.Status != "cancelled" {
			t.Errorf("%+v", out)
		}
	})
}

// A server with its Runner is killed again and again while detached Jobs are started. Each call is
// then repeated under its key, answered or not: no command ever ran twice, and what is told of each
// Job agrees with the mark that it left.
//
// Covers: EXE-38
func TestKilledServersDetachedJobs(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("WEBCODEX_SOAK") != "" {
		rounds = 100
	}
	repo, data := scratch(t)
	flags := []string{"--listen", "127.0.0.1:0", "--durability", "process", "--max-concurrent-jobs", "32"}
	var session event.SessionID
	counts := map[string]int{}
	for round := range rounds {
		c := up1(t, repo, data, flags...)
		win, id := begin(t, c)
		if session == "" {
			session = id
		}
		start := func(win *window, key string) (out run.StartJobOut, err error) {
			res, err := win.call(t.Context(), "call_runtime_tool", encode(args{"tool": "run_detached_process", "arguments": args{
				"project": c.ready.Project, "session_id": session, "executable": "sh", "idempotency_key": key,
				"args": []string{"-c", "echo ran >>../mark-" + key + "; sleep 0.05; exit 7"}}}))
			if err == nil {
				err = decode(res, &out)
			}
			return out, err
		}
		var issued []string
		time.AfterFunc(50*time.Millisecond+rand.N(150*time.Millisecond), c.kill)
		for n := 0; ; n++ {
			key := fmt.Sprintf("%d-%d", round, n)
			issued = append(issued, key)
			if _, err := start(win, key); err != nil {
				break
			}
		}
		win.close()
		c.kill()
		c = up1(t, repo, data, flags...)
		win, _ = begin(t, c)
		for _, key := range issued {
			out, err := start(win, key)
			var end run.JobStatus
			switch {
			case err != nil && strings.Contains(err.Error(), string(fault.OutcomeUnknown)): // of the first; it is not started again
				end.Status, out.Replayed = "lost", true
			case err != nil:
				t.Fatalf("round %d, repeat of %s: %v", round, key, err)
			default:
				end = callWindow[run.WaitJobsOut](t, win, "wait_for_job_terminal", args{"job_ids": []event.ExecutionID{out.JobID}, "wait_secs": 30}).Items[0]
			}
			raw, _ := os.ReadFile(filepath.Join(filepath.Dir(repo), "mark-"+key))
			ran := strings.Count(string(raw), "ran")
			counts[fmt.Sprintf("%s, repeated %v", end.Status, out.Replayed)]++
			switch {
			case end.Status == "failed" && end.ExitCode != nil && *end.ExitCode == 7 && ran == 1:
			case end.Status == "lost" && ran <= 1:
			default:
				t.Errorf("%s: %+v, and it ran %d times", key, end, ran)
			}
		}
		win.close()
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d rounds: %v", rounds, counts)
}
