package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var readGitReviewSummary = Tool{
	Spec:  &git.ReviewSummary,
	Title: "Sum up a change for review",
	Description: "Sum up a change before reviewing it: counts, kinds of files, directories, signals (files of secrets, deleted tests, " +
		"dependencies, migrations, source without tests), largest files with the functions they touch. Of two commits, or of " +
		"everything uncommitted.",
	Category: "git",
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("base_commit", baseArg),
		schema.Opt("head_commit", headArg),
	),
}
