package mcp

import (
	"webcodex/commands/run"
	"webcodex/mcp/schema"
)

var runScript = Tool{
	Spec:  &run.RunScript,
	Title: "Run a script",
	Description: "Run a program given as text (sh, bash, python, node, powershell) in the project, up to 512 KiB. Large data: " +
		"stdin or files. A long run becomes a Job: observe_jobs.",
	Category: "execution", Direct: true, Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("language", schema.Enum("Interpreter.", run.Languages...)),
		schema.Req("script", schema.Str("Program text.", 1, run.MaxScriptBytes).Bytes(run.MaxScriptBytes).
			Hint("put a larger program into a file and run it with run_process")),
		schema.Opt("args", argsArg("Arguments of the script.")),
		schema.Opt("cwd", cwdArg),
		schema.Opt("stdin", stdinArg),
		schema.Opt("interactive", interactiveArg),
		schema.Opt("timeout_secs", timeoutArg),
		schema.Opt("sync_wait_secs", syncWaitArg),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
		schema.Opt("idempotency_key", keyArg),
	),
}
