package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var restoreGitPaths = Tool{
	Spec:  &git.Restore,
	Title: "Discard changes of files",
	Description: "Discard unstaged changes: put tracked files back to their staged content (git restore). What was in them " +
		"is lost. Refused for untracked and conflicted files, directories, submodules, and files under a content filter.",
	Category: "git", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Req("paths", schema.List("Tracked files, exact names.", gitPathArg, 1, git.MaxRestorePaths)),
	),
}
