package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

// Schemas that the run tools share.
var (
	cwdArg   = schema.Str("Default: the Session's, else the root.", 1, run.MaxCwdBytes).Bytes(run.MaxCwdBytes)
	stdinArg = schema.Str("Absent: closed.", 0, run.MaxStdinBytes).Bytes(run.MaxStdinBytes).
			Hint("put larger data into a file of the Project")
	keyArg      = schema.Str("", 0, run.MaxIdempotencyKeyBytes).Bytes(run.MaxIdempotencyKeyBytes)
	syncWaitArg = schema.Int("Default 10.", 0, run.MaxSyncWaitSecs)
	// interactiveArg says what it is in run_shell alone: it stands in the direct list several times.
	interactiveArg = schema.Bool("")
	timeoutArg     = schema.Int("Default 60.", int64(run.MinTimeoutSecs), int64(run.MaxTimeoutSecs))
)

func argsArg(desc string) *schema.Schema {
	return schema.List(desc, schema.Str("", 0, run.MaxArgBytes).Bytes(run.MaxArgBytes).
		Hint("use run_script for a larger program, stdin or files for data"), 0, run.MaxArgs)
}

var runProcess = Tool{
	Spec:  &run.RunProcess,
	Title: "Run a process",
	Description: "Run one executable with arguments in the project, no shell, no terminal. A run longer than sync_wait_secs becomes " +
		"a Job: observe_jobs. With purpose test or validation its end is kept as proof.",
	Category: "execution", Direct: true, Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("executable", schema.Str("Program name or path.", 1, run.MaxExecutableBytes).Bytes(run.MaxExecutableBytes)),
		schema.Opt("args", argsArg("As they are: no quoting, no globbing.")),
		schema.Opt("cwd", cwdArg),
		schema.Opt("stdin", stdinArg),
		schema.Opt("interactive", interactiveArg),
		schema.Opt("timeout_secs", timeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
		schema.Opt("idempotency_key", keyArg),
		schema.Opt("accepted_exit_codes", schema.List("Codes that are results, not failures.",
			schema.Int("", 0, run.MaxExitCode), 0, run.MaxAcceptedExitCodes)),
	),
}
