package mcp

import (
	"webcodex/commands/board"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

var completeSessionMessage = Tool{
	Spec:  &board.CompleteMessage,
	Title: "Complete a todo",
	Description: "Complete a todo of a Workflow Session's board: answers and resolves it at once, if the assignment is still the one " +
		"you read. A retry with the same completion_key and answer gives the first completion back; assignment_fence_stale " +
		"gives the assignment as it is now.",
	Category: "board",
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Req("message_id", messageIDArg),
		schema.Req("answer", schema.Str("The result, for whoever asked.", 1, board.MaxText).Fault(fault.InvalidMessage).ForReading()),
		schema.Req("completion_key", schema.Str("Your own key of this completion; keep it for retries.", 1, board.MaxKey)),
		schema.Req("expected_assignment_fence", schema.Str("assignment_fence as get_session_assignment gave it.", 1, board.FenceChars).Match(board.FenceForm).
			Opaque(fault.InvalidFence).Hint("call get_session_assignment and pass its assignment_fence")),
		schema.Opt("tags", messageTagsArg),
		schema.Opt("priority", priorityArg),
	),
}
