package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"webcodex/commands/run"
	"webcodex/eventlog/event"
)

// job starts a Job of a shell command.
func (w *world) job(p args, command string) run.StartJobOut {
	w.t.Helper()
	return must[run.StartJobOut](w, "run_job", with(p, args{"command": command}))
}

func (w *world) ends(ids ...event.ExecutionID) run.WaitJobsOut {
	w.t.Helper()
	return must[run.WaitJobsOut](w, "wait_for_job_terminal", args{"job_ids": ids, "wait_secs": 30})
}

func (w *world) log(id event.ExecutionID) string {
	w.t.Helper()
	return must[run.JobLogOut](w, "read_job_log", args{"job_id": id, "stream": "stdout"}).Stdout.Text
}

// A Job is answered at once, inherits what its Session says, and is a process of its own: what one
// changes of itself is not seen by the next, nor by a shell command.
//
// Covers: EXE-11, EXE-16, EXE-23
func TestJobsInheritTheDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	for _, d := range []string{"def", "own"} {
		if err := os.Mkdir(filepath.Join(w.repo, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := w.work(args{"execution_context": args{"default_cwd": "def", "default_shell": "bash"}})
	p := args{"project": w.project, "session_id": s.SessionID}
	const which = "pwd; echo ${BASH_VERSION:+bash}; export KEPT=kept; cd /"
	for _, c := range []struct {
		a         args
		dir, rest string
	}{
		{with(p, args{"command": which}), "def", "bash"}, {with(p, args{"command": which, "cwd": "own"}), "own", "bash"},
		{with(p, args{"command": which, "shell": "sh"}), "def", ""}, {args{"project": w.project, "command": which}, "", ""},
		{with(p, args{"command": "pwd; echo $KEPT"}), "def", ""},
		{with(p, args{"executable": "sh", "args": []string{"-c", "pwd; cat"}, "stdin": "given\n"}), "def", "given"},
	} {
		out := must[run.StartJobOut](w, "run_job", c.a)
		if out.EffectiveTimeout != 3600 || out.Executor != "local" || out.Resource != nil || out.ObservationToken == nil {
			t.Errorf("%+v", out)
		}
		if end := w.ends(out.JobID); end.WaitOutcome != "terminal" || end.Items[0].Status != "completed" {
			t.Fatalf("%v: %+v", c.a, end)
		}
		if got := w.log(out.JobID); got != filepath.Join(w.repo, c.dir)+"\n"+c.rest+"\n" {
			t.Errorf("%v: %q", c.a, got)
		}
	}
	if r := must[run.ShellOut](w, "run_shell", with(p, args{"command": "pwd; echo $KEPT"})); r.Stdout != filepath.Join(w.repo, "def")+"\n\n" {
		t.Errorf("a shell command after Jobs: %q", r.Stdout)
	}
}

// A Job's input is bounded as any command's is, and refused before anything starts.
//
// Covers: EXE-18, EXE-20, EXE-32
func TestTheInputOfAJobIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process")
	p := args{"project": w.project}
	four := strings.Repeat("🙂", 4000) // 16,000 bytes in 4,000 characters
	for field, bad := range map[string]args{
		"command": {"command": four + "x"}, "executable": {"executable": strings.Repeat("x", 1025)}, "args": {"executable": "true", "args": make257()},
		"timeout_secs": {"command": "true", "timeout_secs": 3601}, "shell": {"command": "true", "shell": "zsh"}, "cwd": {"command": "true", "cwd": strings.Repeat("x", 1025)},
		"stdin": {"command": "cat", "stdin": strings.Repeat("x", 64<<10+1)}, "accepted_exit_codes": {"command": "true", "accepted_exit_codes": make([]int, 17)},
	} {
		w.refused("run_job", with(p, bad), "invalid_arguments", field)
	}
	for field, bad := range map[string]args{
		"command": {}, "args": {"command": "true", "args": []string{"x"}}, "shell": {"executable": "true", "shell": "sh"}, "executable": {"executable": "a\x00b"},
	} {
		w.refused("run_job", with(p, bad), "invalid_arguments", field)
	}
	w.refused("run_job", with(p, args{"command": "true", "executable": "true"}), "invalid_arguments", "command")
	w.refused("run_job", with(p, args{"command": "true", "cwd": "../x"}), "invalid_path", "cwd")
	out := w.job(p, "printf ok #"+strings.Repeat("🙂", 3997)+"x")
	if end := w.ends(out.JobID); end.Items[0].Status != "completed" || w.log(out.JobID) != "ok" {
		t.Errorf("%+v", end.Items)
	}
	if jobs := must[run.ListJobsOut](w, "list_jobs", p); jobs.Total != 1 {
		t.Errorf("refused Jobs are listed: %+v", jobs)
	}
	w.refused("read_job_log", args{"job_id": out.JobID, "offset": 3}, "invalid_arguments", "stream")
	for _, tool := range []string{"get_job_status", "read_job_log"} {
		w.refused(tool, args{"job_id": event.NewExecutionID()}, "unknown_job", "job_id")
	}
	w.refused("wait_for_job_terminal", args{"job_ids": []event.ExecutionID{out.JobID, event.NewExecutionID()}}, "unknown_job", "job_id")
}

// Jobs are found, watched and stopped in every state, and their Session tells how they ended: one
// stopped in line has not started, whatever is said of it.
//
// Covers: EXE-35, NEG-17
func TestJobsFromTheirStartToTheirEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "process", func(c *Config) { c.Jobs = 1 })
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	first := w.job(p, "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over; exit 3")
	waiting, stopped := w.job(p, "echo ran >>marks"), w.job(p, "echo ran >>marks")
	if waiting.Status != "agent_queued" || waiting.State != "" || *waiting.JobsAhead != 0 || *stopped.JobsAhead != 1 {
		t.Errorf("%+v, %+v", waiting, stopped)
	}
	status := func(id event.ExecutionID) run.JobStatus {
		t.Helper()
		return must[run.JobStatus](w, "get_job_status", args{"job_id": id})
	}
	for deadline := time.Now().Add(10 * time.Second); status(first.JobID).Status != "running" && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if v := status(first.JobID); v.State != event.Started || v.StartedAt == "" || v.Terminal || v.SessionID != s.SessionID || v.Tool != "run_job" {
		t.Errorf("%+v", v)
	}
	if end := must[run.WaitJobsOut](w, "wait_for_job_terminal", args{"job_ids": []event.ExecutionID{first.JobID, first.JobID}, "wait_secs": 0}); end.WaitOutcome != "timeout" || end.PendingN != 1 {
		t.Errorf("%+v", end)
	}
	stop := must[run.StopOut](w, "stop_job", with(p, args{"job_id": stopped.JobID}))
	if !stop.Accepted || stop.Status != "cancelled" || stop.State != event.NotStarted || !stop.Terminal {
		t.Errorf("stopped in line: %+v", stop)
	}
	list := must[run.ListJobsOut](w, "list_jobs", with(p, args{"limit": 2}))
	if list.Total != 3 || list.Active != 2 || !list.Truncated || list.Items[0].JobID != waiting.JobID || list.Items[1].JobID != first.JobID {
		t.Errorf("%+v", list)
	}
	list = must[run.ListJobsOut](w, "list_jobs", with(p, args{"offset": *list.NextOffset}))
	if list.Returned != 1 || list.Items[0].JobID != stopped.JobID || list.Items[0].Status != "cancelled" {
		t.Errorf("%+v", list)
	}
	if n := must[run.ListJobsOut](w, "list_jobs", args{"project": w.other}).Total; n != 0 {
		t.Errorf("the other Project has %d Jobs", n)
	}
	w.write(filepath.Join(w.repo, "go"), "")
	if end := w.ends(first.JobID, waiting.JobID); end.ReadyCount != 2 || end.Items[0].Status != "failed" || *end.Items[0].ExitCode != 3 {
		t.Errorf("%+v", end)
	}
	page := must[run.JobLogOut](w, "read_job_log", args{"job_id": first.JobID, "stream": "stdout", "offset": 6, "max_bytes": 4})
	if page.Stdout.Text != "over" || page.Stdout.NextOffset != 10 || page.Stdout.Bytes != 11 || !page.Stdout.More || page.Stderr != nil || page.Log != "kept" {
		t.Errorf("%+v", page.Stdout)
	}
	if raw, _ := os.ReadFile(filepath.Join(w.repo, "marks")); string(raw) != "ran\n" {
		t.Errorf("marks %q", raw)
	}
	again := must[run.StopOut](w, "stop_job", with(p, args{"job_id": first.JobID}))
	if !again.AlreadyFinished || again.Status != "failed" {
		t.Errorf("%+v", again)
	}
	w.checkEnds(s.SessionID, map[event.ExecutionID][2]string{first.JobID: {"completed", "exit_status"}, waiting.JobID: {"completed", ""}, stopped.JobID: {"not_started", "cancelled"}})
}

// checkEnds waits for the terminal markers of Jobs and holds their states and failure kinds.
func (w *world) checkEnds(id event.SessionID, want map[event.ExecutionID][2]string) {
	w.t.Helper()
	got := map[event.ExecutionID][2]string{}
	for deadline := time.Now().Add(10 * time.Second); len(got) < len(want) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, c := range w.commits(id) {
			for _, e := range c.Events {
				switch e := e.(type) {
				case event.ExecutionFinished:
					got[e.Execution] = [2]string{string(e.Effect.State), e.FailureKind}
				case event.ToolCallFinished:
					if e.Promoted && (e.Effect.State != "" || e.Expectation != event.ExpectationNone) {
						w.t.Errorf("the admission of a Job is recorded as %+v", e)
					}
				}
			}
		}
	}
	for x, v := range want {
		if got[x] != v {
			w.t.Errorf("%s ended as %v, want %v", x, got[x], v)
		}
	}
}

// A server is killed while Jobs run and wait. The next one tells of each what is known: how it
// ended, that nobody knows, or that it was not started; and that no output is kept. Nothing is
// started again.
//
// Covers: EXE-38, EXE-39
func TestJobsOfAKilledServer(t *testing.T) {
	t.Parallel()
	repo, data := scratch(t)
	c := up1(t, repo, data, "--listen", "127.0.0.1:0", "--durability", "process", "--max-concurrent-jobs", "1")
	win, id := begin(t, c)
	start := func(win *window, command string) event.ExecutionID {
		t.Helper()
		return callWindow[run.StartJobOut](t, win, "run_job", args{"project": c.ready.Project, "session_id": id, "command": command}).JobID
	}
	wait := func(win *window, ids ...event.ExecutionID) []run.JobStatus {
		t.Helper()
		return callWindow[run.WaitJobsOut](t, win, "wait_for_job_terminal", args{"job_ids": ids, "wait_secs": 30}).Items
	}
	ended := start(win, "echo ran >> marks; exit 4")
	wait(win, ended)
	running, queued := start(win, "echo ran >> marks; echo begun > ../marker; sleep 60"), start(win, "echo ran >> marks")
	if _, err := awaitMarker(t.Context(), filepath.Join(filepath.Dir(repo), "marker")); err != nil {
		t.Fatal(err)
	}
	c.kill()
	c = up1(t, repo, data, "--listen", "127.0.0.1:0", "--durability", "process")
	win, err := dialWindow(t.Context(), c.ready.MCPURL, c.ready.Token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(win.close)
	got := map[event.ExecutionID]string{}
	for _, v := range wait(win, ended, running, queued) {
		got[v.JobID] = strings.Join([]string{v.Status, string(v.State), v.Log}, " ")
	}
	for x, want := range map[event.ExecutionID]string{ended: "failed completed gone", running: "lost outcome_unknown gone", queued: "failed not_started gone"} {
		if got[x] != want {
			t.Errorf("%s: %q, want %q", x, got[x], want)
		}
	}
	list := callWindow[run.ListJobsOut](t, win, "list_jobs", args{"session_id": id})
	if list.Total != 3 || list.Active != 0 || !slices.ContainsFunc(list.Items, func(v run.JobStatus) bool { return v.JobID == ended && *v.ExitCode == 4 }) {
		t.Errorf("%+v", list)
	}
	if log := callWindow[run.JobLogOut](t, win, "read_job_log", args{"job_id": ended}); log.Log != "gone" || log.Stdout != nil || log.Status != "failed" {
		t.Errorf("%+v", log)
	}
	if raw, _ := os.ReadFile(filepath.Join(repo, "marks")); string(raw) != "ran\nran\n" {
		t.Errorf("marks %q", raw)
	}
}

func callWindow[Out any](t *testing.T, w *window, tool string, a args) Out {
	t.Helper()
	var out Out
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := w.call(ctx, tool, encode(a))
	if err == nil {
		err = decode(res, &out)
	}
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return out
}

// A Job of a Session with a resource runs there, on a channel of its own, or nowhere; one that is
// stopped while it still connects was cancelled, and did not start.
//
// Covers: EXE-11, SSH-01, NEG-18
func TestJobsOnANamedResource(t *testing.T) {
	t.Parallel()
	r := newRemoteWorld(t)
	there := t.TempDir()
	s := r.on(args{"resource": "build", "default_cwd": there, "default_shell": "bash"})
	for range 2 {
		out := r.job(s, "pwd; echo ${SSH_CONNECTION:+ssh}${BASH_VERSION:+bash}; cd /")
		if out.Executor != "ssh" || *out.Resource != "build" || *out.Shell != "bash" {
			t.Errorf("%+v", out)
		}
		if end := r.ends(out.JobID); end.Items[0].Status != "completed" || r.log(out.JobID) != there+"\nsshbash\n" {
			t.Errorf("%+v %q", end.Items, r.log(out.JobID))
		}
	}
	if n := r.host.Commands(); n != 2 || r.host.Connections() != 1 {
		t.Errorf("%d commands, %d connections", n, r.host.Connections())
	}
	for field, bad := range map[string]args{"executable": {"executable": "true"}, "stdin": {"command": "cat", "stdin": "x"}} {
		f := refusalOf(t, r.call("run_job", with(s, bad)))
		if f.Kind != "unavailable" || f.Reason != "unsupported_resource" || f.Field != field || *f.CommandStarted {
			t.Errorf("%+v", f)
		}
	}
	r.host.Cut()
	r.host.Hold(true)
	out := r.job(s, "touch "+r.repo+"/mark")
	time.Sleep(200 * time.Millisecond) // it connects
	stop := must[run.StopOut](r.world, "stop_job", with(s, args{"job_id": out.JobID}))
	if stop.Status != "cancelled" || stop.State != event.NotStarted || !stop.Accepted {
		t.Errorf("stopped while it connects: %+v", stop)
	}
	r.host.Hold(false)
	r.checkEnds(s["session_id"].(event.SessionID), map[event.ExecutionID][2]string{out.JobID: {"not_started", "cancelled"}})
	if len(r.marks()) != 0 {
		t.Error("it ran")
	}
}

// Many Jobs are started at once, wait, and all end: each ran once, and its Session has one end for
// each. Beside them calls go on.
//
// Covers: EXE-38
func TestManyJobs(t *testing.T) {
	t.Parallel()
	n := 80
	if os.Getenv("WEBCODEX_SOAK") != "" {
		n = 1000
	}
	w := newWorld(t, "process", func(c *Config) { c.Jobs = 4 })
	s := w.work(args{})
	p := args{"project": w.project, "session_id": s.SessionID}
	began, ids := time.Now(), make(chan event.ExecutionID, n)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range n / 8 {
				ids <- w.job(p, "while [ ! -e go ]; do sleep 0.05; done; echo ran >>marks").JobID
			}
		})
	}
	group.Wait()
	close(ids)
	started := time.Since(began)
	if list := must[run.ListJobsOut](w, "list_jobs", with(p, args{"active": true, "limit": 100})); list.Total != n || list.Items[0].Status != "agent_queued" {
		t.Errorf("%d are active, the newest %+v", list.Total, list.Items[0])
	}
	if r := must[run.ShellOut](w, "run_shell", with(p, args{"command": "echo beside"})); r.Stdout != "beside\n" || r.Promoted {
		t.Errorf("%+v", r)
	}
	began = time.Now()
	w.write(filepath.Join(w.repo, "go"), "")
	all := slices.Collect(func(yield func(event.ExecutionID) bool) {
		for id := range ids {
			if !yield(id) {
				return
			}
		}
	})
	for len(all) > 0 {
		k := min(8, len(all))
		end := w.ends(all[:k]...)
		for _, v := range end.Items {
			if end.WaitOutcome == "terminal" && (v.Status != "completed" || v.Log != "kept") {
				t.Errorf("%+v", v)
			}
		}
		if end.WaitOutcome == "terminal" {
			all = all[k:]
		}
	}
	t.Logf("%d Jobs were taken in %v and ended in %v", n, started, time.Since(began))
	if raw, _ := os.ReadFile(filepath.Join(w.repo, "marks")); strings.Count(string(raw), "ran\n") != n {
		t.Errorf("%d ran", strings.Count(string(raw), "ran\n"))
	}
	ends := map[event.ExecutionID]int{}
	for deadline := time.Now().Add(20 * time.Second); len(ends) < n && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		clear(ends)
		for _, c := range w.commits(s.SessionID) {
			for _, e := range c.Events {
				if e, ok := e.(event.ExecutionFinished); ok {
					ends[e.Execution]++
				}
			}
		}
	}
	if len(ends) != n || slices.Max(slices.Collect(maps.Values(ends))) != 1 {
		t.Errorf("%d of %d have an end in their Session", len(ends), n)
	}
}
