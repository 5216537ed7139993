package mcp

import (
	"webcodex/commands/files"
	"webcodex/mcp/schema"
)

// Schemas that the search tools share.
var (
	patternArg = schema.Str("RE2 regular expression, line by line; (?i) first: any case.", 1, files.MaxPatternChars)
	globsArg   = func(desc string) *schema.Schema {
		return schema.List(desc, schema.Str("", 1, files.MaxGlobChars), 0, files.MaxGlobs)
	}
)

var searchProjectTexts = Tool{
	Spec:  &files.Search,
	Title: "Search project texts",
	Description: "Search (grep) the project's files, up to 8 queries at once: matches with line numbers and context, or only files or " +
		"counts. Ignored files are left out unless a path names them.",
	Category: "files", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("queries", schema.List("Searches.", schema.Object(
			schema.Req("pattern", patternArg),
			schema.Opt("path", pathArg("File or directory; default: all.", 0)),
			schema.Opt("include_globs", globsArg("Only these files, e.g. *.go or src/**.")),
			schema.Opt("exclude_globs", globsArg("Not these.")),
			schema.Opt("context_before", schema.Knob("Up to 20; default 0.")),
			schema.Opt("context_after", schema.Knob("Up to 20; default 0.")),
			schema.Opt("result_mode", schema.Enum("Default: matches.", files.SearchModes...)),
			schema.Opt("limit", schema.Knob("Matches or files, up to 200; default 50.")),
			schema.Opt("timeout_secs", schema.Knob("1 to 120; default 30.")),
		), 1, files.MaxQueries)),
	),
}
