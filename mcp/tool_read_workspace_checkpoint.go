package mcp

import (
	"webcodex/commands/checkpoint"
	"webcodex/mcp/schema"
)

var readWorkspaceCheckpoint = Tool{
	Spec:  &checkpoint.Read,
	Title: "Read a checkpoint",
	Description: "Show a checkpoint's files and what a restore would change now (restore_changes). current_state is what " +
		"restore_workspace_checkpoint wants as expected_state.",
	Category: "git", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("checkpoint_id", checkpointIDArg),
		schema.Opt("offset", schema.Knob("Files to pass over, as next_offset.")),
		schema.Opt("limit", schema.Knob("Files, up to 200; default 100.")),
	),
}
