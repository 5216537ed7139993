package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var readWorkspaceChanges = Tool{
	Spec:  &git.WorkspaceChanges,
	Title: "Read workspace changes",
	Description: "Review uncommitted changes: status, lines added and deleted per file against HEAD; with include_diff the hunks and " +
		"the beginning of untracked files. Use it before finishing.",
	Category: "git", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("include_diff", schema.Bool("Default false.")),
		schema.Opt("max_hunks", schema.Knob("Up to 100; default 20.")),
		schema.Opt("max_hunk_lines", schema.Knob("Of one hunk, up to 240; default 80.")),
	),
}
