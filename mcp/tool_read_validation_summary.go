package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var readValidationSummary = Tool{
	Spec:  &session.ReadValidation,
	Title: "Read a validation summary",
	Description: "Validation of a Session from its evidence: status, failures, whether the proof is of the files as they are now " +
		"(stale), delta. Runs nothing.",
	Category: "validation", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", targetSessionArg),
		schema.Opt("limit", schema.Knob("Up to 100; default 20.")),
	),
}
