package mcp

import (
	"webcodex/commands/board"
	"webcodex/mcp/schema"
)

var getSessionAssignment = Tool{
	Spec:  &board.GetAssignment,
	Title: "Read an assignment",
	Description: "Read a todo of a Workflow Session's board with every direct reply, and the assignment_fence that proves you have " +
		"read exactly that. Do this before the work, and pass the fence to complete_session_message.",
	Category: "board", Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Req("message_id", messageIDArg),
	),
}
