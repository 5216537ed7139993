package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var updateSessionContext = Tool{
	Spec:  &session.UpdateContext,
	Title: "Change a Session's defaults",
	Description: "Replace the execution defaults of a Workflow Session: directory and shell that commands use when a call names " +
		"none. An empty execution_context clears them. Returns the new and the previous ones.",
	Category: "workflow", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", targetSessionArg),
		schema.Req("execution_context", contextArg()),
	),
}
