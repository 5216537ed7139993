package mcp

import (
	"webcodex/commands/runtime"
	"webcodex/mcp/schema"
)

var listRunners = Tool{
	Spec:  &runtime.ListRunners,
	Title: "List runners",
	Description: "List the Runners, connected or not: client_id, build and protocol beside the server's own, machine, capabilities, since when, " +
		"and how many Projects. A refused one speaks another protocol.",
	Category: "runtime", Idempotent: true,
	Input: schema.Object(
		schema.Opt("client_id", schema.Str("Only this one.", 1, 64)),
		schema.Opt("limit", schema.Knob("Rows, up to 30; default 20.")),
	),
}
