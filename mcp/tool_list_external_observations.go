package mcp

import (
	"webcodex/commands/external"
	"webcodex/mcp/schema"
)

var listExternalObservations = Tool{
	Spec:  &external.ListObservations,
	Title: "List what other tools reported",
	Description: "List what tools outside WebCodex reported about a Workflow Session, newest first. Reports are claims without proof, and " +
		"never known to be complete.",
	Category: "workflow", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", targetSessionArg),
		schema.Opt("offset", schema.Knob("Reports to skip; next_offset of the page before.")),
		schema.Opt("limit", schema.Knob("Reports of a page, up to 100; default 20.")),
	),
}
