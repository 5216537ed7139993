package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var getGitStatus = Tool{
	Spec:  &git.Status,
	Title: "Get git status",
	Description: "Git status: branch, head, upstream, merge or rebase in progress, each changed, untracked and conflicted file, exact " +
		"counts. filters_disabled: files under a content filter (Git LFS) may show as changed.",
	Category: "git", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("offset", schema.Knob("next_offset of the page before.")),
		schema.Opt("limit", schema.Knob("Entries, up to 1000; default 200.")),
	),
}
