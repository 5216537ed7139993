package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var searchFileContext = Tool{
	Spec:  &files.FileContext,
	Title: "Search file context",
	Description: "Search one file and show each match with the lines around it, plus the file's sha256 for an edit. Cheaper than " +
		"reading a large file.",
	Category: "files", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("Project-relative path.", 1)),
		schema.Req("pattern", patternArg),
		schema.Opt("context_before", schema.Knob("Up to 20; default 5.")),
		schema.Opt("context_after", schema.Knob("Up to 20; default 5.")),
		schema.Opt("limit", schema.Knob("Matches, up to 200; default 50.")),
	),
}
