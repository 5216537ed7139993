package mcp

import (
	"webcodex/commands/git"
	"webcodex/internal/fault"
	"webcodex/mcp/schema"
)

// Schemas that the git tools share.
var (
	gitPathArg   = schema.Str("Project-relative path.", 1, git.MaxPathBytes).Bytes(git.MaxPathBytes).Fault(fault.InvalidPath)
	diffPathsArg = schema.List("Only these files or directories.",
		gitPathArg, 0, git.MaxDiffPaths)
	cachedArg = schema.Bool("The index against HEAD; default: the working tree against it.")
	baseArg   = schema.Str("Full id; with head_commit, not with cached.", 1, 64).
			Match(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	headArg = schema.Str("Full id; with base_commit.", 1, 64).
		Match(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	continuationArg = schema.Str("next_continuation of the page before; all else the same.", 1, git.MaxContinuation)
)

var readGitDiff = Tool{
	Spec:  &git.Diff,
	Title: "Git diff as text",
	Description: "Git diff as unified text: working tree, staged, or between two commits, with line counts per file on the " +
		"first page. Long diffs come in pages. For single hunks: read_git_diff_hunks.",
	Category: "git", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("paths", diffPathsArg),
		schema.Opt("cached", cachedArg),
		schema.Opt("base_commit", baseArg),
		schema.Opt("head_commit", headArg),
		schema.Opt("continuation", continuationArg),
	),
}
