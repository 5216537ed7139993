package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navDiagnostics = Tool{
	Spec:        &navigate.Diagnostics,
	Title:       "Document diagnostics",
	Description: "Errors and warnings of one file as it is on the disk now, from its language server. clean is null while the server is not through.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
		schema.Req("path", pathArg("", 1)),
		schema.Opt("limit", schema.Knob("Up to 200; default 100.")),
	),
}
