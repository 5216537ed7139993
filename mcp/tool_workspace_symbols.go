package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navWorkspaceSymbols = Tool{
	Spec:        &navigate.WorkspaceSymbols,
	Title:       "Workspace symbols",
	Description: "Find functions, types and variables of the project by name, from its language servers.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("query", schema.Str("Part of a name.", 1, navigate.MaxQueryChars)),
		schema.Opt("limit", schema.Knob("Up to 200; default 50.")),
	),
}
