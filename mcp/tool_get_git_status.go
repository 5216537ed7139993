package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var getGitStatus = Tool{
	Spec:  &git.Status,
	Title: "Git status",
	Description: "Git status of the project: branch, head, upstream, merge or rebase in progress, and each staged, unstaged, " +
		"untracked and conflicted file with exact counts. Submodules are not looked into. filters_disabled: files under a " +
		"content filter (Git LFS) may show as changed.",
	Category: "git", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", sessionArg),
		schema.Opt("offset", schema.Knob("Entries to pass over: next_offset of the page before.")),
		schema.Opt("limit", schema.Knob("Entries, up to 1000; default 200.")),
	),
}
