package run

import (
	"context"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// ObserveIn is the input of observe_jobs.
type ObserveIn struct {
	Items     []ObserveItem `json:"items"`
	TailLines int           `json:"tail_lines,omitempty"`
	WaitSecs  int           `json:"wait_secs,omitempty"`
}

// ObserveItem names a Job and where the caller stands.
type ObserveItem struct {
	JobID string `json:"job_id"`
	Token string `json:"after_observation_token,omitempty"`
}

// ObserveOut is its output.
type ObserveOut struct {
	Items       []JobOut `json:"items"`
	WaitOutcome string   `json:"wait_outcome"`
}

// JobOut is one Job.
type JobOut struct {
	JobID            string               `json:"job_id"`
	Success          bool                 `json:"success"`
	ErrorKind        fault.Kind           `json:"error_kind,omitempty"`
	Status           string               `json:"status,omitempty"` // queued, running, completed, failed, timed_out, cancelled, lost
	State            event.ExecutionState `json:"execution_state,omitempty"`
	Terminal         bool                 `json:"terminal"`
	ExitCode         *int                 `json:"exit_code,omitempty"`
	DurationMS       *int64               `json:"duration_ms,omitempty"`
	StdoutDelta      string               `json:"stdout_delta"`
	StderrDelta      string               `json:"stderr_delta"`
	Reset            bool                 `json:"reset"`
	ObservationToken string               `json:"observation_token,omitempty"`
	Tests            *wire.TestReport     `json:"tests,omitempty"`
}

// ObserveJobs reads Jobs: first a baseline, then deltas after a token.
var ObserveJobs = call.Spec{
	Name: "observe_jobs", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: call.Observe,
	In: ObserveIn{}, Run: observeJobs,
}

func observeJobs(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[ObserveIn](c)
	if err != nil {
		return call.Result{}, err
	}
	tail := in.TailLines
	if tail <= 0 {
		tail = DefaultTailLines
	}
	out := ObserveOut{Items: make([]JobOut, len(in.Items)), WaitOutcome: "not_waited"}
	ask := wire.ObserveJobsIn{TailLines: min(tail, MaxTailLines), WaitMS: int64(in.WaitSecs) * 1000}
	var target *call.Target
	var places []int
	for i, item := range in.Items {
		out.Items[i].JobID = item.JobID
		job, err := c.Job(item.JobID)
		if err == nil && target != nil && job.Target.Ref.Client != target.Ref.Client {
			err = fault.New(fault.InvalidArguments, "one call observes Jobs of one Runner")
		}
		if err != nil {
			out.Items[i].ErrorKind = fault.KindOf(err)
			continue
		}
		target = &job.Target
		places = append(places, i)
		ask.Items = append(ask.Items, wire.ObserveItem{ID: item.JobID, Token: item.Token})
	}
	if target == nil {
		return call.Result{Output: out}, nil
	}
	seen, err := observeOn(ctx, c, *target, ask)
	if err != nil {
		return call.Result{}, err
	}
	out.WaitOutcome = seen.WaitOutcome
	for n, v := range seen.Items {
		if n < len(places) {
			out.Items[places[n]] = jobOut(v)
		}
	}
	return call.Result{Output: out}, nil
}

// observeOn asks a Runner. A wait leaves the caller's slot to calls that work.
func observeOn(ctx context.Context, c *call.Call, t call.Target, in wire.ObserveJobsIn) (out wire.ObserveJobsOut, err error) {
	limit := time.Duration(in.WaitMS)*time.Millisecond + observeMargin
	ask := func() error {
		out, err = call.AskTarget[wire.ObserveJobsOut](ctx, c, t, wire.OpObserveJobs, in, limit)
		return err
	}
	if in.WaitMS == 0 {
		err = ask()
		return out, err
	}
	err = c.Waiting(ask)
	return out, err
}

func jobOut(v wire.JobView) JobOut {
	o := JobOut{JobID: v.ID, Success: v.Known, Terminal: v.Terminal, StdoutDelta: v.StdoutDelta, StderrDelta: v.StderrDelta,
		Reset: v.Reset, ObservationToken: v.Token}
	if !v.Known {
		o.ErrorKind = fault.UnknownJob
		return o
	}
	o.Status, o.State = "running", event.Started
	if v.State == wire.JAccepted || v.State == wire.JStarting {
		o.Status, o.State = "queued", event.NotStarted
	}
	if !v.Terminal {
		return o
	}
	facts := call.FactsOf(wire.Result{State: v.State, Process: v.Outcome})
	o.State, o.ExitCode, o.Status = facts.Effect.State, facts.ExitCode, statusOf(facts)
	if v.Outcome != nil {
		o.DurationMS, o.Tests = &v.Outcome.DurationMS, v.Outcome.Tests
	}
	return o
}

func statusOf(f call.Facts) string {
	switch f.Effect.State {
	case event.TimedOut:
		return "timed_out"
	case event.Cancelled:
		return "cancelled"
	case event.OutcomeUnknown:
		return "lost"
	}
	if f.FailureKind != "" {
		return "failed"
	}
	return "completed"
}
