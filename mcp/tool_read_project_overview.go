package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var readProjectOverview = Tool{
	Spec:  &files.Overview,
	Title: "Read a project overview",
	Description: "Overview of a project by its file names: kinds, manifests, instruction and key files, roots, top level, what to read " +
		"first.",
	Category: "files", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("path", pathArg("Directory to look at; default: the root.", 0)),
		schema.Opt("max_depth", schema.Knob("Levels, 1 to 4; default 2.")),
		schema.Opt("limit", schema.Knob("Entries looked at, 20 to 500; default 200.")),
	),
}
