package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navCallHierarchy = Tool{
	Spec:        &navigate.CallHierarchy,
	Title:       "Call hierarchy",
	Description: "Who calls the function at a place, or what it calls, up to two levels, from the language server.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("", 1)),
		schema.Req("line", schema.Int("From 1.", 1, navigate.MaxLine)),
		schema.Req("column", schema.Int("In characters, from 1.", 1, navigate.MaxColumn)),
		schema.Opt("direction", schema.Enum("Default incoming.", navigate.Directions...)),
		schema.Opt("depth", schema.Int("Default 1.", 1, navigate.MaxDepth)),
		schema.Opt("limit", schema.Knob("Calls, up to 100; default 50.")),
	),
}
