package mcp

import (
	"webcodex/commands/project"
	"webcodex/mcp/schema"
)

var createProject = Tool{
	Spec:  &project.Create,
	Title: "Create a directory as a project",
	Description: "Create a new directory on a Runner's machine and register it as a Project. Its parent exists and lies below one of the " +
		"allowed_roots of the Runner's owner; nothing that is there already is touched.",
	Category: "workflow",
	Input: schema.Object(
		schema.Req("client_id", runnerArg),
		schema.Req("path", projectPathArg),
		schema.Opt("name", projectNameArg),
		schema.Opt("git_init", schema.Bool("Make it an empty git repository, on the branch main.")),
	),
}
