package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"webcodex/commands/call"
	"webcodex/commands/internal/calltest"
	"webcodex/commands/run"
	"webcodex/commands/session"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	view "webcodex/projections/session"
	"webcodex/runner/wire"
)

type args = map[string]any

var alpha = calltest.Alpha.String()

func work(e *calltest.Env, extra args) string {
	e.T.Helper()
	a := args{"project": alpha, "instruction": "do it"}
	for k, v := range extra {
		a[k] = v
	}
	return string(calltest.Must[session.WorkOut](e, &session.WorkOnProject, a).SessionID)
}

// stored is everything the log holds about a Session, as text.
func stored(t *testing.T, e *calltest.Env, id string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range e.Commits(event.SessionID(id)) {
		body, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		b.Write(body)
	}
	return b.String()
}

// Covers: EXE-27
func TestEvidenceOfARunIsCountsAndNeverText(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	base := args{"project": alpha, "session_id": id, "purpose": "diagnostic"}
	with := func(extra args) args {
		a := args{}
		for _, m := range []args{base, extra} {
			for k, v := range m {
				a[k] = v
			}
		}
		return a
	}
	one := 1
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return e.Fleet.End(ctx, x, wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &one,
			Stdout: wire.Stream{Text: "OUTMARK", Bytes: 7}, Stderr: wire.Stream{Text: "ERRMARK", Bytes: 7}})
	}
	for _, tc := range []struct {
		spec *call.Spec
		a    args
		want event.Input
	}{
		{&run.RunProcess, args{"executable": "/usr/bin/SECRETDIR/tool", "args": []string{"--token", "ARGMARK"}, "stdin": "INMARK", "cwd": "sub"},
			event.Input{Executable: "tool", ArgCount: 2, StdinBytes: 6, Cwd: "sub", TimeoutSecs: 60, Purpose: "diagnostic"}},
		{&run.RunScript, args{"language": "sh", "script": "echo SCRIPTMARK", "timeout_secs": 5},
			event.Input{Language: "sh", CommandBytes: 15, TimeoutSecs: 5, Purpose: "diagnostic"}},
		{&run.RunShell, args{"command": "echo SHELLMARK"},
			event.Input{CommandBytes: 14, TimeoutSecs: 60, Purpose: "diagnostic"}},
	} {
		resp, err := e.Call(tc.spec, with(tc.a))
		if err != nil {
			t.Fatal(err)
		}
		var out run.Output
		if err := json.Unmarshal(resp.Output, &out); err != nil {
			t.Fatal(err)
		}
		if resp.Success || *out.ExitCode != 1 || out.Stdout != "OUTMARK" || out.FailureKind != "exit_status" || resp.Error == "" {
			t.Errorf("%s: %+v %v", tc.spec.Name, out, resp.Success)
		}
		var got event.Input
		for _, ev := range e.Events(event.SessionID(id)) {
			if s, ok := ev.(event.ToolCallStarted); ok {
				got = s.Input
			}
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(tc.want)
		if string(a) != string(b) {
			t.Errorf("%s kept %s, want %s", tc.spec.Name, a, b)
		}
	}
	for _, mark := range []string{"OUTMARK", "ERRMARK", "ARGMARK", "INMARK", "SCRIPTMARK", "SHELLMARK", "SECRETDIR"} {
		if strings.Contains(stored(t, e, id), mark) {
			t.Errorf("%s is in the log", mark)
		}
	}
}

// Covers: EXE-22, EXE-37
func TestArgumentsTogetherAreBounded(t *testing.T) {
	e := calltest.New(t, nil)
	arg := strings.Repeat("x", 8000)
	f := e.Refused(calltest.Owner(), &run.RunProcess, args{"project": alpha, "executable": "true", "args": []string{arg, arg, "x"}}, fault.InvalidArguments)
	if f.Field != "args" || !strings.Contains(f.Next, "run_script") || !strings.Contains(f.Next, "stdin") {
		t.Errorf("%+v", f)
	}
	if len(e.Fleet.Starts()) != 0 {
		t.Error("it was started")
	}
	if _, err := e.Call(&run.RunProcess, args{"project": alpha, "executable": "true", "args": []string{arg, arg}}); err != nil {
		t.Errorf("16,000 bytes: %v", err)
	}
}

// A NUL is refused in whichever argument it is, by the field's name, before anything starts or
// is recorded.
func TestNULIsRefusedBeforeAnythingStarts(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	before := len(e.Events(event.SessionID(id)))
	for _, tc := range []struct {
		spec  *call.Spec
		field string
		a     args
	}{
		{&run.RunProcess, "executable", args{"executable": "tr\x00ue"}},
		{&run.RunProcess, "args", args{"executable": "true", "args": []string{"a", "b\x00"}}},
		{&run.RunProcess, "stdin", args{"executable": "true", "stdin": "\x00"}},
		{&run.RunProcess, "cwd", args{"executable": "true", "cwd": "a\x00b"}},
		{&run.RunScript, "script", args{"language": "sh", "script": "true\x00"}},
		{&run.RunScript, "args", args{"language": "sh", "script": "true", "args": []string{"\x00"}}},
		{&run.RunScript, "stdin", args{"language": "sh", "script": "true", "stdin": "a\x00"}},
		{&run.RunScript, "cwd", args{"language": "sh", "script": "true", "cwd": "\x00"}},
		{&run.RunShell, "command", args{"command": "echo \x00"}},
		{&run.RunShell, "cwd", args{"command": "true", "cwd": "\x00"}},
	} {
		tc.a["project"], tc.a["session_id"] = alpha, id
		if f := e.Refused(calltest.Owner(), tc.spec, tc.a, fault.InvalidArguments); f.Field != tc.field || f.Reason != "nul" || f.Next == "" {
			t.Errorf("%s: %+v", tc.spec.Name, f)
		}
	}
	if n := len(e.Events(event.SessionID(id))); n != before || len(e.Fleet.Starts()) != 0 {
		t.Errorf("%d events were written, %d starts", n-before, len(e.Fleet.Starts()))
	}
}

// Covers: EXE-23
func TestDefaultsComeFromTheNamedSessionOnly(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, args{"execution_context": args{"default_cwd": "pkg", "default_shell": "bash"}})
	var seen wire.ProcessIn
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		seen = wire.ProcessIn{}
		_ = json.Unmarshal(x.Offer.Body, &seen)
		return e.Fleet.Succeed(ctx, x)
	}
	for _, tc := range []struct {
		a          args
		cwd, shell string
	}{
		{args{"project": alpha, "command": "x"}, "", "sh"},
		{args{"project": alpha, "command": "x", "session_id": id}, "pkg", "bash"},
		{args{"project": alpha, "command": "x", "session_id": id, "cwd": "other", "shell": "sh"}, "other", "sh"},
	} {
		if out := calltest.Must[run.ShellOut](e, &run.RunShell, tc.a); seen.Cwd != tc.cwd || seen.Shell != tc.shell || out.Shell != tc.shell || out.Executor != "local" {
			t.Errorf("%v ran in %q with %q", tc.a, seen.Cwd, seen.Shell)
		}
	}
}

func TestARunThatLastsBecomesAJob(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if x.Grace <= 0 {
			t.Error("no grace")
		}
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		var in wire.ObserveJobsIn
		_ = json.Unmarshal(body, &in)
		if !in.Whole {
			t.Error("the whole output so far was not asked for")
		}
		return wire.ObserveJobsOut{Items: []wire.JobView{{ID: in.Items[0].ID, Known: true, State: wire.JRunning, Token: "t0",
			Outcome: &wire.ProcessOutcome{Stdout: wire.Stream{Text: "so far\n", Bytes: 20, DroppedBytes: 13, Truncated: true}}}}}, nil
	}
	out := calltest.Must[run.Output](e, &run.RunProcess, args{"project": alpha, "session_id": id, "executable": "sleep", "sync_wait_secs": 0})
	if out.ObservationToken == nil || *out.ObservationToken != "t0" || out.Stdout != "so far\n" || out.StdoutBytes != 20 || out.StdoutDropped != 13 || !out.StdoutTruncated {
		t.Errorf("%+v", out)
	}
	if !out.Promoted || out.JobID == nil || *out.JobID != out.ExecutionID || out.State != event.Started || out.ExitCode != nil {
		t.Fatalf("%+v", out)
	}
	state := wire.JRunning
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		var in wire.ObserveJobsIn
		_ = json.Unmarshal(body, &in)
		v := wire.JobView{ID: in.Items[0].ID, Known: true, State: state, Token: "t1", StdoutDelta: "line\n", Terminal: state == wire.JTerminal}
		if v.Terminal {
			v.Outcome = &wire.ProcessOutcome{Started: true, Cancelled: true}
		}
		return wire.ObserveJobsOut{Items: []wire.JobView{v}, WaitOutcome: "not_waited"}, nil
	}
	job := string(*out.JobID)
	unknown := string(event.NewExecutionID())
	seen := calltest.Must[run.ObserveOut](e, &run.ObserveJobs, args{"items": []args{{"job_id": unknown}, {"job_id": job}}})
	if seen.Items[0].Success || seen.Items[0].ErrorKind != fault.UnknownJob || !seen.Items[1].Success || seen.Items[1].Status != "running" || seen.Items[1].StdoutDelta != "line\n" {
		t.Errorf("%+v", seen)
	}
	for _, state = range []wire.JournalState{wire.JAccepted, wire.JStarting} { // it may start: not_started would be a guess
		seen = calltest.Must[run.ObserveOut](e, &run.ObserveJobs, args{"items": []args{{"job_id": job}}})
		if v := seen.Items[0]; v.Status != "queued" || v.State != "" || v.Terminal {
			t.Errorf("%s: %+v", state, v)
		}
	}
	resp, err := e.CallAs(context.Background(), calltest.Someone("b"), &run.ObserveJobs, args{"items": []args{{"job_id": job}}})
	if err != nil || !strings.Contains(string(resp.Output), `"error_kind":"unknown_job"`) {
		t.Errorf("another authority sees %s %v", resp.Output, err)
	}
	e.Refused(calltest.Owner(), &run.StopJob, args{"project": calltest.Beta.String(), "job_id": job}, fault.UnknownJob)
	state = wire.JTerminal
	stop := calltest.Must[run.StopOut](e, &run.StopJob, args{"project": alpha, "session_id": id, "job_id": job})
	if !stop.AlreadyFinished || stop.Accepted || stop.Status != "cancelled" {
		t.Errorf("%+v", stop)
	}
}

func TestAFailedSpawnIsARefusalThatStartedNothing(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		if err := x.Ready(ctx); err != nil {
			return call.Outcome{}, err
		}
		return call.Outcome{Result: &wire.Result{State: wire.JStartFailed,
			Fault: fault.New(fault.CommandSpawnFailed, "the executable was not found").WithField("executable")}}, nil
	}
	_, err := e.Call(&run.RunProcess, args{"project": alpha, "session_id": id, "executable": "nope"})
	if f := fault.As(err); f.Kind != fault.CommandSpawnFailed || f.ExecutionState != "not_started" || f.CommandStarted {
		t.Errorf("%+v", f)
	}
}

// Jobs of several Projects in one call are each asked of their own Project, and a wait ends
// with the first change of any.
func TestObserveJobsOfTwoProjects(t *testing.T) {
	e := calltest.New(t, nil)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	var jobs []args
	for _, p := range []string{alpha, calltest.Beta.String(), alpha} {
		out := calltest.Must[run.Output](e, &run.RunProcess, args{"project": p, "executable": "sleep"})
		jobs = append(jobs, args{"job_id": *out.JobID})
	}
	var waits atomic.Int32
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		var in wire.ObserveJobsIn
		_ = json.Unmarshal(body, &in)
		out := wire.ObserveJobsOut{WaitOutcome: "not_waited"}
		if in.WaitMS > 0 {
			if out.WaitOutcome = "timeout"; waits.Add(1) == 2 {
				out.WaitOutcome = "changed"
			}
		}
		for _, it := range in.Items {
			out.Items = append(out.Items, wire.JobView{ID: it.ID, Known: true, State: wire.JRunning, StdoutDelta: it.ID})
		}
		return out, nil
	}
	for _, wait := range []int{0, 1} {
		seen := calltest.Must[run.ObserveOut](e, &run.ObserveJobs, args{"items": jobs, "wait_secs": wait})
		for i, it := range seen.Items {
			if !it.Success || it.JobID != string(jobs[i]["job_id"].(event.ExecutionID)) || it.StdoutDelta != it.JobID {
				t.Errorf("item %d: %+v", i, it)
			}
		}
		if want := []string{"not_waited", "changed"}[wait]; seen.WaitOutcome != want {
			t.Errorf("wait outcome %s, want %s", seen.WaitOutcome, want)
		}
	}
}

// A Runner that is away takes nothing from the Jobs of another, neither what is seen of them nor the
// wait for them.
//
// Covers: NEG-33
func TestObserveJobsBesideARunnerThatIsAway(t *testing.T) {
	e := calltest.New(t, nil)
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	var jobs []args
	for _, p := range []string{alpha, calltest.Beta.String()} {
		out := calltest.Must[run.Output](e, &run.RunProcess, args{"project": p, "executable": "sleep"})
		jobs = append(jobs, args{"job_id": *out.JobID})
	}
	away := jobs[0]["job_id"].(event.ExecutionID)
	e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
		var in wire.ObserveJobsIn
		_ = json.Unmarshal(body, &in)
		if in.Items[0].ID == string(away) {
			return nil, fault.New(fault.RunnerUnavailable, "the Runner of this Project is not connected")
		}
		return wire.ObserveJobsOut{WaitOutcome: "changed", Items: []wire.JobView{{ID: in.Items[0].ID, Known: true, State: wire.JRunning, StdoutDelta: "on"}}}, nil
	}
	seen := calltest.Must[run.ObserveOut](e, &run.ObserveJobs, args{"items": jobs, "wait_secs": 5})
	if j := seen.Items[0]; j.Success || j.Status != "recovering" || j.ErrorKind != fault.RunnerUnavailable || j.Terminal {
		t.Errorf("%+v", j)
	}
	if j := seen.Items[1]; !j.Success || j.StdoutDelta != "on" || seen.WaitOutcome != "changed" {
		t.Errorf("%+v", seen)
	}
}

// How a Job ended is told after the server life that ran it, to its own authority only.
func TestAJobOfAnEarlierLife(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	var late func(context.Context, wire.Result) error
	e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
		late = x.Late
		return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
	}
	out := calltest.Must[run.Output](e, &run.RunProcess, args{"project": alpha, "session_id": id, "executable": "false"})
	one := 1
	if err := late(context.Background(), wire.Result{ID: *out.JobID, State: wire.JTerminal, DurationMS: 7,
		Process: &wire.ProcessOutcome{Started: true, Completed: true, ExitCode: &one}}); err != nil {
		t.Fatal(err)
	}
	e.Reopen()
	ask := args{"items": []args{{"job_id": *out.JobID}, {"job_id": event.NewExecutionID()}}}
	seen := calltest.Must[run.ObserveOut](e, &run.ObserveJobs, ask)
	if j := seen.Items[0]; !j.Success || !j.Terminal || j.Status != "failed" || j.ExitCode == nil || *j.ExitCode != 1 || !j.Reset || *j.DurationMS != 7 {
		t.Errorf("%+v", j)
	}
	if j := seen.Items[1]; j.Success || j.ErrorKind != fault.UnknownJob || j.Error == "" {
		t.Errorf("%+v", j)
	}
	resp, err := e.CallAs(context.Background(), calltest.Someone("b"), &run.ObserveJobs, ask)
	if err != nil || strings.Contains(string(resp.Output), `"status"`) {
		t.Errorf("another authority sees %s %v", resp.Output, err)
	}
}

// A working directory whose text leads out is refused before a start is recorded.
func TestCwdIsCheckedBeforeTheStart(t *testing.T) {
	e := calltest.New(t, nil)
	id := work(e, nil)
	for _, cwd := range []string{"..", "../x", "/etc", "a/../../b"} {
		for _, spec := range []*call.Spec{&run.RunProcess, &run.RunShell, &run.RunScript} {
			f := e.Refused(calltest.Owner(), spec, args{"project": alpha, "session_id": id, "cwd": cwd, "executable": "true", "command": "true", "script": "true", "language": "sh"}, fault.InvalidPath)
			if f.Field != "cwd" || f.Reason == "" {
				t.Errorf("%s: %+v", cwd, f)
			}
		}
	}
}

// While a Job that took a request to stop has no end, the Session's feedback counts it as about to
// end, and neither as running nor as ended; a request that its Runner did not take changes nothing.
//
// Covers: CON-20
func TestAStoppedJobIsAboutToEnd(t *testing.T) {
	for _, taken := range []bool{true, false} {
		e := calltest.New(t, nil)
		id := work(e, nil)
		e.Fleet.OnRun = func(ctx context.Context, x call.Execution) (call.Outcome, error) {
			return call.Outcome{Promoted: true}, e.Fleet.Grant(ctx, x)
		}
		e.Fleet.OnCancel = func(event.ExecutionID) bool { return taken }
		e.Fleet.OnQuery = func(event.ExecutionID) (wire.QueryReply, error) { return wire.QueryReply{State: wire.JRunning}, nil }
		jobs := func() view.JobAttention {
			return calltest.Must[view.Finish](e, &session.FinishTask, args{"project": alpha, "session_id": id, "include_workspace": false}).Feedback.Attempt.Jobs
		}
		looks, seen := 0, view.JobAttention{}
		e.Fleet.OnAsk = func(op wire.Op, body json.RawMessage) (any, error) {
			var in wire.ObserveJobsIn
			if op != wire.OpObserveJobs || json.Unmarshal(body, &in) != nil {
				return nil, fault.New(fault.Timeout, "slow")
			}
			v := wire.JobView{ID: in.Items[0].ID, Known: true, State: wire.JRunning, Token: "t"}
			if looks++; looks == 3 { // of the run, before the request, after it
				seen = jobs()
				v.State, v.Terminal, v.Outcome = wire.JTerminal, true, &wire.ProcessOutcome{Started: true, Cancelled: true}
			}
			return wire.ObserveJobsOut{Items: []wire.JobView{v}, WaitOutcome: "not_waited"}, nil
		}
		out := calltest.Must[run.Output](e, &run.RunProcess, args{"project": alpha, "session_id": id, "executable": "sleep", "sync_wait_secs": 0})
		if before := jobs(); before != (view.JobAttention{Active: 1, Running: 1, Recovery: "active"}) {
			t.Errorf("before: %+v", before)
		}
		stop := calltest.Must[run.StopOut](e, &run.StopJob, args{"project": alpha, "job_id": *out.JobID})
		want := view.JobAttention{Active: 1, Running: 1, Recovery: "active"}
		if taken {
			want = view.JobAttention{Active: 1, TerminalPending: 1, Recovery: "terminal_pending"}
		}
		if seen != want || stop.Accepted != taken || !stop.Terminal {
			t.Errorf("taken %v: %+v, %+v", taken, seen, stop)
		}
	}
}
