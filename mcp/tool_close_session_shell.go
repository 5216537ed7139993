package mcp

import (
	"webcodex/commands/shell"
	"webcodex/mcp/schema"
)

var closeSessionShell = Tool{
	Spec:  &shell.Close,
	Title: "Close the persistent shell",
	Description: "End a persistent shell with everything it started, also in the background. Closing twice is no error. " +
		"Its id is never used again.",
	Category: "execution", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", schema.Str("Session of the shell.", 1, 128)),
		schema.Req("shell_id", shellIDArg),
	),
}
