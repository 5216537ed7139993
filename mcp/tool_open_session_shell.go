package mcp

import (
	"webcodex/commands/shell"
	"webcodex/mcp/schema"
)

var openSessionShell = Tool{
	Spec:  &shell.Open,
	Title: "Open a persistent shell",
	Description: "Open the Session's persistent shell: one real sh or bash that keeps cwd, variables, functions and umask between " +
		"execute_session_shell calls. One for a Session. No terminal, no input; it ends with the Session, when idle, or with the Runner. " +
		"For single commands use run_shell.",
	Category: "execution", Destructive: true, OpenWorld: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", schema.Str("Session that the shell is for.", 1, 128)),
		schema.Opt("cwd", schema.Str("Where it begins. Default: the Session's, else the root, or the resource's.", 1, shell.MaxCwdBytes).Bytes(shell.MaxCwdBytes)),
		schema.Opt("shell", schema.Enum("Default: the Session's, else the Runner's.", shell.Dialects...)),
	),
}
