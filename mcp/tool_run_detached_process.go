package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var runDetachedProcess = Tool{
	Spec:  &run.RunDetachedProcess,
	Title: "Run a detached process",
	Description: "Start one executable as a Job that goes on while its Runner is restarted or away, and answer at once. It waits for a slot " +
		"like run_job; observe_jobs follows it and stop_job ends it, before and after. It ends with the machine's next boot, and validates nothing.",
	Category: "execution", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("executable", schema.Str("Program name or path.", 1, run.MaxExecutableBytes).Bytes(run.MaxExecutableBytes)),
		schema.Opt("args", argsArg("As they are: no quoting, no globbing.")),
		schema.Opt("cwd", cwdArg),
		schema.Opt("stdin", stdinArg),
		schema.Opt("timeout_secs", schema.Int("Default 3600; counts from its start, sleep of the machine included.", int64(run.MinTimeoutSecs), int64(run.MaxTimeoutSecs))),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
		schema.Opt("accepted_exit_codes", schema.List("Codes that are results, not failures.",
			schema.Int("", 0, run.MaxExitCode), 0, run.MaxAcceptedExitCodes)),
		schema.Opt("idempotency_key", keyArg),
	),
}
