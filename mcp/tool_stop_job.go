package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var stopJob = Tool{
	Spec:        &run.StopJob,
	Title:       "Stop a Job",
	Description: "Stop a Job, in line or running. One that has ended is no error. Returns how it stands.",
	Category:    "execution", Direct: true, Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("job_id", schema.Str("", 1, 64)),
	),
}
