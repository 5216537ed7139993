package mcp

import (
	"webcodex/commands/board"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

var resolveSessionMessage = Tool{
	Spec:  &board.ResolveMessage,
	Title: "Resolve a message",
	Description: "Mark a message of a Workflow Session's board as dealt with, with what came of it. Resolving it again the same way " +
		"changes nothing. A todo is better ended with complete_session_message.",
	Category: "board", Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Req("message_id", messageIDArg),
		schema.Opt("resolution", schema.Str("What came of it.", 1, board.MaxText).Fault(fault.InvalidMessage).ForReading()),
	),
}
