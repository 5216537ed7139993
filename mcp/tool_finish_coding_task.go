package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

var finishCodingTask = Tool{
	Spec:  &session.FinishTask,
	Title: "Finish a coding task",
	Description: "Check, before you say that a task is done, what the evidence says: verdict pass, warn or fail with blockers " +
		"and advisories. Closes nothing.",
	Category: "workflow", Direct: true, Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", targetSessionArg),
		schema.Opt("summary_only", schema.Bool("Verdict alone.")),
		schema.Opt("include_diff", schema.Bool("Default true.")),
		schema.Opt("include_workspace", schema.Bool("Look at the working tree; default true.")),
		schema.Opt("include_hygiene", schema.Bool("Default true.")),
		schema.Opt("include_handoff", schema.Bool("Default true.")),
		schema.Opt("include_validation_summary", includeValidationArg),
	),
}
