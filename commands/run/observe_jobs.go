package run

import (
	"cmp"
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
	JobID      string               `json:"job_id"`
	Success    bool                 `json:"success"`
	ErrorKind  fault.Kind           `json:"error_kind,omitempty"`
	Error      string               `json:"error,omitempty"`
	Status     string               `json:"status,omitempty"` // agent_queued, queued, running, stop_requested, completed, failed, timed_out, cancelled, lost
	State      event.ExecutionState `json:"execution_state,omitempty"`
	Terminal   bool                 `json:"terminal"`
	ExitCode   *int                 `json:"exit_code,omitempty"`
	DurationMS *int64               `json:"duration_ms,omitempty"`
	InputState
	StdoutDelta      string           `json:"stdout_delta"`
	StderrDelta      string           `json:"stderr_delta"`
	Reset            bool             `json:"reset"`
	ObservationToken string           `json:"observation_token,omitempty"`
	Tests            *wire.TestReport `json:"tests,omitempty"`
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
		groups = join(groups, job, i, wire.ObserveItem{ID: item.JobID, Token: item.Token}, min(tail, MaxTailLines))
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
		if err != nil && fault.KindOf(err) != fault.RunnerUnavailable && !g.past {
			return call.Result{}, err
		}
		if len(groups) == 1 {
			out.WaitOutcome = seen.WaitOutcome
		}
		for n, place := range g.places {
			if n < len(seen.Items) && seen.Items[n].Known {
				out.Items[place] = jobOut(seen.Items[n])
			} else {
				out.Items[place] = ended(c, in.Items[place].JobID, cmp.Or(err, notKept()))
				if fault.KindOf(err) == fault.RunnerUnavailable && !out.Items[place].Terminal {
					out.Items[place].Status = recovering // the Jobs of other Runners are told all the same
				}
			}
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
		Error: outputGone}
	if j.State != event.OutcomeUnknown {
		o.DurationMS = &j.DurationMS
	}
	return o
}

const outputGone = "its output is no longer kept"

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
	// past: all its Jobs are of an earlier server life, and their Sessions may know more of them
	// than a Runner that does not answer.
	past bool
}

func join(groups []group, j call.Job, place int, item wire.ObserveItem, tail int) []group {
	i := slices.IndexFunc(groups, func(g group) bool { return g.target.Ref == j.Target.Ref })
	if i < 0 {
		i, groups = len(groups), append(groups, group{target: j.Target, ask: wire.ObserveJobsIn{TailLines: tail}, past: true})
	}
	groups[i].past = groups[i].past && j.Past
	groups[i].ask.Items = append(groups[i].ask.Items, item)
	groups[i].places = append(groups[i].places, place)
	return groups
}

// awaitAny waits until a Job of any group changes. A Runner that is away holds nobody up and ends no
// wait for the others; any other failure ends it, and the look that follows tells why.
func awaitAny(ctx context.Context, c *call.Call, groups []group, wait time.Duration) (outcome string, err error) {
	err = c.Waiting(func() error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		outcomes := make(chan string, len(groups))
		for _, g := range groups {
			go func() {
				g.ask.WaitMS = wait.Milliseconds()
				seen, err := askJobs(ctx, c, g.target, g.ask)
				switch {
				case fault.KindOf(err) == fault.RunnerUnavailable:
					seen.WaitOutcome = timeout
				case err != nil:
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
	at := standingOf(v)
	o.Status, o.State = at.Status, at.State
	if !v.Terminal {
		o.InputState = inputState(v)
		return o
	}
	o.ExitCode, o.ErrorKind = at.Facts.ExitCode, fault.Kind(at.Facts.ErrorKind)
	if v.Gone {
		o.Error = outputGone
	}
	if v.Outcome != nil {
		o.DurationMS, o.Tests = &v.Outcome.DurationMS, v.Outcome.Tests
	}
	return o
}
