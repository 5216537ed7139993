package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navReferences = Tool{
	Spec:        &navigate.References,
	Title:       "Find references",
	Description: "Where the name at a place is used, from the language server, its declaration too unless include_declaration is false.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("", 1)),
		schema.Req("line", schema.Int("From 1.", 1, navigate.MaxLine)),
		schema.Req("column", schema.Int("In characters, from 1.", 1, navigate.MaxColumn)),
		schema.Opt("include_declaration", schema.Bool("Default true.")),
		schema.Opt("limit", schema.Knob("Up to 200; default 50.")),
	),
}
