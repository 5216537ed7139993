package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var includeValidationArg = schema.Bool("Default true.")

var readSessionHandoff = Tool{
	Spec:  &session.ReadHandoff,
	Title: "Read the handoff brief of a Session",
	Description: "Handoff: where the work of a Workflow Session stands, made from evidence: task, changed files, validation, " +
		"what is open, next actions. Read it first when you continue work that another window began.",
	Category: "workflow", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Opt("project", projectArg),
		schema.Opt("include_workspace", schema.Bool("Look at the working tree; default true.")),
		schema.Opt("include_validation", includeValidationArg),
		schema.Opt("include_checkpoints", schema.Bool("Default true.")),
		schema.Opt("limit", schema.Knob("Events of the diagnostic ledger, up to 100 and as many as fit; default 20.")),
		schema.Opt("diagnostic", schema.Bool("Add the ledger and the closeout evidence.")),
	),
}
