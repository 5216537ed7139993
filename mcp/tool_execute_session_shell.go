package mcp

import (
	"webcodex/commands/shell"
	"webcodex/mcp/schema"
)

var executeSessionShell = Tool{
	Spec:  &shell.Execute,
	Title: "Run a command in the persistent shell",
	Description: "Run one command in the Session's persistent shell and wait for its end, up to 3,600 s; it never becomes a Job. " +
		"At its limit it is interrupted and the shell goes on, or shell_reset_required says that the shell was ended. " +
		"One at a time: shell_busy. What goes on in the background is not heard any more once the command has ended.",
	Category: "execution", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", schema.Str("Session of the shell.", 1, 128)),
		schema.Req("shell_id", shellIDArg),
		schema.Req("command", schema.Str("Command.", 1, shell.MaxCommandBytes).Bytes(shell.MaxCommandBytes).Hint("use run_script for a larger program")),
		schema.Opt("timeout_secs", schema.Int("Seconds; default 60.", int64(shell.MinTimeoutSecs), int64(shell.MaxTimeoutSecs))),
		schema.Opt("max_output_chars", schema.Knob("Characters of each stream in the answer, the last ones; default 12,000, at most 262,144.")),
		schema.Opt("purpose", purposeArg),
		schema.Opt("result_expectation", expectationArg),
	),
}

var shellIDArg = schema.Str("shell_id as open_session_shell gave it.", 1, 64)
