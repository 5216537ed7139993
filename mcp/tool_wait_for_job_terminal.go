package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var waitForJobTerminal = Tool{
	Spec:  &run.WaitForJobTerminal,
	Title: "Wait for Jobs to end",
	Description: "Wait up to 60 s until Jobs have ended, all of them or any, and tell how each is. A wait that runs out changes nothing: " +
		"call again.",
	Category: "execution", Idempotent: true,
	Input: schema.Object(
		schema.Req("job_ids", schema.List("As the runs gave them.", schema.Str("", 1, 64), 1, run.MaxObserveItems)),
		schema.Opt("any", schema.Bool("One end is enough.")),
		schema.Opt("wait_secs", schema.Knob("0 to 60; default 60.")),
	),
}
