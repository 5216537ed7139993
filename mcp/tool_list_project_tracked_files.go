package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

var listProjectTrackedFiles = Tool{
	Spec:  &files.Tracked,
	Title: "List project tracked files",
	Description: "List the files that git tracks, below a path or by globs, page by page. depth folds deeper files into one entry a " +
		"directory.",
	Category: "files", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("path", pathArg("Directory or file; default: all.", 0)),
		schema.Opt("globs", schema.List("Any match selects, e.g. *.go or src/**/*.ts.",
			schema.Str("", 1, files.MaxGlobChars), 0, files.MaxTrackedGlobs)),
		schema.Opt("depth", schema.Int("Fold what lies deeper.", 1, files.MaxTrackedDepth)),
		schema.Opt("limit", schema.Knob("Entries, up to 1,000; default 200.")),
		schema.Opt("offset", schema.Knob("next_offset of the page before.")),
	),
}
