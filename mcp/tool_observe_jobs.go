package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var observeJobs = Tool{
	Spec:  &run.ObserveJobs,
	Title: "Observe Jobs",
	Description: "Follow Jobs (runs that outlive their call): status and output. Without a token: the newest lines; with one: what came " +
		"since, or reset where that was lost.",
	Category: "execution", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("items", schema.List("", schema.Object(
			schema.Req("job_id", schema.Str("As the run gave it.", 1, 64)),
			schema.Opt("after_observation_token", schema.Str("Token of the last look.", 1, 256)),
		), 1, run.MaxObserveItems)),
		schema.Opt("tail_lines", schema.Knob("Up to 200; default 40.")),
		schema.Opt("wait_secs", schema.Int("Waits for a change.", 0, run.MaxObserveWaitSecs)),
	),
}
