package mcp

import (
	"webcodex/commands/project"
	"webcodex/mcp/schema"
)

var listProjects = Tool{
	Spec:  &project.ListProjects,
	Title: "List projects",
	Description: "List the repositories that can be worked on, with the name each other tool takes as project and whether " +
		"its Runner is connected.",
	Category: "workflow", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Opt("client_id", schema.Str("Only Projects of this Runner.", 1, 64)),
		schema.Opt("query", schema.Str("Part of a name, any case.", 1, project.MaxQuery)),
		schema.Opt("limit", schema.Knob("Rows, up to 100; default 50.")),
	),
}
