package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navDefinition = Tool{
	Spec:        &navigate.Definition,
	Title:       "Goto definition",
	Description: "Where the name at a place is defined, from the language server. Lines and columns count from 1, columns in characters.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("", 1)),
		schema.Req("line", schema.Int("From 1.", 1, navigate.MaxLine)),
		schema.Req("column", schema.Int("In characters, from 1.", 1, navigate.MaxColumn)),
		schema.Opt("limit", schema.Knob("Up to 100; default 20.")),
	),
}
