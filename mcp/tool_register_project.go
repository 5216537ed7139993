package mcp

import (
	"webcodex/commands/project"
	"webcodex/mcp/schema"
)

// Schemas of members that the tools over Projects share.
var (
	runnerArg      = schema.Str("The Runner, as list_runners gives it.", 1, 64)
	projectPathArg = schema.Str("Absolute path on the Runner's machine.", 1, project.MaxPath).Bytes(project.MaxPath)
	projectNameArg = schema.Str("For people; absent: the folder's name.", 1, project.MaxName)
)

var registerProject = Tool{
	Spec:  &project.Register,
	Title: "Register a directory as a project",
	Description: "Register a directory of a Runner's machine as a Project, so that it can be worked on: the directory lies below one of " +
		"the allowed_roots of the Runner's owner. Any path to a directory that is a Project already gives that Project. " +
		"It stays registered until unregister_project.",
	Category: "workflow", Idempotent: true,
	Input: schema.Object(
		schema.Req("client_id", runnerArg),
		schema.Req("path", projectPathArg),
		schema.Opt("name", projectNameArg),
	),
}
