package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var listJobs = Tool{
	Spec:  &run.ListJobs,
	Title: "List Jobs",
	Description: "The caller's Jobs, of a project, of a Session or all: those without an end first, then the newest first. " +
		"Of earlier server lives it has what has not ended, and with session_id what ended too.",
	Category: "execution", Idempotent: true,
	Input: schema.Object(
		schema.Opt("project", projectArg),
		schema.Opt("session_id", schema.Str("Its Jobs alone.", 1, 128)),
		schema.Opt("active", schema.Bool("Only those without an end.")),
		schema.Opt("limit", schema.Knob("1 to 100; default 20.")),
		schema.Opt("offset", schema.Knob("From next_offset.")),
	),
}
