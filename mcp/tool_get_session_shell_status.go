package mcp

import (
	"webcodex/commands/shell"
	"webcodex/mcp/schema"
)

var getSessionShellStatus = Tool{
	Spec:        &shell.Status,
	Title:       "How the persistent shell stands",
	Description: "State of a persistent shell: running, exited, closed, poisoned or lost, whether it is busy, where it was opened, and why it ended.",
	Category:    "execution", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", schema.Str("Session of the shell.", 1, 128)),
		schema.Req("shell_id", shellIDArg),
	),
}
