package mcp

import (
	"webcodex/commands/session"
	"webcodex/mcp/schema"
)

// targetSessionArg names the Session a tool is about.
var targetSessionArg = schema.Str("wc_sess_… or its ~sN.", 1, 128)

var readSessionSummary = Tool{
	Spec:  &session.ReadSummary,
	Title: "Read a Session's events",
	Description: "Read the recorded events of a Workflow Session: calls, results, instructions, counts. For going on with the " +
		"work read_session_handoff is shorter.",
	Category: "workflow", Idempotent: true,
	Input: schema.Object(
		schema.Req("session_id", targetSessionArg),
		schema.Opt("limit", schema.Knob("Newest events, up to 200 and as many as fit; default 50.")),
	),
}
