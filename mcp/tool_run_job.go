package mcp

import (
	"webcodex/commands/evidence"
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var runJob = Tool{
	Spec:        &run.RunJob,
	Title:       "Run a Job",
	Description: "Start long work, answer at once: a command, or executable and args. It waits for a slot: observe_jobs.",
	Category:    "execution", Direct: true, Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("command", schema.Str("", 1, run.MaxCommandBytes).Bytes(run.MaxCommandBytes).
			Hint("put a larger program into a file of the Project and run that")),
		schema.Opt("shell", schema.Enum("", run.Shells...)),
		schema.Opt("executable", schema.Str("", 1, run.MaxExecutableBytes).Bytes(run.MaxExecutableBytes)),
		schema.Opt("args", argsArg("")),
		schema.Opt("cwd", schema.Str("", 1, run.MaxCwdBytes).Bytes(run.MaxCwdBytes)),
		schema.Opt("stdin", schema.Str("", 0, run.MaxStdinBytes).Bytes(run.MaxStdinBytes).
			Hint("put larger data into a file of the Project")),
		schema.Opt("interactive", interactiveArg),
		schema.Opt("timeout_secs", schema.Int("Default 3600.", int64(run.MinTimeoutSecs), int64(run.MaxTimeoutSecs))),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", schema.Enum("", evidence.Expectations...)),
		schema.Opt("accepted_exit_codes", schema.List("", schema.Int("", 0, run.MaxExitCode), 0, run.MaxAcceptedExitCodes)),
		schema.Opt("idempotency_key", keyArg),
	),
}
