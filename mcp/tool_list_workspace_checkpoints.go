package mcp

import (
	"webcodex/commands/checkpoint"
	"webcodex/mcp/schema"
)

var listWorkspaceCheckpoints = Tool{
	Spec:        &checkpoint.List,
	Title:       "List checkpoints",
	Description: "List a Project's checkpoints, newest first: when, why, from which commit, and how many files each holds.",
	Category:    "git", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("limit", schema.Knob("Up to 100; default 20.")),
	),
}
