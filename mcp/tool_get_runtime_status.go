package mcp

import (
	"webcodex/commands/runtime"
	"webcodex/mcp/schema"
)

var getRuntimeStatus = Tool{
	Spec:  runtime.GetRuntimeStatus,
	Title: "Runtime status",
	Description: "Status of the WebCodex server: version, uptime, durability of the log (what acknowledged work survives), room left, " +
		"connected Runners, counts of Projects and Sessions, and whether new work is accepted.",
	Category: "runtime", Direct: true,
	Input: schema.Object(),
}
