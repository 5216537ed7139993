package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var readGitDiffHunks = Tool{
	Spec:  &git.DiffHunks,
	Title: "Read git diff hunks",
	Description: "Git diff as hunks by file, with positions: working tree, staged, or between two commits. Bounded; go on " +
		"with next_continuation. A diff that changed meanwhile is refused, not mixed.",
	Category: "git", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("paths", diffPathsArg),
		schema.Opt("max_hunks", schema.Knob("Up to 100; default 30.")),
		schema.Opt("max_hunk_lines", schema.Knob("Of one hunk, up to 400; default 160.")),
		schema.Opt("cached", cachedArg),
		schema.Opt("base_commit", baseArg),
		schema.Opt("head_commit", headArg),
		schema.Opt("continuation", continuationArg),
	),
}
