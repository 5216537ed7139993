package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var readGitLog = Tool{
	Spec:        &git.Log,
	Title:       "Read git log",
	Description: "Git log: commits from HEAD, newest first, with parents, author, times and subject.",
	Category:    "git", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("limit", schema.Knob("Commits, up to 100; default 20.")),
		schema.Opt("skip", schema.Int("Commits to pass over: next_skip of the page before.", 0, git.MaxLogSkip)),
	),
}
