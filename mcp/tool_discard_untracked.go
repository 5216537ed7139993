package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var discardUntracked = Tool{
	Spec:  &git.Discard,
	Title: "Discard untracked files",
	Description: "Delete untracked files (git clean); what was in them is lost. Files named one by one go at once; for a directory, or " +
		"for all without paths, call with dry_run first and pass the digest of its list. Tracked files never go, ignored ones only " +
		"with include_ignored. All or nothing.",
	Category: "git", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("paths", schema.List("Untracked files or directories, exact names; default: all.", gitPathArg, 0, git.MaxDiscardPaths)),
		schema.Opt("include_ignored", schema.Bool("Also files that a rule ignores.")),
		schema.Opt("dry_run", schema.Bool("Only list them, with a digest.")),
		schema.Opt("expected_digest", shaArg("digest of the list that dry_run gave.")),
	),
}
