package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var includeValidationArg = schema.Bool("Default true.")

var readSessionHandoff = Tool{
	Spec:  &session.ReadHandoff,
	Title: "Read a Session handoff",
	Description: "Handoff: where the work of a Session stands, from evidence: task, changed files, recent files as hints, validation, " +
		"what is open, next actions. No transcript, no verdict. Read it first when you continue what another window began.",
	Category: "workflow", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Opt("project", projectArg),
		schema.Opt("include_workspace", schema.Bool("Look at the working tree; default true.")),
		schema.Opt("include_validation", includeValidationArg),
		schema.Opt("include_checkpoints", schema.Bool("Default true.")),
		schema.Opt("limit", schema.Knob("Diagnostic events, up to 100 that fit; default 20.")),
		schema.Opt("diagnostic", schema.Bool("Adds ledger and closeout evidence.")),
	),
}
