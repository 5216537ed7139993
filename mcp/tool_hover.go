package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navHover = Tool{
	Spec:        &navigate.Hover,
	Title:       "Hover",
	Description: "Type and documentation of the name at a place, from the language server.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("", 1)),
		schema.Req("line", schema.Int("From 1.", 1, navigate.MaxLine)),
		schema.Req("column", schema.Int("In characters, from 1.", 1, navigate.MaxColumn)),
	),
}
