package mcp

import (
	"webcodex/commands/git"
	"webcodex/mcp/schema"
)

var checkWorkspaceHygiene = Tool{
	Spec:  &git.Hygiene,
	Title: "Check workspace hygiene",
	Description: "Find what should not be left in a working tree before it is committed: conflict markers, files of secrets, debug " +
		"leftovers, temporary and build files, large and binary untracked files, whitespace errors in new lines. Looks at what is " +
		"new against HEAD.",
	Category: "git",
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Opt("max_findings", schema.Knob("1 to 200; default 50.")),
		schema.Opt("include_tracked", schema.Bool("Also look at the names of tracked files that did not change.")),
	),
}
