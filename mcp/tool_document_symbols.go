package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navDocumentSymbols = Tool{
	Spec:        &navigate.DocumentSymbols,
	Title:       "Document symbols",
	Description: "Outline of one file from its language server: functions, types, fields, with kind, place and what they are declared in.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("", 1)),
		schema.Opt("limit", schema.Knob("Up to 500; default 100.")),
	),
}
