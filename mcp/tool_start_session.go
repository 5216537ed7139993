package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var startSession = Tool{
	Spec:  &session.StartSession,
	Title: "Start a Session without a task",
	Description: "Make a fresh Workflow Session without an instruction, with or without a project. For coding work call " +
		"work_on_project instead.",
	Category: "workflow",
	Input: schema.Object(
		schema.Opt("project", projectArg),
		schema.Opt("title", schema.Str("Short title for lists.", 1, session.MaxTitle).ForReading()),
		schema.Opt("mode", sessionModeArg),
		schema.Opt("execution_context", contextArg()),
	),
}
