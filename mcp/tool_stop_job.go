package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var stopJob = Tool{
	Spec:  &run.StopJob,
	Title: "Stop a Job",
	Description: "Stop a Job: its processes are asked to end, then killed. One that has ended already is no error. " +
		"Returns how it stands.",
	Category: "execution", Direct: true, Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("job_id", schema.Str("job_id as the run gave it.", 1, 64)),
	),
}
