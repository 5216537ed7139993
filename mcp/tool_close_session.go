package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var closeSession = Tool{
	Spec:  &session.CloseSession,
	Title: "Close a Session for good",
	Description: "Close a Workflow Session: it answers reads from then on and takes no more work; nothing reopens it. " +
		"Closing twice is no error. Only when the person says the work is over.",
	Category: "workflow", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", schema.Str("Session to close.", 1, 128)),
	),
}
