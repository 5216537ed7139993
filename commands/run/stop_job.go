package run

import (
	"context"
	"encoding/json"
	"time"

	"webcodex/commands/call"
	"webcodex/eventlog/event"
	"webcodex/internal/fault"
	"webcodex/runner/wire"
)

// stopWait is how long stop_job waits to see the end.
const stopWait = 5 * time.Second

// StopIn is the input of stop_job.
type StopIn struct {
	Project   string `json:"project"`
	SessionID string `json:"session_id,omitempty"`
	JobID     string `json:"job_id"`
}

// StopOut is its output.
type StopOut struct {
	JobID           string               `json:"job_id"`
	AlreadyFinished bool                 `json:"already_finished"`
	Accepted        bool                 `json:"stop_request_accepted"`
	Terminal        bool                 `json:"terminal"`
	Status          string               `json:"status"`
	State           event.ExecutionState `json:"execution_state,omitempty"` // absent while queued
	ExitCode        *int                 `json:"exit_code"`
}

// StopJob asks the Runner to end a Job and waits shortly for it.
var StopJob = call.Spec{
	Name: "stop_job", Scopes: []call.Scope{call.ScopeJobRun}, Plane: call.PlaneProject, Class: call.Mutate,
	In: StopIn{}, Evidence: stopEvidence, Run: stopJob,
}

func stopEvidence(args json.RawMessage) event.Input {
	var in StopIn
	_ = json.Unmarshal(args, &in)
	if !event.ExecutionID(in.JobID).Valid() {
		return event.Input{}
	}
	return event.Input{Target: in.JobID}
}

func stopJob(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[StopIn](c)
	if err != nil {
		return call.Result{}, err
	}
	job, err := c.Job(in.JobID)
	if err != nil {
		return call.Result{}, err
	}
	if job.Target.Ref != c.Target.Ref {
		return call.Result{}, fault.New(fault.UnknownJob, "this Project has no such Job").WithField("job_id")
	}
	before, err := look(ctx, c, job, wire.ObserveItem{ID: in.JobID}, 0)
	if err != nil {
		return call.Result{}, err
	}
	out := StopOut{JobID: in.JobID, AlreadyFinished: before.Terminal}
	after := before
	if !before.Terminal {
		if out.Accepted, err = c.Fleet().Cancel(ctx, job.Target.Ref.Client, job.ID, "stopped"); err != nil {
			return call.Result{}, err
		}
		if out.Accepted {
			c.Stop(job.ID)
		}
		if after, err = untilTerminal(ctx, c, job, before); err != nil {
			return call.Result{}, err
		}
	}
	view := jobOut(after)
	out.Terminal, out.Status, out.State, out.ExitCode = view.Terminal, view.Status, view.State, view.ExitCode
	return call.Result{Output: out, Facts: call.Facts{Effect: event.Effect{StateChanged: out.Accepted}}}, nil
}

// untilTerminal follows the Job's changes until it ended or stopWait is over.
func untilTerminal(ctx context.Context, c *call.Call, job call.Job, v wire.JobView) (wire.JobView, error) {
	for deadline := time.Now().Add(stopWait); !v.Terminal && time.Now().Before(deadline); {
		var err error
		if v, err = look(ctx, c, job, wire.ObserveItem{ID: string(job.ID), Token: v.Token}, time.Until(deadline)); err != nil {
			return v, err
		}
	}
	return v, nil
}

func look(ctx context.Context, c *call.Call, job call.Job, item wire.ObserveItem, wait time.Duration) (wire.JobView, error) {
	return lookAt(ctx, c, job, wire.ObserveJobsIn{Items: []wire.ObserveItem{item}, TailLines: 1, WaitMS: max(0, wait.Milliseconds())})
}

// lookAt asks the Runner about one Job; its short wait stays in the slot of the call.
func lookAt(ctx context.Context, c *call.Call, job call.Job, in wire.ObserveJobsIn) (wire.JobView, error) {
	out, err := askJobs(ctx, c, job.Target, in)
	if err != nil {
		return wire.JobView{}, err
	}
	if len(out.Items) != 1 || !out.Items[0].Known {
		return wire.JobView{}, fault.New(fault.UnknownJob, "the Runner keeps no such Job any more").WithField("job_id")
	}
	return out.Items[0], nil
}
