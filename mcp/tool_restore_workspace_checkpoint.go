package mcp

import (
	"webcodex/commands/checkpoint"
	"webcodex/mcp/schema"
)

var restoreWorkspaceCheckpoint = Tool{
	Spec:  &checkpoint.Restore,
	Title: "Put a checkpoint's files back",
	Description: "Make the working tree what it was: files are written and deleted, all or none; what cannot be is named in skipped. " +
		"What is there now is kept as another checkpoint first (previous_checkpoint_id). HEAD, branches and index stay.",
	Category: "git", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("checkpoint_id", checkpointIDArg),
		schema.Req("expected_state", schema.Str("current_state of read_workspace_checkpoint.", checkpoint.StateBytes, checkpoint.StateBytes)),
	),
}
