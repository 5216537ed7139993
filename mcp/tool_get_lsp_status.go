package mcp

import (
	"webcodex/commands/navigate"
	"webcodex/mcp/schema"
)

var navStatus = Tool{
	Spec:        &navigate.Status,
	Title:       "Get LSP status",
	Description: "Language servers of the project's Runner: languages found, which server serves each and how it stands. Starts none.",
	Category:    "navigation", Idempotent: true,
	Input: schema.Object(
		schema.Req("project", projectArg),
		schema.Opt("session_id", readerArg),
	),
}
