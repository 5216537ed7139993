package run

import (
	"context"

	"webcodex/commands/call"
	"webcodex/internal/fault"
)

// JobStatusIn is the input of get_job_status.
type JobStatusIn struct {
	JobID string `json:"job_id"`
}

// GetJobStatus tells how a Job is and what is known of its outcome.
var GetJobStatus = call.Spec{
	Name: "get_job_status", Scopes: []call.Scope{call.ScopeRuntimeRead}, Plane: call.PlaneRuntime, Class: call.Observe,
	In: JobStatusIn{}, Run: getJobStatus,
}

func getJobStatus(ctx context.Context, c *call.Call) (call.Result, error) {
	in, err := call.Decode[JobStatusIn](c)
	if err != nil {
		return call.Result{}, err
	}
	job, err := c.Job(in.JobID)
	if err != nil {
		return call.Result{}, err
	}
	s := statusesOf(ctx, c, []call.Job{job})[0]
	if s.Status == "" {
		return call.Result{}, notKept()
	}
	return call.Result{Output: s}, nil
}

// notKept says that a Job was known, and that neither its Runner nor a Session keeps anything of it.
func notKept() error {
	return fault.New(fault.UnknownJob, "the Runner keeps nothing of this Job any more, and no Session does").WithField("job_id").
		WithNext("look at what changed before running it again")
}
