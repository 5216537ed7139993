package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var listProjectFiles = Tool{
	Spec:  &files.List,
	Title: "List project files",
	Description: "List one directory of the project, ignored and untracked entries too: kind and size of each, directories " +
		"first. Not recursive; for all of a repository use list_project_tracked_files.",
	Category: "files", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("path", pathArg("Directory; default: the root.", 0)),
		schema.Opt("limit", schema.Knob("Entries, up to 1,000; default 200.")),
	),
}
