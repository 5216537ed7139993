package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var getJobStatus = Tool{
	Spec:  &run.GetJobStatus,
	Title: "Get a Job's status",
	Description: "How a Job is: queued behind how many, running, or how it ended, with exit code, times and what is known of its outcome. " +
		"Output is in observe_jobs and read_job_log.",
	Category: "execution", Idempotent: true,
	Input: schema.Object(schema.Req("job_id", schema.Str("As the run gave it.", 1, 64))),
}
