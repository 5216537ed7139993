package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var runShell = Tool{
	Spec:  &run.RunShell,
	Title: "Run shell",
	Description: "Run one shell command line (pipes, globs, &&) in the project, up to 16,000 bytes and 120 s. " +
		"A larger program: run_script. A long run becomes a Job: observe_jobs.",
	Category: "execution", Direct: true, Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("command", schema.Str("Command line.", 1, run.MaxCommandBytes).Bytes(run.MaxCommandBytes).
			Hint("use run_script for a larger program")),
		schema.Opt("shell", schema.Enum("Default: the Session's, else sh.", run.Shells...)),
		schema.Opt("cwd", cwdArg),
		schema.Opt("interactive", schema.Bool("On a terminal: send_execution_input.")),
		schema.Opt("timeout_secs", schema.Int("Default 60.", int64(run.MinTimeoutSecs), run.MaxShellTimeoutSecs)),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
		schema.Opt("idempotency_key", keyArg),
	),
}
