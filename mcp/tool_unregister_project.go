package mcp

import (
	"webcodex/commands/project"
	"webcodex/mcp/schema"
)

var unregisterProject = Tool{
	Spec:  &project.Unregister,
	Title: "Unregister a project",
	Description: "Unregister a Project: its Jobs and shells are ended and its Runner serves it no longer. Its files, its Sessions and their " +
		"history stay. A Project that the Runner's owner named in the projects file is the owner's to take out.",
	Category: "workflow", Destructive: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
	),
}
