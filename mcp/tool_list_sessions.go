package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var listSessions = Tool{
	Spec:  &session.ListSessions,
	Title: "List Sessions",
	Description: "List Workflow Sessions of a project, newest first, to find the session_id of work to continue. " +
		"Pages are not a frozen snapshot.",
	Category: "workflow", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("lifecycle", schema.Enum("Only these.", "active", "closed")),
		schema.Opt("offset", schema.Knob("Rows to skip: next_offset of the page before.")),
		schema.Opt("limit", schema.Knob("Rows, up to 20; default 10.")),
	),
}
