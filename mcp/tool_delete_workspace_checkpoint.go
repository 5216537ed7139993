package mcp

import (
	"webcodex/commands/checkpoint"
	"webcodex/mcp/schema"
)

var deleteWorkspaceCheckpoint = Tool{
	Spec:        &checkpoint.Delete,
	Title:       "Delete a checkpoint",
	Description: "Forget a checkpoint. Files stay as they are; what only it held is lost.",
	Category:    "git", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("checkpoint_id", checkpointIDArg),
	),
}
