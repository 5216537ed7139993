package mcp

import (
	"math"

	"webcodex/commands/external"
	"webcodex/mcp/schema"
	reports "webcodex/projections/external"
)

var recordExternalObservation = Tool{
	Spec:  &external.RecordObservation,
	Title: "Record what another tool reports",
	Description: "For adapters: record what a tool outside WebCodex reports about work in a Workflow Session. It proves nothing and changes " +
		"nothing of the Session; a repeated report with the same ids is recorded once.",
	Category: "workflow", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Req("session_id", targetSessionArg),
		schema.Req("adapter_id", schema.Str("The adapter's own id, 64 lowercase hex digits.", 64, 64).Match(external.IDForm)),
		schema.Req("event_id", schema.Str("Id of what happened, 64 lowercase hex digits; the same for a retry.", 64, 64).Match(external.IDForm)),
		schema.Req("tool", schema.Str("Name of the tool that ran.", 1, external.MaxTool).Match(external.ToolForm)),
		schema.Req("status", schema.Enum("How it ended; unknown where nobody knows.", reports.Statuses()...)),
		schema.Opt("exit_code", schema.Int("Its exit code.", math.MinInt32, math.MaxInt32)),
	),
}
