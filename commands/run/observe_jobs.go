package run

import (
	"context"
	"slices"
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
	Error            string               `json:"error,omitempty"`
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
	out := ObserveOut{Items: make([]JobOut, len(in.Items)), WaitOutcome: notWaited}
	var groups []group
	for i, item := range in.Items {
		out.Items[i].JobID = item.JobID
		job, err := c.Job(item.JobID)
		if err != nil {
			out.Items[i] = ended(c, item.JobID, err)
			continue
		}
		groups = join(groups, job.Target, i, wire.ObserveItem{ID: item.JobID, Token: item.Token}, min(tail, MaxTailLines))
	}
	wait := time.Duration(in.WaitSecs) * time.Second
	switch {
	case len(groups) == 1:
		groups[0].ask.WaitMS = wait.Milliseconds()
	case len(groups) > 1 && wait > 0:
		if out.WaitOutcome, err = awaitAny(ctx, c, groups, wait); err != nil {
			return call.Result{}, err
		}
	}
	for _, g := range groups {
		seen, err := observeOn(ctx, c, g.target, g.ask)
		if err != nil {
			return call.Result{}, err
		}
		if len(groups) == 1 {
			out.WaitOutcome = seen.WaitOutcome
		}
		for n, v := range seen.Items[:min(len(seen.Items), len(g.places))] {
			out.Items[g.places[n]] = jobOut(v)
		}
	}
	return call.Result{Output: out}, nil
}

// ended tells of a Job that no Runner keeps any more what its Session knows; else why it is
// unknown.
func ended(c *call.Call, id string, unknown error) JobOut {
	j, core, ok := c.Sessions().Ended(event.ExecutionID(id))
	if !ok || core.Authority != c.Principal.Actor.Authority || !c.Principal.Sees(core.Project) {
		return JobOut{JobID: id, ErrorKind: fault.KindOf(unknown), Error: fault.As(unknown).Message}
	}
	facts := call.Facts{FailureKind: j.FailureKind, Effect: event.Effect{State: j.State}}
	o := JobOut{JobID: id, Success: true, Terminal: true, Status: statusOf(facts), State: j.State, ExitCode: j.ExitCode, Reset: true,
		Error: "its output is gone with the server life that ran it"}
	if j.State != event.OutcomeUnknown {
		o.DurationMS = &j.DurationMS
	}
	return o
}

// Wait outcomes.
const (
	notWaited = "not_waited"
	changed   = "changed"
	timeout   = "timeout"
)

// group is the part of one call that one Project's Runner answers.
type group struct {
	target call.Target
	ask    wire.ObserveJobsIn
	places []int // of its items in the call
}

func join(groups []group, t call.Target, place int, item wire.ObserveItem, tail int) []group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.target.Ref == t.Ref })
	if i < 0 {
		i, groups = len(groups), append(groups, group{target: t, ask: wire.ObserveJobsIn{TailLines: tail}})
	}
	groups[i].ask.Items = append(groups[i].ask.Items, item)
	groups[i].places = append(groups[i].places, place)
	return groups
}

// awaitAny waits until a Job of any group changes. A Runner that cannot be asked ends the wait:
// the look that follows tells why.
func awaitAny(ctx context.Context, c *call.Call, groups []group, wait time.Duration) (outcome string, err error) {
	err = c.Waiting(func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		outcomes := make(chan string, len(groups))
		for _, g := range groups {
			go func() {
				g.ask.WaitMS = wait.Milliseconds()
				seen, err := askJobs(ctx, c, g.target, g.ask)
				if err != nil {
					seen.WaitOutcome = changed
				}
				outcomes <- seen.WaitOutcome
			}()
		}
		for outcome = timeout; outcome == timeout && len(groups) > 0; groups = groups[1:] {
			outcome = <-outcomes
		}
		return nil
	})
	return outcome, err
}

// observeOn asks a Runner. A wait leaves the caller's slot to calls that work.
func observeOn(ctx context.Context, c *call.Call, t call.Target, in wire.ObserveJobsIn) (out wire.ObserveJobsOut, err error) {
	if in.WaitMS == 0 {
		return askJobs(ctx, c, t, in)
	}
	werr := c.Waiting(func() error {
		out, err = askJobs(ctx, c, t, in)
		return err
	})
	return out, werr
}

func askJobs(ctx context.Context, c *call.Call, t call.Target, in wire.ObserveJobsIn) (wire.ObserveJobsOut, error) {
	return call.AskTarget[wire.ObserveJobsOut](ctx, c, t, wire.OpObserveJobs, in, time.Duration(in.WaitMS)*time.Millisecond+observeMargin)
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
		o.Status, o.State = "queued", "" // it may start at any moment: not_started needs proof
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
